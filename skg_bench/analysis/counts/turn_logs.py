"""Turn logs, read once an arm for all that needs them."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from skg_bench.runfolder.run import RunTables

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class ReadOnce:
    """A run whose turn logs are read whole, and kept until another one is; see `read_once`."""

    run: RunTables
    columns: Sequence[str]  # that are read
    table: Callable[[str], pa.Table]  # of an arm

    @property
    def path(self) -> Path:
        return self.run.path

    @property
    def arms(self) -> list[str]:
        return self.run.arms

    @property
    def manifest(self) -> dict[str, Any]:
        return self.run.manifest

    def turns(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        """Turn rows of one arm. Columns that are not kept are read now, and so are rows of some users only."""
        if columns is None or users is not None or not set(columns) <= set(self.columns):
            return self.run.turns(arm, columns, users)
        return self.table(arm).select(list(dict.fromkeys([*columns, "user", "turn"])))

    def updates(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        return self.run.updates(arm, columns, users)

    def feedback(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        return self.run.feedback(arm, columns, users)


def read_once(runs: Sequence[RunTables], columns: Sequence[str]) -> list[ReadOnce]:
    """The runs, whose turn logs are read with all of `columns`, and kept until another arm of any run is read.

    Whoever goes through the arms one after the other thus reads each of them once, whatever is computed from it, and
    memory does not grow with the number of arms.
    """
    wanted = tuple(dict.fromkeys([*columns, "user", "turn"]))

    kept: dict[tuple[int, str], pa.Table] = {}

    def table(at: int, arm: str) -> pa.Table:
        if (at, arm) not in kept:
            kept.clear()  # before the next is read: there is room for one
            kept[at, arm] = runs[at].turns(arm, wanted)
        return kept[at, arm]

    return [ReadOnce(run, wanted, partial(table, at)) for at, run in enumerate(runs)]


def read_ahead(read: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """Results in order. While the caller works on one, a thread reads the next, and no further."""
    with ThreadPoolExecutor(1) as thread:
        pending = [thread.submit(read, item) for item in items[:1]]
        for item in items[1:]:
            result = pending.pop().result()
            pending.append(thread.submit(read, item))
            yield result
        for last in pending:
            yield last.result()
