"""How often the harness is right where the truth is known."""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import isnan, sqrt
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from experiments.known_truth import closed_loop, redrawn
from experiments.known_truth.heavy import LATER, HeavyWorld, sampled
from experiments.known_truth.heavy import WORLDS as WORLDS_OF_TAILS
from experiments.known_truth.quality import (
    COVERAGE,
    COVERAGE_HEADINGS,
    ERRORS,
    FALSE,
    VERDICT_HEADINGS,
    Drawn,
    Quality,
    quality,
)
from experiments.known_truth.worlds import (
    NULLS,
    WORLDS,
    Sample,
    World,
    bands_hold,
    difference,
    figure,
    injected,
    sample,
)  # fmt: skip
from skg_bench.analysis.statistics.intervals import ALPHA, LEVEL, Estimate
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.core.errors import UsageError
from skg_bench.study.replications import generator

COMMAND = "skg-bench experiment known_truth --write reports"
SIZES = ((30, 100), (40, 120, 300, 450))  # users, intents
GROUP = 10  # users of a replication in the closed loop
HEADINGS = (
    "world", "measured", "runs", "these requests", "new requests", "new, by user only", "better", "worse", "as due",
)  # fmt: skip

COVERS = "New requests: worlds of heavy tails"
COVER_WORDS = """
*Below*, *above*: shares of 95 % intervals whose truth lies below or above them, by two-way Student, by Hall's
transformation (used before), and now. *Width*: median, by that between the 2.5 and 97.5 % quantiles of the estimates.
Due are 93 to 97 % that hold the truth, 1 to 4 % on each side, and a width of at most 1.3, up to two Monte Carlo
standard errors and nothing more. *Not required*: the effect is borne by a smaller share of users or intents than 95 %
of such runs would see any of, as reports print. Samples whose verdict depends on the interval count as all others.
"""
VERDICTS = "Verdicts, and power at the sizes that are printed"
VERDICT_WORDS = """
Shares of runs that find the arm better or worse, leave it open, or say that it depends on the interval; *false*:
verdicts if a constant is added to every request so that the truth is 0 (due: at most 6.5 %). *Printed*: the median rise
and fall that runs call detectable in 80 %; *found*: verdicts of that sign if that is the truth (due: 75 to 90 %).
"""
LATER_WORDS = "Worlds that were written after the method was fixed"
DRAWN = """
The cells of a run of {} users over {} weeks are the population; users and intents are drawn from it again.
"""

Measurement = tuple[Estimate, float, float]  # estimate, truth for these requests, truth for new requests; NaN: unknown
Measured = Callable[[Sample], Measurement]


@dataclass(frozen=True)
class Rates:
    """Shares of replications; NaN where the truth is unknown."""

    replications: int
    these: float  # the interval "these requests" holds its truth
    new: float  # the interval "new requests" holds its truth
    these_for_new: float  # the first holds the second truth: what clustering by user alone would claim
    better: float  # significantly above 0, for new requests
    worse: float  # significantly below 0

    @property
    def error(self) -> float:
        """Monte Carlo standard error of a rate of 95 %."""
        return sqrt(LEVEL * ALPHA / self.replications)


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    world: str
    measured: str
    rates: Rates
    null: bool = False  # learning cannot help: what is found better is found by chance
    contrast: bool = True  # of two arms

    @property
    def holds(self) -> bool:
        """Coverage is as due (more is allowed for new requests), and chance findings are no more than due, up to Monte
        Carlo error.
        """
        r, far = self.rates, ERRORS * self.rates.error
        these = isnan(r.these) or COVERAGE[0] - far <= r.these <= COVERAGE[1] + far
        new = isnan(r.new) or r.new >= COVERAGE[0] - far
        return these and new and (not self.null or r.better <= FALSE[1] / 2 + far)

    def cells(self) -> tuple[str, ...]:
        """As text under HEADINGS."""
        r = self.rates
        detections = (r.better, r.worse) if self.contrast else (float("nan"), float("nan"))
        shares = (r.these, r.new, r.these_for_new, *detections)
        text = ("-" if isnan(share) else f"{100 * share:.1f} %" for share in shares)
        return (self.world, self.measured, f"{r.replications:,}", *text, "yes" if self.holds else "NO")


def rates(world: World, measured: Measured, replications: int, seed: int = 0) -> Rates:
    """Repeat the experiment in a world, other users and intents each time."""
    return counted(measured(sample(world, generator(seed, r))) for r in range(replications))


def counted(experiments: Iterable[Measurement]) -> Rates:
    """Rates over experiments.

    Raises UsageError if there are none.
    """
    rows = []
    for estimate, these, new in experiments:
        (low, high), (low_new, high_new) = estimate.interval(new=False), estimate.interval(new=True)
        significant = estimate.p(new=True) < ALPHA
        rows.append((
            np.nan if isnan(these) else low <= these <= high,
            np.nan if isnan(new) else low_new <= new <= high_new,
            np.nan if isnan(new) else low <= new <= high,
            significant and estimate.mean > 0,
            significant and estimate.mean < 0,
        ))  # fmt: skip
    if not rows:
        raise UsageError(f"no group of {GROUP} users has turns to compare; give more --users or --weeks")
    return Rates(len(rows), *(float(x) for x in np.array(rows, np.float64).mean(axis=0)))


def hierarchy(replications: int, seed: int) -> Iterator[Line]:
    """Worlds without an assistant: figures, injected effects, no effect, whole curves."""
    for world in WORLDS:
        yield Line(world.name, "share", rates(world, figure, replications, seed), contrast=False)
    for world in WORLDS:
        yield Line(world.name, "difference, effect injected", rates(injected(world), difference, replications, seed))
    for world in NULLS:
        yield Line(world.name, "difference, no effect", rates(world, difference, replications, seed), null=True)
    for users in (12, 24, 100):
        held = bands_hold(users, 26, replications, seed)
        unknown = float("nan")
        band = Rates(replications, held, unknown, unknown, unknown, unknown)
        yield Line(f"{users} users, 26 weeks", "whole curve in its band", band)


def loops(users: int, weeks: int, seed: int, size: int = GROUP, workers: int = 1) -> Iterator[Line]:
    """Worlds of the closed loop, played in a temporary folder."""
    for loop in (*closed_loop.CANNOT_HELP, closed_loop.NULL, *closed_loop.INJECTED):
        with tempfile.TemporaryDirectory() as folder:
            run = closed_loop.play(loop, Path(folder) / "run", users, weeks, seed, workers)
            error_rates = counted(closed_loop.replications(loop, run, size))
        what = "live - frozen" if loop.since else "better - worse LLM"
        yield Line(loop.name, what, error_rates, null=loop not in closed_loop.INJECTED)


def heavy_worlds(worlds: Iterable[HeavyWorld], replications: int, seed: int) -> list[Quality]:
    """Worlds of heavy tails, each at every size."""
    return [
        quality(
            world.name, users,
            [Drawn.of(*sampled(world, users, intents, generator(seed + 3, r))) for r in range(replications)],
            world.truth, required=world.seen(users, intents),
        )
        for world in worlds for users in SIZES[0] for intents in SIZES[1]
    ]  # fmt: skip


def skewed(replications: int, users: int, weeks: int, seed: int, workers: int = 1) -> list[Quality]:
    """The cells of a real run drawn again, by difference and number of users."""
    with tempfile.TemporaryDirectory() as folder:
        run = redrawn.play(Path(folder) / "run", users, weeks, seed, workers)
        populations = redrawn.populations(run)
    return [
        redrawn.qualities(population, drawn, replications, seed)
        for population in populations
        for drawn in redrawn.DRAWN
    ]


def analyse(
    replications: Annotated[int, typer.Option(help="Of each world without closed loop.", min=1)] = 2000,
    users: Annotated[int, typer.Option(help=f"Of each closed loop, {GROUP} a replication.", min=GROUP)] = 2400,
    weeks: Annotated[int, typer.Option(help="Of each closed loop.", min=1)] = 3,
    seed: int = 0,
    workers: Annotated[int, typer.Option(help="Processes for the closed loop.", min=1)] = 2,
    quick: Annotated[bool, typer.Option("--quick", help="300 replications, 400 users: a minute or two.")] = False,
) -> Report:
    """Makes its own runs, in half an hour; as expected if every line ends in yes."""
    real = redrawn.USERS, redrawn.WEEKS
    if quick:
        replications, users, real = 300, 400, (40, 8)
    lines = [*hierarchy(replications, seed), *loops(users, weeks, seed, workers=workers)]
    table = Table("How often 95 % intervals hold the truth", HEADINGS, [line.cells() for line in lines])
    known, later = (heavy_worlds(worlds, replications, seed) for worlds in (WORLDS_OF_TAILS, LATER))
    drawn = skewed(replications, *real, seed, workers)
    tables, parts = [table], [table.markdown()]
    for title, words, some in (
        (COVERS, "", known), (LATER_WORDS, "", later), ("A real run, drawn again", DRAWN.format(*real), drawn)
    ):  # fmt: skip
        covers = Table(title, COVERAGE_HEADINGS, [q.coverage_cells() for q in some])
        finds = Table(f"{title}: verdicts", VERDICT_HEADINGS, [q.verdict_cells() for q in some])
        heads = (COVER_WORDS, VERDICT_WORDS) if some is known else ("", "")
        tables += [covers, finds]
        parts += [
            f"## {covers.title}",
            words + heads[0],
            covers.markdown(),
            f"### {VERDICTS}",
            heads[1],
            finds.markdown(),
        ]
    holds = all(line.holds for line in lines) and all(q.holds for q in (*known, *later, *drawn))
    return Report(tables, page(table.title, COMMAND, *(part for part in parts if part)), holds=holds)


EXPERIMENT = Experiment(analyse)
