"""How far a run is: a bar on a terminal, a plain line every few seconds elsewhere."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.text import Text

from skg_bench.core.text import plural, printable, wrapped

Report = Callable[[int, int], None]
_REPLAYED = "skg_bench.simulator.logs.recorded.Recorded"  # a log may hold fewer users and weeks than are asked for
_LEAST_WIDTH = 20  # columns; COLUMNS=0, as some programs set it, means that the width is not known
_EVERY = 5.0  # seconds between plain lines
_EARLY = 0.05  # share that is done before it is said how long the rest takes: the first turns are slow


class _Rate(TextColumn):
    """Turns, or texts, a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f} {task.fields['unit']}/s" if speed else "")


@contextmanager
def progress_bars(what: str, console: Console) -> Iterator[tuple[Report, Report]]:
    """Two callbacks that show progress on `console` until the block ends: (done turns, all turns), and one of texts.

    The second is of what is embedded before the first turn, and shows nothing if nothing is.
    """
    if not console.is_terminal:

        def write(line: str) -> None:
            console.out(line, highlight=False)

        yield progress_lines(what, write), progress_lines("embedding", write, unit="texts")
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), _Rate(""), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        yield _bar(bar, what, "turns"), _bar(bar, "embedding", "texts")


@contextmanager
def working(what: str, console: Console) -> Iterator[None]:
    """Clock on a terminal that runs until the block ends. What the block prints goes where it always goes."""
    if not console.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as clock:
        clock.add_task(what, total=None)
        yield


def _bar(bar: Progress, what: str, unit: str) -> Report:
    task = bar.add_task(what, total=None, visible=unit == "turns", unit=unit)
    begun = False

    def report(done: int, total: int) -> None:
        nonlocal begun
        if not begun:  # what an earlier attempt did counts as done, not as speed
            bar.reset(task, total=total, completed=done, start=True, visible=True)
            begun = True
        bar.update(task, completed=done, total=total)

    return report


def progress_lines(
    what: str, write: Callable[[str], object], clock: Callable[[], float] = monotonic, unit: str = "turns"
) -> Report:
    """A callback that writes `what 40 % 1,200 of 3,000 turns, 600 turns/s, 0:03 left` at most every 5 seconds."""
    first: tuple[float, int] | None = None
    last, last_done = float("-inf"), -1

    def report(done: int, total: int) -> None:
        nonlocal first, last, last_done
        now = clock()
        first = first or (now, done)
        if done == last_done or (now - last < _EVERY and done < total):
            return
        last, last_done = now, done
        seconds, turns = now - first[0], done - first[1]
        line = f"{what} {done / max(total, 1):4.0%}  {done:,} of {total:,} {unit}"
        if turns > 0 and seconds > 0:
            line += f", {turns / seconds:,.0f} {unit}/s"
            if done >= _EARLY * total:
                left = round((total - done) / (turns / seconds))
                line += f", {left // 60}:{left % 60:02d} left"
        write(line)

    return report


class _Clean(Console):
    """Prints no control character of a text; colours and cursor movements of its own stay. What is printed with
    `soft_wrap` is broken between words on a terminal, and is one line elsewhere, so that a script can search it.
    """

    def print(self, *objects: Any, **how: Any) -> None:
        if how.get("soft_wrap") and self.is_terminal:
            objects = tuple(wrapped(text, self.width) if isinstance(text, str) else text for text in objects)
        super().print(*objects, **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def console(file: TextIO | None = None) -> Console:
    """`file`, default standard output, as wide as the terminal or as COLUMNS says; elsewhere 160 characters. Whatever a
    command prints goes through here, so that no message or name can command a terminal.
    """
    given = os.environ.get("COLUMNS")
    width = None if given is not None or (file or sys.stdout).isatty() else 160
    if given is not None and not (given.isdecimal() and int(given) >= _LEAST_WIDTH):
        width = 80
    return _Clean(file=file, width=width, highlight=False, markup=False, emoji=False)


def run_headline(root: Mapping[str, Any]) -> str:
    """Headline of a run with this root configuration."""
    arms = root["arms"]
    most = "at most " if root["simulator"]["_target_"] == _REPLAYED else ""
    users, weeks = (_size(root[f"{what}s"], what, most) for what in ("user", "week"))
    return f"{root['experiment']}: {users}, {weeks}, seed {root['seed']}, {plural(len(arms), 'arm')}: {', '.join(arms)}"


def _size(n: int | None, what: str, most: str) -> str:
    return f"all {what}s of the log" if n is None else f"{most}{plural(n, what)}"
