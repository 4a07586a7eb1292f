"""Trials of faults by rows, and the page about them."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import local

from experiments.bench.faults.lab import Bench, Lab, Trial
from experiments.bench.faults.outcomes import Outcome, failures, holds, places, table
from experiments.bench.faults.reader import Reader
from skg_bench.app.experiment_report import Report, page
from skg_bench.core.errors import UsageError

_TOLD_EVERY = 10.0  # s between two lines of progress


@dataclass(frozen=True)
class Row:
    """A fault, and how often the whole trial has it happen."""

    count: int
    trial: Trial


def chosen(rows: Mapping[str, Row], only: Sequence[str], share: float) -> list[tuple[str, int]]:
    """Trials by row and number; `only`: their names, or ROW:TRIAL.

    Raises UsageError for an unknown row.
    """
    if unknown := [name for name in only if name.partition(":")[0] not in rows]:
        raise UsageError(f"--only {unknown[0]}: there is no such row; rows are {', '.join(rows)}")
    try:
        single = [(name.partition(":")[0], int(name.partition(":")[2])) for name in only if ":" in name]
    except ValueError as error:
        raise UsageError(f"--only {' '.join(only)}: give ROW, or ROW:TRIAL with a number") from error
    whole = [name for name in rows if name in only or not only]
    return [*single, *((name, i) for name in whole for i in range(max(1, round(rows[name].count * share))))]


def trials(
    rows: Mapping[str, Row],
    lab: Lab,
    wanted: Sequence[tuple[str, int]],
    jobs: int,
    minutes: float,
    tell: Callable[[str], None],
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
            return rows[row].trial(Bench(lab, mine.reader, row, number, Path(name), stack))

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


def report(
    title: str,
    rows: Sequence[str],
    outcomes: Sequence[Outcome],
    left: Sequence[str],
    seed: int,
    command: str,
    seconds: float,
) -> Report:
    """The tables of these outcomes; the figures are as expected if nothing was lost unsaid."""
    order = {name: number for number, name in enumerate(rows)}
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
    return Report([*parts, *lines], page(title, command, about, *lines, *parts), holds(outcomes))
