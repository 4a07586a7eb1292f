"""Start of a large run: memory and time up to its first cohort.

The mark: the process that hands out the tasks holds less than 1 GiB, however many users there are.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from experiments.bench.speed.footprint import most_held
from skg_bench.app.compose import compose
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.app.launch import prepare, start

MARK = 1.0  # GiB


@dataclass(frozen=True)
class Start:
    """Needs of a run up to its first cohort; times are seconds from the first line of the program."""

    turns: int  # of all arms
    counted: float  # the number of turns is known
    first_turns: float  # workers report turns
    first_cohort: float
    memory: float  # most that the driver held, GiB


class _EnoughError(Exception):
    """The first cohort is done."""


def measured(overrides: list[str], begun: float) -> Start:
    """Start a run with these overrides in a folder that is then deleted."""
    total, seconds = 0, dict[str, float]()

    with TemporaryDirectory() as folder:
        out = Path(folder) / "run"

        def progress(done: int, turns: int) -> None:
            nonlocal total
            total, now = turns, time.perf_counter() - begun
            seconds.setdefault("counted", now)
            if done:
                seconds.setdefault("first_turns", now)
            if any(out.glob("pieces/*.piece")):
                seconds["first_cohort"] = now
                raise _EnoughError

        try:
            start(prepare(compose([*overrides, f"out={out}"])), progress)
        except _EnoughError:
            return Start(total, seconds["counted"], seconds["first_turns"], seconds["first_cohort"], most_held())
    raise SystemExit("the run ended before its first cohort was seen; give it more users")


COMMAND = "skg-bench experiment speed/population --write reports"
HEADINGS = ("figure", "measured", "mark", "ratio to the mark")


def analyse(
    users: Annotated[int, typer.Option(help="Of the run, which ends at its first cohort.", min=1)] = 200_000,
    weeks: Annotated[int, typer.Option(min=1)] = 26,
) -> Report:
    """As expected if the process that hands out the tasks holds less than 1 GiB."""
    result = measured([f"users={users}", f"weeks={weeks}", "workers=2"], time.perf_counter())
    rows = [
        ("turns of all arms", f"{result.turns:,}", "", ""),
        ("counted after", f"{result.counted:.1f} s", "", ""),
        ("first turns after", f"{result.first_turns:.1f} s", "", ""),
        ("first cohort kept after", f"{result.first_cohort:.1f} s", "", ""),
        ("driver, at most", f"{result.memory:.2f} GiB", f"{MARK:.2f}", f"{result.memory / MARK:.2f}x"),
    ]
    table = Table(f"{users:,} users x {weeks} weeks", HEADINGS, rows)
    return Report([table], page("The start of a large run", COMMAND, table), holds=result.memory < MARK)


EXPERIMENT = Experiment(analyse, one_thread=True)
