"""`skg-bench run --check`: is everything in a run folder as it was written, and does it fit together?"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from time import sleep

import numpy as np
from rich.console import Console

from skg_bench.app.progress import console
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import text_of
from skg_bench.core.text import plural
from skg_bench.runfolder import shards
from skg_bench.runfolder.deliveries import noted_deliveries
from skg_bench.runfolder.lock import worked_on
from skg_bench.runfolder.manifest import MANIFEST
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.wholeness import faults

_LOOKS, _PAUSE = 2, 0.25  # further looks at what is wrong, and seconds before each


def check_runs(texts: Sequence[str]) -> bool:
    """Check run folders, or those of the runs that overrides describe; returns whether all is as it was written.

    Raises UsageError for what is neither.
    """
    screen = console()
    folders = (
        [Path(text) for text in texts] if texts and all((Path(t) / MANIFEST).exists() for t in texts) else [_out(texts)]
    )
    return not [folder for folder in folders if not _checked(folder, screen)]


def _out(texts: Sequence[str]) -> Path:
    from skg_bench.app.compose import compose
    from skg_bench.app.launch import prepare

    if named := [text for text in texts if "=" not in text]:
        raise UsageError(
            f"--check {named[0]}: this is no folder of a run; give such folders, or the overrides of a run"
        )
    job = prepare(compose(list(texts)))
    if job.state == "new":
        raise UsageError(f"{job.out} is not there; the same command without --check makes it")
    return job.out


def _checked(folder: Path, screen: Console) -> bool:
    lines, busy = _lasting(folder)
    for line in lines:
        screen.print(line, soft_wrap=True, markup=False, highlight=False)
    n_faults = len(lines)
    try:
        run = Run(folder)
    except UsageError:
        return False
    files = [file for log in shards.LOGS for arm in run.arms for file in run.shards(log, arm) if file.exists()]
    size = sum(file.stat().st_size for file in files) / 1e6
    state = "at work, tables and page not looked at, " if busy else "" if run.finished else "unfinished, "
    end = "all is as it was written" if not n_faults else plural(n_faults, "fault")
    screen.print(
        f"{folder}: {state}{len(run.arms)} arms, {len(files):,} files of logs, {size:,.1f} MB: {end}", soft_wrap=True
    )
    return not n_faults


def _lasting(folder: Path) -> tuple[list[str], bool]:
    """Faults that every one of several looks finds, and whether a process works on the run. Files change between two
    reads of a look while a run goes on, and while `report` writes them anew: such a difference is gone at the next one.
    """
    busy = worked_on(folder)
    lines = list(_lines(folder, busy=busy))
    for _ in range(_LOOKS):
        if not lines:
            break
        sleep(_PAUSE)
        busy = busy or worked_on(folder)
        again = set(_lines(folder, busy=busy))
        lines = [line for line in lines if line in again]
    return lines, busy


def _lines(folder: Path, *, busy: bool) -> Iterator[str]:
    """Faults, a line each. Rows are looked at where all files are whole. `busy`: tables are being written."""
    try:
        run = Run(folder)
        lines = list(faults(run, tables=not busy))
        yield from lines
        yield from _unread_deliveries(run)
        if not lines:
            yield from _misfits(run)
        if not lines and run.finished and not busy:
            yield from _other_tables(run)
    except UsageError as error:
        yield str(error)


def _unread_deliveries(run: Run) -> Iterator[str]:
    """Lines on deliveries that cannot be read, so that `forget` cannot find these copies."""
    try:
        yield from noted_deliveries(run.path)[1]
    except UsageError as error:
        yield str(error)


def _misfits(run: Run) -> Iterator[str]:
    """Rows that do not belong to one another: of users and turns that are in no turn log, or of other events."""
    first = None
    for arm in run.arms:
        if not run.shards("turns", arm):
            continue
        turns = run.turns(arm, ["event", "time"])
        user, turn = (turns[name].to_numpy().astype(np.int64) for name in ("user", "turn"))
        if len(user) and (bad := np.flatnonzero(turn != np.arange(len(user)) - np.searchsorted(user, user))).size:
            yield f"arm {arm}: user {user[bad[0]]} lacks a turn before turn {turn[bad[0]]}, or has it twice"
        events = (user, turn, turns["time"].to_numpy())
        if (
            run.finished
            and first is not None
            and not all(np.array_equal(a, b) for a, b in zip(first, events, strict=True))
        ):
            yield f"arm {arm} has other events than arm {run.arms[0]}"
        first = first or events
        known, present = (user << 32) + turn, np.unique(user // shards.SHARD_USERS)  # other shards have come since
        for log in shards.IN_ORDER[:-1]:
            rows = getattr(run, log)(arm, [])
            whose = rows["user"].to_numpy().astype(np.int64)
            about = (whose << 32) + np.maximum(rows["turn"].to_numpy(), 0)
            if lost := int((~np.isin(about, known) & np.isin(whose // shards.SHARD_USERS, present)).sum()):
                yield f"arm {arm}: {lost:,} rows of {log} are of turns that are not there"


def _other_tables(run: Run) -> Iterator[str]:
    """Tables that are not what the logs say."""
    from skg_bench.analysis import summary

    content, curves = summary.describe(run)
    for name, text in (("summary.json", content.to_json()), ("curves.csv", summary.csv(curves))):
        if text_of(run.table(name)) != text:
            yield f"{run.path / name} is not what the logs say; `skg-bench report {run.path}` makes it again"
