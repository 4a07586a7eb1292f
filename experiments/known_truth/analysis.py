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
from experiments.known_truth.worlds import (
    NULLS,
    WORLDS,
    Sample,
    World,
    bands_hold,
    difference,
    figure,
    generator,
    injected,
    sample,
)  # fmt: skip
from skg_bench.analysis.statistics.intervals import ALPHA, LEVEL, Estimate
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.core.errors import UsageError

COMMAND = "skg-bench experiment known_truth --write reports"
SLACK = 0.02  # how far a rate may be from nominal beyond its Monte Carlo error
GROUP = 10  # users of a replication in the closed loop
HEADINGS = (
    "world", "measured", "runs", "these requests", "new requests", "new, by user only", "better", "worse", "as due",
)  # fmt: skip

COVERS = "Misses of intervals for new requests where few intents carry the difference"
DRAWN = """
Shares of 95 % intervals that the truth lies below or above. The cells of a run of {} users over {} weeks are the
population; users and intents are drawn from it again. *Student*: the interval before, not corrected for skewness.
"""
POWERS = """
A constant is added to every request, so that the true difference is the median of what runs print as detectable (80 %,
one test). *Before*: Student's interval, and a verdict needed significance and an estimate of the detectable size; now
significance decides. *False*: verdicts where the difference is 0.
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
        """Coverage is nominal (more is allowed for new requests), and chance findings are at most nominal."""
        r, far = self.rates, SLACK + 3 * self.rates.error
        these = isnan(r.these) or abs(r.these - LEVEL) <= far
        new = isnan(r.new) or r.new >= LEVEL - far
        return these and new and (not self.null or r.better <= ALPHA / 2 + far)

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


def skewed(replications: int, users: int, weeks: int, seed: int, workers: int = 1) -> list[redrawn.Rates]:
    """The cells of a real run drawn again, by difference and number of users."""
    with tempfile.TemporaryDirectory() as folder:
        run = redrawn.play(Path(folder) / "run", users, weeks, seed, workers)
        populations = redrawn.populations(run)
    return [
        redrawn.rates(population, drawn, replications, seed) for population in populations for drawn in redrawn.DRAWN
    ]


def analyse(
    replications: Annotated[int, typer.Option(help="Of each world without closed loop.", min=1)] = 2000,
    users: Annotated[int, typer.Option(help=f"Of each closed loop, {GROUP} a replication.", min=GROUP)] = 2400,
    weeks: Annotated[int, typer.Option(help="Of each closed loop.", min=1)] = 3,
    seed: int = 0,
    workers: Annotated[int, typer.Option(help="Processes for the closed loop.", min=1)] = 2,
    quick: Annotated[bool, typer.Option("--quick", help="300 replications, 400 users: a minute or two.")] = False,
) -> Report:
    """Makes its own runs, in fifteen minutes; as expected if every line ends in yes."""
    real = redrawn.USERS, redrawn.WEEKS
    if quick:
        replications, users, real = 300, 400, (40, 8)
    lines = [*hierarchy(replications, seed), *loops(users, weeks, seed, workers=workers)]
    table = Table("How often 95 % intervals hold the truth", HEADINGS, [line.cells() for line in lines])
    drawn = skewed(replications, *real, seed, workers)
    covers = Table(COVERS, redrawn.HEADINGS, [rates.coverage() for rates in drawn])
    finds = Table("Verdicts at the size that is printed", redrawn.POWER_HEADINGS,
                  [rates.power() for rates in drawn])  # fmt: skip
    parts = (DRAWN.format(*real), covers.markdown(), f"## {finds.title}", POWERS, finds.markdown())
    holds = all(line.holds for line in lines) and all(rates.holds for rates in drawn)
    return Report(
        [table, covers, finds], page(table.title, COMMAND, table.markdown(), f"## {covers.title}", *parts), holds=holds
    )


EXPERIMENT = Experiment(analyse)
