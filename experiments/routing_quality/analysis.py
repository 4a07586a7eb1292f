"""Which router knows the right skill, and when there is none?"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from experiments.routing_quality import hard_negatives
from experiments.routing_quality.baselines import RULE, Entry, baselines
from experiments.routing_quality.corpora import Corpus, builtin, clinc150, held_back, read, without_labels
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
BEST = (1, 4, 5)  # of FIGURES, for which the best router is named
ELSEWHERE = {  # acc all, OOS F1, AUROC on the same vectors of CLINC150; it takes no out-of-scope message to train
    "semantic-router 1.1.1, max, Platt: the best peer": (83.8, 78.2, 96.25),
}


EQUAL = (
    "Equal data: in one table of each corpus no router trains on labelled out-of-scope messages, in the other all do, "
    f"but for {RULE}, which has no use for them. Held back: a fifth of the intents is absent from training and "
    "validation and out of scope in test, near to what is in scope; another fifth takes this part in validation. This "
    "is the main test, as other out-of-scope messages are far and easy. Intervals do not say what other intents would "
    "give."
)


BY_FIGURE = (
    "By each figure, the best router, the next one, and the recipe against the best other one, on the same messages:"
)


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
        if entry.name == RULE:
            continue
        values = [figures(entry.test, best_threshold(entry.validation, share))[0, 1] for share in shares]
        rows.append((entry.name, [float(v) for v in values]))
    return rows


def section(corpus: Corpus, entries: Sequence[Entry], lines: Sequence[Line], share: float) -> list[Table | str]:
    """Section on a corpus."""
    test, validation = corpus.test.skill, corpus.validation.skill
    labels = int((corpus.train.skill < 0).sum())
    heading = f"{corpus.name}, {'' if labels else 'no '}labelled out-of-scope messages"
    what = (
        f"{len(corpus.skills)} skills; {(corpus.train.skill >= 0).sum():,} examples and "
        f"{labels:,} out-of-scope messages to train, {(validation >= 0).sum():,} and "
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
    rows.append((f"recipe - {PEER}, same messages", "", *(_gap(ours, peer, i) for i in range(len(FIGURES)))))
    if corpus.name == "clinc150" and not labels:
        rows += [(name, "", "", f"{v[0]}", "", "", f"{v[1]}", f"{v[2]}") for name, v in ELSEWHERE.items()]
    slowest = max(line.seconds for line in lines)
    moved = [(name, *(f"{v:.1f}" for v in values)) for name, values in shifted(entries, SHARES)]
    return [
        f"## {heading}",
        what,
        Table(heading, ("router", "threshold", *FIGURES), rows),
        BY_FIGURE,
        Table(f"{heading}: best", ("figure", "best", "next", "best - next", "recipe - best rival"), best(lines)),
        "Accuracy over all test messages when the threshold is chosen for another share than theirs:",
        Table(f"{heading}, other shares", ("router", *(f"{s:.0%}" for s in SHARES)), moved),
        f"A threshold from the cached scores of {len(validation):,} messages: at most {slowest * 1e3:.1f} ms.",
    ]


def best(lines: Sequence[Line]) -> list[Sequence[str]]:
    """Best by figure: the best router, the next one, the difference, and that of the recipe to the best other one."""
    rows: list[Sequence[str]] = []
    for i in BEST:
        ordered = sorted(lines, key=lambda line: -line.values[i])
        ours = next(line for line in lines if line.name == RECIPE)
        rival = next(line for line in ordered if line is not ours)
        first, second = ordered[:2]
        rows.append((FIGURES[i], first.name, second.name, _gap(first, second, i), _gap(ours, rival, i)))
    return rows


def _gap(first: Line, other: Line, i: int) -> str:
    """Difference of a figure, with its interval over the same messages."""
    low, high = interval(first.resampled[:, i] - other.resampled[:, i])
    return f"{first.values[i] - other.values[i]:+.1f} ({low:+.1f} to {high:+.1f})"


def alike(lines: Sequence[Line]) -> list[Table | str]:
    """The section on hard negatives, with the thresholds of `lines` and those that routers come with."""
    at = {line.name: line.threshold for line in lines}
    places = 2 * len(hard_negatives.suite().kind)
    words = BM25(places, k1=1.5, b=0.75)
    routers: list[tuple[str, Router, float]] = [
        ("verbatim repeats (exact)", Exact(places), 0.5),
        (RULE, MaxSim(places), 0.5),
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
    """Fits routers on CLINC150 and the built-in corpus, in half an hour; nothing expected is checked."""
    parts: list[Table | str] = [EQUAL]
    of_first: list[Line] = []
    for labelled in [read(file) for file in corpus] if corpus else [read(clinc150()), builtin()]:
        for task in (held_back(labelled), labelled):
            given = [task] if (task.train.skill < 0).any() else []
            for case in (without_labels(task), *given):
                entries = [*baselines(case), recipe(case, share)[1]]
                lines = table(entries, share)
                parts += section(case, entries, lines, share)
                if task is labelled:
                    of_first = of_first or lines
    parts += alike(of_first)
    texts = (part.markdown() if isinstance(part, Table) else part for part in parts)
    return Report(parts, page("Routing quality", COMMAND, *texts))


EXPERIMENT = Experiment(analyse)
