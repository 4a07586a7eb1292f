"""Turn logs, read once an arm for all that needs them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.runfolder.run import RunTables

KEPT = 2  # turn logs in memory: that of the arm at hand, and that of the arm that it is compared with


@dataclass(frozen=True, slots=True)
class ReadOnce:
    """A run whose turn logs are read whole and kept for a while; see `read_once`."""

    run: RunTables
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
        """Turn rows of one arm; `columns` are some of those that are read, None: all of these."""
        table = self.table(arm)
        if users is not None:
            table = table.filter(pc.is_in(table["user"], pa.array(users, table["user"].type)))
        return table if columns is None else table.select(list(dict.fromkeys([*columns, "user", "turn"])))

    def updates(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        return self.run.updates(arm, columns, users)

    def feedback(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        return self.run.feedback(arm, columns, users)


def read_once(runs: Sequence[RunTables], columns: Sequence[str]) -> list[ReadOnce]:
    """The runs, whose turn logs are read with all of `columns`, and kept until KEPT other arms of any run were read.

    Whoever goes through the arms one after the other thus reads each of them once, whatever is computed from it, and
    memory does not grow with the number of arms.
    """
    wanted = tuple(dict.fromkeys(columns))

    @lru_cache(maxsize=KEPT)
    def table(at: int, arm: str) -> pa.Table:
        return runs[at].turns(arm, wanted)

    return [ReadOnce(run, partial(table, at)) for at, run in enumerate(runs)]
