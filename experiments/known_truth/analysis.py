"""How often the harness is right where the truth is known: `python -m experiments.known_truth.analysis`."""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import isnan, sqrt
from pathlib import Path

import numpy as np

from experiments.known_truth import closed_loop
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

SLACK = 0.02  # how far a rate may be from nominal beyond its Monte Carlo error
GROUP = 10  # users of a replication in the closed loop
HEADINGS = (
    "world", "measured", "runs", "these requests", "new requests", "new, by user only", "better", "worse", "as due",
)  # fmt: skip

Experiment = tuple[Estimate, float, float]  # estimate, truth for these requests, truth for new requests; NaN: unknown
Measured = Callable[[Sample], Experiment]


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


def counted(experiments: Iterable[Experiment]) -> Rates:
    """Rates over experiments."""
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


def markdown(lines: Iterable[Line]) -> str:
    """The table as a report."""
    rows = [HEADINGS, ("---",) * len(HEADINGS), *(line.cells() for line in lines)]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"# How often 95 % intervals hold the truth\n\n`python -m experiments.known_truth.analysis`\n\n{table}"


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 if a rate is not as it should be."""
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(prog="python -m experiments.known_truth.analysis", description=__doc__)
    parser.add_argument("--replications", type=int, default=2000, help="of each world without an assistant")
    parser.add_argument("--users", type=int, default=2400, help=f"of each closed loop, {GROUP} a replication")
    parser.add_argument("--weeks", type=int, default=3, help="of each closed loop")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes for the closed loop")
    parser.add_argument("--quick", action="store_true", help="300 replications, 400 users: a minute or two")
    parser.add_argument("--write", type=Path, help="also write the table here, as markdown")
    given = parser.parse_args(arguments)
    replications, users = (300, 400) if given.quick else (given.replications, given.users)
    lines = [*hierarchy(replications, given.seed), *loops(users, given.weeks, given.seed, workers=given.workers)]
    table = Table(*HEADINGS, title="How often 95 % intervals hold the truth")
    for line in lines:
        table.add_row(*line.cells())
    Console(width=150).print(table)
    if given.write:
        given.write.write_text(markdown(lines), "utf-8")
    return 0 if all(line.holds for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
