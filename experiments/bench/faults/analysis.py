"""Faults by chance against the command line, and what became of the runs."""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import local
from typing import Annotated

import typer

from experiments.bench.faults.commands import READERS, killed, locks, recorded
from experiments.bench.faults.damage import damaged, foreign
from experiments.bench.faults.disk import full
from experiments.bench.faults.kills import parent, worker
from experiments.bench.faults.lab import Bench, Lab, Trial
from experiments.bench.faults.outcomes import Outcome, failures, holds, places, table
from experiments.bench.faults.reader import Reader
from experiments.bench.faults.rivals import moved, three_parts, two
from experiments.bench.faults.special import special
from skg_bench.app.experiment_report import Report, page
from skg_bench.app.experiments import Experiment
from skg_bench.app.progress import console
from skg_bench.core.errors import UsageError

TITLE = "Does a figure of a run ever change unsaid?"
COMMAND = "skg-bench experiment faults"
_TOLD_EVERY = 10.0  # s between two lines of progress


@dataclass(frozen=True)
class Row:
    """A fault, and how often the whole trial has it happen."""

    count: int
    trial: Trial


ROWS: Mapping[str, Row] = {
    "parent": Row(100, parent), "worker": Row(100, worker), "disk": Row(40, full), "cut": Row(60, damaged),
    "flip": Row(200, damaged), "removed": Row(60, damaged), "two_equal": Row(10, two), "two_cohorts": Row(10, two),
    "moved": Row(10, moved), "foreign": Row(10, foreign), "parts": Row(3, three_parts),
    **dict.fromkeys(READERS, Row(60, killed)), "recorded": Row(40, recorded), "locks": Row(57, locks),
    "special": Row(60, special),
}  # fmt: skip


def chosen(only: Sequence[str], share: float) -> list[tuple[str, int]]:
    """Trials by row and number; `only`: names of rows, or ROW:TRIAL.

    Raises UsageError for an unknown row.
    """
    if unknown := [name for name in only if name.partition(":")[0] not in ROWS]:
        raise UsageError(f"--only {unknown[0]}: there is no such row; rows are {', '.join(ROWS)}")
    try:
        single = [(name.partition(":")[0], int(name.partition(":")[2])) for name in only if ":" in name]
    except ValueError as error:
        raise UsageError(f"--only {' '.join(only)}: give ROW, or ROW:TRIAL with a number") from error
    rows = [name for name in ROWS if name in only or not only]
    return [*single, *((name, i) for name in rows for i in range(max(1, round(ROWS[name].count * share))))]


def trials(
    lab: Lab, wanted: Sequence[tuple[str, int]], jobs: int, minutes: float, tell: Callable[[str], None]
) -> Iterator[Outcome]:
    """Carry them out, `jobs` at once, as they end; those that have not begun after so many minutes are left out."""
    deadline, readers, mine = time.monotonic() + 60 * minutes, list[Reader](), local()

    def carry_out(row: str, number: int) -> Outcome | None:
        if time.monotonic() > deadline or lab.stop.is_set():
            return None
        if not hasattr(mine, "reader"):
            mine.reader = Reader(lab.limit, lab.stop)
            readers.append(mine.reader)
        with tempfile.TemporaryDirectory(prefix=f"{row}-{number}-", dir=lab.home) as name, ExitStack() as stack:
            return ROWS[row].trial(Bench(lab, mine.reader, row, number, Path(name), stack))

    pool = ThreadPoolExecutor(jobs)
    try:
        futures = [pool.submit(carry_out, row, number) for row, number in wanted]
        last = time.monotonic()
        for count, future in enumerate(as_completed(futures), 1):
            outcome = future.result()
            if outcome is not None and outcome.end not in ("survived", "refused"):
                tell(f"{outcome.row}:{outcome.trial} {outcome.where}: {outcome.end}: {outcome.reason}")
            if time.monotonic() > last + _TOLD_EVERY or count == len(wanted):
                last = time.monotonic()
                tell(f"{count} of {len(wanted)} trials")
            if outcome is not None:
                yield outcome
    except BaseException:
        lab.stop.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        for reader in readers:
            reader.close()


def analyse(
    seed: Annotated[int, typer.Option(help="Of all moments, places and bits.", min=0)] = 0,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="ROW[:TRIAL]", help=f"One of {', '.join(ROWS)}, or one trial of it; may be given again."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of all trials.")] = False,
    share: Annotated[float, typer.Option(help="Of all trials.", min=0.001, max=10.0)] = 1.0,
    jobs: Annotated[int, typer.Option(help="Trials at once.", min=1, max=64)] = 2,
    limit: Annotated[float, typer.Option(help="Seconds that a command may take before it counts as hung.")] = 90.0,
    minutes: Annotated[float, typer.Option(help="After which no further trial begins.")] = 60.0,
    folder: Annotated[Path, typer.Option(help="Where temporary runs lie.")] = Path("runs"),
) -> Report:
    """Kills commands and workers, fills disks, cuts, changes and removes files, puts others in their place, moves
    folders, leaves locks of wrong clocks; then the same command
    has to end with the same bytes. The exit code is 1 where a figure changed unsaid, a command hung, or a message did
    not say what to do.
    """
    wanted = chosen(only or [], share * (0.1 if quick else 1.0))
    screen, began, outcomes = console(sys.stderr), time.monotonic(), list[Outcome]()
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="faults-", dir=folder.resolve(), ignore_cleanup_errors=True) as home:
        lab = Lab(Path(home), seed, limit)
        lab.prepare()
        left = [f"{name}: this version has none" for name, known in _features(lab) if not known]
        wanted = [each for each in wanted if each[0] != "parts" or lab.parts]
        try:
            for outcome in trials(lab, wanted, jobs, minutes, lambda line: screen.print(line, soft_wrap=True)):
                outcomes.append(outcome)
        except KeyboardInterrupt:
            table(outcomes).show(console())
            raise
    if len(outcomes) < len(wanted):
        late = len(wanted) - len(outcomes)
        left.append(
            f"{late} trials that had not begun after {minutes:g} minutes, or whose process ended before its kill"
        )
    return report(outcomes, left, seed, _command(seed, only or [], share, quick=quick), time.monotonic() - began)


def _features(lab: Lab) -> list[tuple[str, bool]]:
    return [("run --check", lab.checks), ("part=I/N", lab.parts)]


def _command(seed: int, only: Sequence[str], share: float, *, quick: bool) -> str:
    words = [f"--seed {seed}"] * (seed > 0) + [f"--only {name}" for name in only]
    words += [f"--share {share:g}"] * (share != 1.0) + ["--quick"] * quick
    return " ".join([COMMAND, *words, "--write reports"])


def report(outcomes: Sequence[Outcome], left: Sequence[str], seed: int, command: str, seconds: float) -> Report:
    """The tables of these outcomes; the figures are as expected if nothing was lost unsaid."""
    order = {name: number for number, name in enumerate(ROWS)}
    outcomes = sorted(outcomes, key=lambda each: (order[each.row], each.fault, each.trial))
    parts = [table(outcomes), places(outcomes)]
    if any(each.end != "survived" for each in outcomes):
        parts.append(failures(outcomes))
    about = (
        f"{len(outcomes)} trials of seed {seed} in {seconds / 60:.1f} minutes. *Survived*: the same command then ended "
        "with the bytes of all shards, `summary.json` and `curves.csv` of the undisturbed run. *Lost*: a figure "
        "differed with exit code 0 and without a message that names the file. In messages, numbers and names are "
        "replaced."
    )
    lines = [f"Left out: {line}." for line in left]
    return Report([*parts, *lines], page(TITLE, command, about, *lines, *parts), holds(outcomes))


EXPERIMENT = Experiment(analyse, one_thread=True)
