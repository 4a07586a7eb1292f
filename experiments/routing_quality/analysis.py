"""Which router knows the right skill, and when there is none?"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from experiments.routing_quality import hard_negatives
from experiments.routing_quality.baselines import Entry, baselines
from experiments.routing_quality.corpora import Corpus, builtin, clinc150, read
from experiments.routing_quality.measure import FIGURES, best_threshold, bootstrap, figures, interval
from experiments.routing_quality.recipe import SHARE, Model, fit
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.core.grid import F64
from skg_bench.core.types import Router
from skg_bench.router.bm25 import BM25
from skg_bench.router.centroid import Centroid
from skg_bench.router.exact import Exact
from skg_bench.router.hybrid import Hybrid
from skg_bench.router.maxsim import MaxSim
from skg_bench.router.maxsim_centroid import MaxSimCentroid

COMMAND = "skg-bench experiment routing_quality --write reports"
RECIPE = "the recipe: kernel ridge"
PEER = "MaxSim"  # with a threshold from validation: what semantic-router (max, Platt) does on the same vectors
SHARES = (0.03, 0.1, 0.2, 0.5)  # for which thresholds are chosen, beside the stated one
KNOWN = {  # acc all, OOS F1, AUROC on the same vectors of CLINC150, measured elsewhere
    "semantic-router 1.1.1, max, Platt: the best peer": (83.8, 78.2, 96.25),
    "the best figures seen so far, with hindsight": (92.0, 85.1, 97.9),
}


@dataclass(frozen=True)
class Line:
    """One router on the test messages of a corpus."""

    name: str
    threshold: float
    values: F64  # [6] FIGURES in percent
    resampled: F64  # [R, 6]
    seconds: float  # of the sweep that found the threshold


def recipe(corpus: Corpus, share: float = SHARE) -> tuple[Model, Entry]:
    """The recipe, fitted and applied."""
    model = fit(corpus.train, corpus.validation, share)
    return model, Entry(RECIPE, model.score(corpus.validation), model.score(corpus.test), model.threshold)


def table(entries: Sequence[Entry], share: float, seed: int = 0) -> list[Line]:
    """Figures with intervals; thresholds, where none is given, are those that are best on validation."""
    thresholds, seconds = [], []
    for entry in entries:
        begun = time.perf_counter()
        thresholds.append(best_threshold(entry.validation, share) if entry.threshold is None else entry.threshold)
        seconds.append(time.perf_counter() - begun)
    drawn = bootstrap([(entry.test, t) for entry, t in zip(entries, thresholds, strict=True)], seed)
    return [
        Line(entry.name, t, figures(entry.test, t)[0], resampled, s)
        for entry, t, resampled, s in zip(entries, thresholds, drawn, seconds, strict=True)
    ]


def shifted(entries: Sequence[Entry], shares: Sequence[float]) -> list[tuple[str, list[float]]]:
    """Accuracy over all test messages, in percent, with thresholds for these shares of out-of-scope messages."""
    rows = []
    for entry in entries:
        if entry.name.startswith("SKG"):
            continue
        values = [figures(entry.test, best_threshold(entry.validation, share))[0, 1] for share in shares]
        rows.append((entry.name, [float(v) for v in values]))
    return rows


def section(
    corpus: Corpus, lines: Sequence[Line], moved: Sequence[tuple[str, list[float]]], share: float
) -> list[Table | str]:
    """What is said of a corpus."""
    test, validation = corpus.test.skill, corpus.validation.skill
    what = (
        f"{len(corpus.skills)} skills; {(corpus.train.skill >= 0).sum():,} examples and "
        f"{(corpus.train.skill < 0).sum():,} out-of-scope messages to train, {(validation >= 0).sum():,} and "
        f"{(validation < 0).sum():,} to validate, {(test >= 0).sum():,} and {(test < 0).sum():,} to test. Out of "
        f"scope are {(validation < 0).mean():.1%} of validation and {(test < 0).mean():.1%} of test; thresholds are "
        f"the best on validation at a stated share of {share:.0%}. In percent; 95 % intervals by bootstrap over "
        "messages."
    )
    rows: list[Sequence[str]] = []
    for line in lines:
        cells = [
            f"{v:.1f} ({low:.1f}-{high:.1f})" for v, (low, high) in zip(line.values, _intervals(line), strict=True)
        ]
        rows.append((line.name, f"{line.threshold:.3f}", *cells))
    ours, peer = (next(line for line in lines if line.name == name) for name in (RECIPE, PEER))
    gaps = [interval(ours.resampled[:, i] - peer.resampled[:, i]) for i in range(len(FIGURES))]
    cells = [
        f"{d:+.1f} ({low:+.1f} to {high:+.1f})" for d, (low, high) in zip(ours.values - peer.values, gaps, strict=True)
    ]
    rows.append((f"recipe - {PEER}, same messages", "", *cells))
    if corpus.name == "clinc150":
        rows += [(name, "", "", f"{v[0]}", "", "", f"{v[1]}", f"{v[2]}") for name, v in KNOWN.items()]
    other_shares = [(name, *(f"{v:.1f}" for v in values)) for name, values in moved]
    slowest = max(line.seconds for line in lines)
    return [
        f"## {corpus.name}",
        what,
        Table(corpus.name, ("router", "threshold", *FIGURES), rows),
        "Accuracy over all test messages when the threshold is chosen for another share than theirs:",
        Table(f"{corpus.name}, other shares", ("router", *(f"{s:.0%}" for s in SHARES)), other_shares),
        f"A threshold from the cached scores of {len(validation):,} messages: at most {slowest * 1e3:.1f} ms.",
    ]


def alike(lines: Sequence[Line]) -> list[Table | str]:
    """The section on hard negatives, with the thresholds of `lines` and those that routers come with."""
    at = {line.name: line.threshold for line in lines}
    places = 2 * len(hard_negatives.suite().kind)
    words = BM25(places, k1=1.5, b=0.75)
    routers: list[tuple[str, Router, float]] = [
        ("verbatim repeats (exact)", Exact(places), 0.5),
        ("SKG's rule: MaxSim, 0.5", MaxSim(places), 0.5),
        ("MaxSim", MaxSim(places), at["MaxSim"]),
        ("centroid", Centroid(places), at["centroid"]),
        ("half MaxSim, half centroid", MaxSimCentroid(places, 0.5), at["half MaxSim, half centroid"]),
        ("BM25, 0.5", words, 0.5),
        ("MaxSim and BM25 by rank, 0.5", Hybrid(MaxSim(places), words, 60, places), 0.5),
    ]
    what = (
        f"{places // 2} pairs of requests that share nearly all words and need different answers, and one skillbook "
        "in which the first request of each is the only example of a skill. Confused: the second request is answered "
        "from that skill. The price of confusing fewer is paid in paraphrases of the first that are not answered any "
        "more. Last column: both requests are skills, and the paraphrase of the first is nearer to the second. With "
        "one example a skill, centroid and MaxSim are one, and only their thresholds differ (those of the first corpus "
        "above, where none is named)."
    )
    return ["## Hard negatives", what, Table("hard negatives", hard_negatives.HEADINGS, hard_negatives.table(routers))]


def _intervals(line: Line) -> list[tuple[float, float]]:
    return [interval(line.resampled[:, i]) for i in range(len(FIGURES))]


def analyse(
    corpus: Annotated[
        list[Path] | None, typer.Option(help="A file in CLINC150's format; more may be given.", metavar="FILE")
    ] = None,
    share: Annotated[float, typer.Option(help="Stated share of out-of-scope messages.")] = SHARE,
) -> Report:
    """Fits routers on CLINC150 and the built-in corpus, in twenty minutes; nothing expected is checked."""
    parts: list[Table | str] = []
    of_first: list[Line] = []
    for labelled in [read(file) for file in corpus] if corpus else [read(clinc150()), builtin()]:
        entries = [*baselines(labelled), recipe(labelled, share)[1]]
        lines = table(entries, share)
        parts += section(labelled, lines, shifted(entries, SHARES), share)
        of_first = of_first or lines
    parts += alike(of_first)
    texts = (part.markdown() if isinstance(part, Table) else part for part in parts)
    return Report(parts, page("Routing quality", COMMAND, *texts))


EXPERIMENT = Experiment(analyse)
