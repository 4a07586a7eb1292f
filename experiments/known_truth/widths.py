"""How wide the intervals of headline contrasts are with 120, 300 and about 450 intents."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

import skg_bench
from skg_bench.analysis.comparison.compare import Comparison, verdict_words
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.simulator.answers.corpora_by_name import corpus_of

COMMAND = "skg-bench experiment known_truth/widths --write reports"
USERS = (30, 100)
WEEKS = 2
CORPORA = ("builtin_120", "builtin", "builtin,clinc150-exchange_rate-plug_type")
METRIC = "utility"
ARMS = (
    "arms={skg: [], frozen_100: [freeze=all, freeze_at=100], exact_match: [router=exact], "
    "recipe_prompted: [router=recipe, serving=prompted, curator=everything], "
    "oracle: [router=oracle, policy=always, curator=oracle], never: [policy=never, curator=none]}"
)
WORDS = """
Each arm minus `never`, {} a request, {} weeks, seed 0. *New requests* is the width of the 95 % interval for other users
who ask for other intents, as pages print it; *these requests* is that for other users alone. More intents change the
world, too: users have less in common, and other requests come again. So the width stands beside the size of the
difference, and the effective number of intents that carry it. One seed: a width varies from seed to seed as well.
"""


@dataclass(frozen=True)
class ContrastWidth:
    """Interval of an arm's difference from `never`."""

    corpus: str
    intents: int  # of the corpus
    users: int
    arm: str
    mean: float
    new: float  # width for new requests
    these: float  # width for these requests
    carrying: float  # effective number of intents
    verdict: str


def contrast_widths(corpus: str, intents: int, compared: Comparison) -> list[ContrastWidth]:
    """Widths of all contrasts of a comparison in METRIC."""
    results = []
    for row in compared.rows:
        if row.metric.name == METRIC:
            estimate = row.difference.estimate
            new, these = (high - low for low, high in (estimate.interval(new=new) for new in (True, False)))
            results.append(
                ContrastWidth(corpus, intents, compared.users, row.arm, estimate.mean, new, these, estimate.intents,
                              verdict_words(row))
            )  # fmt: skip
    return results


def medians_table(results: Sequence[ContrastWidth]) -> Table:
    """Median widths of each corpus and number of users, and relative to the first corpus."""
    rows = []
    for users in dict.fromkeys(result.users for result in results):
        first: float | None = None
        for corpus in dict.fromkeys(result.corpus for result in results):
            some = [result for result in results if (result.corpus, result.users) == (corpus, users)]
            new, these = median(result.new for result in some), median(result.these for result in some)
            first = new if first is None else first
            relative = median(result.new / abs(result.mean) for result in some)
            decided = sum(result.verdict in ("better", "worse") for result in some)
            rows.append((f"{users}", f"{some[0].intents}", f"{new:.4f}", f"{new / first:.2f}", f"{relative:.2f}",
                         f"{these:.4f}", f"{decided} of {len(some)}"))  # fmt: skip
    head = ("users", "intents", "new requests", "by that of the first", "by the difference", "these requests",
            "better or worse")  # fmt: skip
    return Table("Median width over contrasts", head, rows)


def contrasts_table(results: Sequence[ContrastWidth]) -> Table:
    """All contrasts."""
    rows = [
        (f"{r.users}", f"{r.intents}", r.arm, f"{r.mean:+.4f}", f"{r.new:.4f}", f"{r.these:.4f}", f"{r.carrying:.0f}",
         r.verdict)
        for r in results
    ]  # fmt: skip
    head = ("users", "intents", "arm", "difference", "new requests", "these requests", "intents that carry it",
            "verdict")  # fmt: skip
    return Table("Each contrast", head, rows)


def measured(users: Sequence[int], weeks: int, workers: int) -> list[ContrastWidth]:
    """Widths of all corpora at each number of users, from runs in a temporary folder."""
    results: list[ContrastWidth] = []
    for n in users:
        for corpus in CORPORA:
            with tempfile.TemporaryDirectory() as folder:
                size = (f"users={n}", f"weeks={weeks}", f"workers={workers}", f"out={Path(folder) / 'run'}")
                world = (f"simulator.corpus=[{corpus}]", "embedder=minilm", ARMS, "reference=never")
                run = skg_bench.run([*world, *size], progress=False)
                intents = len(corpus_of(corpus.split(",")).intents)
                results += contrast_widths(corpus, intents, skg_bench.compare(run))
    return results


def analyse(
    weeks: Annotated[int, typer.Option(help="Of each run.", min=1)] = WEEKS,
    workers: Annotated[int, typer.Option(help="Processes of each run.", min=1)] = 2,
) -> Report:
    """Makes its own runs, in two minutes of a core; needs CLINC150 and the extra `embed`. Nothing is checked."""
    results = measured(USERS, weeks, workers)
    parts: list[Table | str] = [WORDS.strip().format(METRIC, weeks), medians_table(results), contrasts_table(results)]
    return Report(parts, page("How wide intervals are by the number of intents", COMMAND, *parts))


EXPERIMENT = Experiment(analyse)
