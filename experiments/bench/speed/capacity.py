"""Costs of a population: processor time and bytes, from runs of a few hundred users, and memory, from a large one.

A cohort takes as many steps as its busiest user has turns, and each step and each turn has its price; so has a whole
run, before and after its turns. The prices are fitted to small runs of one arm each, in processes of their own, and
held against runs that were not fitted. Numbers of steps and turns are those of the plan, which a run of any size has.
"""

import hashlib
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import typer
from scipy.optimize import nnls

from skg_bench.app.compose import compose
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.app.launch import prepare
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64
from skg_bench.engine.tasks import WHOLE, Existing, ours, tasks_left
from skg_bench.runfolder.shards import LOGS

ARMS: Mapping[str, Sequence[str]] = {  # the cheapest, the default, and the one with the widest books
    "never": ("policy=never", "curator=none"),
    "skg": (),
    "everything": ("curator=everything",),
}
FITTED = (  # users, weeks, and rows of a cohort
    (2, 1, 512), (64, 4, 512), (400, 2, 512), (8, 26, 512), (256, 8, 512), (32, 26, 512), (400, 6, 32),
)  # fmt: skip
HELD_OUT = ((128, 12, 512), (500, 2, 512), (1000, 2, 128))
ASKED = (  # users, weeks
    (10_000, 1), (10_000, 26), (200_000, 1), (1_000_000, 1), (1_000_000, 26),
)  # fmt: skip
CORES = (2, 64, 1024)
MARK = 1.5  # a run that was not fitted takes at most so many times what was predicted, or one part of so many
_SAMPLE = 20_000  # users whose events are counted; larger populations are made of so many at a time
_EVERY, _MOMENTS = 2.0, 12  # seconds between two looks at memory, and how many of these are shown
_GIB, _PAGE = 2.0**30, os.sysconf("SC_PAGE_SIZE")  # bytes


@dataclass(frozen=True)
class Size:
    """How much there is to do in a run of one arm."""

    users: int
    weeks: int
    turns: float
    steps: float  # of all cohorts

    @property
    def worked(self) -> F64:
        """Amounts of what takes time: the run, a step, a turn, and a turn for each week of the run, as books grow."""
        return np.array([1.0, self.steps, self.turns, self.turns * self.weeks])


@dataclass(frozen=True)
class Spent:
    """Time, memory and bytes that a run took."""

    cpu: float  # seconds, of all its processes
    memory: float  # most that its process held, bytes
    disk: float  # bytes of its logs


@dataclass(frozen=True)
class Prices:
    """Prices of an arm."""

    cpu: F64  # of what is `Size.worked`, seconds
    disk: float  # of a turn, bytes

    def cpu_of(self, size: Size) -> float:
        """Seconds that a run of this size takes."""
        return float(self.cpu @ size.worked)

    def disk_of(self, size: Size) -> float:
        """Bytes of its logs."""
        return self.disk * size.turns


def size_of(arm: str, users: int, weeks: int, cohort: int = 512) -> Size:
    """Turns and steps of a run, from its plan. No turn is simulated."""
    counted = min(users, _SAMPLE)
    plan = prepare(compose([*overrides(arm, counted, weeks), f"cohort={cohort}"])).plan
    counts = plan.simulator.count(plan.salted, np.arange(counted, dtype=np.int32), weeks)
    mine = ours(plan, WHOLE)
    tasks = tasks_left(plan, counts, Existing(mine, mine, []), cohort).tasks
    times, turns = users / counted, counts.astype(np.float64)
    return Size(
        users,
        weeks,
        times * float(turns.sum()),
        times * float(sum(counts[task.users].max() for task in tasks)),
    )


def overrides(arm: str, users: int, weeks: int) -> list[str]:
    """A run of one arm."""
    return [f"arms={{{arm}: [{','.join(ARMS[arm])}]}}", f"reference={arm}", f"users={users}", f"weeks={weeks}"]


def spent(words: Sequence[str], out: Path, held: list[tuple[float, float]] | None = None) -> Spent:
    """Carry out a run in a process of its own. `held` takes seconds since its begin, and bytes that it and its workers
    hold then; what they share is counted for each.

    Raises SystemExit if it fails.
    """
    command = [sys.executable, "-m", "skg_bench", "run", *words, f"out={out}"]
    process, begun = Popen(command, stdout=DEVNULL, stderr=DEVNULL), time.perf_counter()  # noqa: S603  our own command
    while held is not None and os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        held.append((time.perf_counter() - begun, _resident(process.pid)))
        time.sleep(_EVERY)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}")
    disk = sum(file.stat().st_size for log in LOGS for file in (out / log).glob("*.parquet"))
    return Spent(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024.0, disk)


def _resident(process: int) -> float:
    """Bytes that a process and its children hold (Linux)."""
    try:
        folder = Path(f"/proc/{process}")
        children = (folder / "task" / str(process) / "children").read_text().split()
        return int((folder / "statm").read_text().split()[1]) * _PAGE + sum(_resident(int(child)) for child in children)
    except OSError:  # it has ended
        return 0.0


def fitted(sizes: Sequence[Size], took: Sequence[Spent]) -> Prices:
    """Prices, none below zero, that miss the runs by the smallest shares of what each took."""
    terms, cpu = np.array([size.worked for size in sizes]), np.array([run.cpu for run in took])
    weights = nnls(terms / cpu[:, None], np.ones(len(sizes)))[0]
    return Prices(weights, sum(run.disk for run in took) / sum(size.turns for size in sizes))


def measured(arm: str, folder: Path, given: Sequence[tuple[int, int, int]]) -> tuple[list[Size], list[Spent]]:
    """Runs of an arm with so many users, weeks, and rows of a cohort each."""
    sizes = [size_of(arm, *each) for each in given]
    took = [
        spent([*overrides(arm, users, weeks), f"cohort={cohort}"], folder / f"{arm}-{nth}-{users}")
        for nth, (users, weeks, cohort) in enumerate(given)
    ]
    return sizes, took


# -------------------------------------------------------------------------------------------------- tables


def _prices(prices: Mapping[str, Prices]) -> Table:
    rows = [
        (
            arm, f"{at.cpu[0]:.1f} s", f"{1e3 * at.cpu[1]:.2f} ms", f"{1e6 * at.cpu[2]:.1f} us",
            f"{1e6 * at.cpu[3]:.2f} us", f"{at.disk:.0f}",
        )
        for arm, at in prices.items()
    ]  # fmt: skip
    headings = ("arm", "a run", "a step", "a turn", "a turn, for each week of the run", "bytes of logs a turn")
    return Table("Prices on this machine", headings, rows)


def _times(actual: float, predicted: float) -> str:
    return f"{actual / predicted:.2f}x"


def _held_out(prices: Mapping[str, Prices], checks: Sequence[tuple[str, Size, Spent]]) -> Table:
    rows = [
        (
            f"{arm}, {size.users:,} users x {size.weeks} weeks", f"{size.turns:,.0f}", f"{took.cpu:.1f} s",
            _times(took.cpu, prices[arm].cpu_of(size)), _times(took.disk, prices[arm].disk_of(size)),
        )
        for arm, size, took in checks
    ]  # fmt: skip
    headings = ("run that was not fitted", "turns", "CPU time", "of what was predicted", "bytes")
    return Table("Held against the prices", headings, rows)


def _asked(prices: Mapping[str, Prices]) -> Table:
    rows = []
    for users, weeks in ASKED:
        for arm, price in prices.items():
            size = size_of(arm, users, weeks)
            hours = [price.cpu_of(size) / 3600 / cores for cores in CORES]
            sizes = f"{size.turns:,.0f}", *map(_time, hours), f"{price.disk_of(size) / _GIB:,.1f} GiB"
            rows.append((f"{users:,} users x {weeks} weeks", arm, *sizes))
    headings = ("population", "arm", "turns", *(f"{n:,} cores" for n in CORES), "logs")
    return Table("What populations take", headings, rows)


def _time(hours: float) -> str:
    if hours < 0.1:
        return f"{max(3600 * hours, 1):,.0f} s"
    if hours < 1.5:
        return f"{60 * hours:.0f} min"
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} days"


COMMAND = "skg-bench experiment speed/capacity --check {users} --write reports"
NOTE = (
    "All cores are taken to be at work: a task is a cohort of 512 rows, so a thousand cores need half a million users "
    "times arms. Arms of one run share the steps of its cohorts, and so cost less together than one by one. Tables and "
    "the page are made by one process at the end."
)


def analyse(
    arms: Annotated[str, typer.Option(help=f"Of {', '.join(ARMS)}; by commas.")] = ",".join(ARMS),
    quick: Annotated[bool, typer.Option("--quick", help="Three small runs an arm, none held against them.")] = False,
    check: Annotated[int, typer.Option(help="Users of a week to carry out whole, by two workers; 0: none.", min=0)] = 0,
) -> Report:
    """As expected if runs that were not fitted take what the prices say, within half as much again."""
    chosen = [arm.strip() for arm in arms.split(",")]
    if unknown := [arm for arm in chosen if arm not in ARMS]:
        raise UsageError(f"there is no arm {unknown[0]!r}; valid are {', '.join(ARMS)}")
    prices, checks, parts = dict[str, Prices](), list[tuple[str, Size, Spent]](), list[Table | str]()
    with TemporaryDirectory() as folder:
        for arm in chosen:
            prices[arm] = fitted(*measured(arm, Path(folder), FITTED[:3] if quick else FITTED))
            sizes, took = measured(arm, Path(folder), () if quick else HELD_OUT)
            checks += [(arm, *each) for each in zip(sizes, took, strict=True)]
        parts += [_prices(prices), *([] if quick else [_held_out(prices, checks)]), _asked(prices), NOTE]
        if check:
            parts += _checked(chosen[-1] if "skg" not in chosen else "skg", prices, check, Path(folder))
    near = [1 / MARK < took.cpu / prices[arm].cpu_of(size) < MARK for arm, size, took in checks]
    return Report(parts, page("What a population takes", COMMAND.format(users=check), *parts), holds=all(near))


# -------------------------------------------------------------------------------------- one run that is carried out


def _checked(arm: str, prices: Mapping[str, Prices], users: int, folder: Path) -> tuple[Table, Table]:
    """A run of a week by two workers, and by four parts, one after the other: time, memory, and whether bytes agree."""
    size, begun, held = size_of(arm, users, 1), time.perf_counter(), list[tuple[float, float]]()
    words = overrides(arm, users, 1)
    whole = spent([*words, "workers=2"], folder / "whole", held)
    seconds = time.perf_counter() - begun
    parts = [spent([*words, f"part={i}/4"], folder / "parts") for i in range(4)]
    same = shards_of(folder / "whole") == shards_of(folder / "parts")
    rows = [
        ("turns", f"{size.turns:,.0f}", ""),
        ("CPU time, workers=2", f"{whole.cpu:,.0f} s", f"{_times(whole.cpu, prices[arm].cpu_of(size))} of the prices"),
        ("time, workers=2", f"{seconds:,.0f} s", ""),
        ("largest memory of a process, workers=2", f"{whole.memory / _GIB:.2f} GiB", ""),
        ("logs", f"{whole.disk / _GIB:.2f} GiB", f"{_times(whole.disk, prices[arm].disk_of(size))} of the prices"),
        ("CPU time, four parts", f"{sum(part.cpu for part in parts):,.0f} s", ""),
        ("largest memory of a process, four parts", f"{max(part.memory for part in parts) / _GIB:.2f} GiB", ""),
        ("shards of the four parts", "the same bytes" if same else "OTHER BYTES", ""),
    ]  # fmt: skip
    at = np.linspace(0, len(held) - 1, min(len(held), _MOMENTS)).round().astype(int).tolist()
    moments = [(f"{held[i][0]:,.0f} s", f"{held[i][1] / _GIB:.2f} GiB") for i in at]
    return (
        Table(f"Carried out: {arm}, {users:,} users x 1 week", ("figure", "measured", ""), rows),
        Table("Memory of all its processes over time, workers=2", ("after", "resident"), moments),
    )


def shards_of(out: Path) -> Mapping[str, bytes]:
    """Digests of the logs of a run, by file."""
    files = sorted(file for log in LOGS for file in (out / log).glob("*.parquet"))
    return {f"{file.parent.name}/{file.name}": hashlib.sha256(file.read_bytes()).digest() for file in files}


EXPERIMENT = Experiment(analyse, one_thread=True)
