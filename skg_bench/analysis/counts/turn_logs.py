"""Turn logs, read block by block of users, and once an arm for all that needs them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from skg_bench.runfolder.run import RunTables

BLOCK_TURNS = 250_000  # of an arm, which are held at once; a shard that has more is held whole


@dataclass(frozen=True, slots=True)
class RunBlock:
    """Some users of a run, as a run. The turn log of an arm is read once, and kept until that of another one is."""

    run: RunTables
    users: range
    columns: Sequence[str]  # that are read at once
    held: dict[str, pa.Table] = field(default_factory=dict)  # of one arm

    @property
    def path(self) -> Path:
        return self.run.path

    @property
    def arms(self) -> list[str]:
        return self.run.arms

    @property
    def manifest(self) -> dict[str, Any]:
        return self.run.manifest

    def rows(self) -> Mapping[range, int]:
        """Turns of the first arm by the users who are read together, in order."""
        return {users: n for users, n in self.run.rows().items() if users.start in self.users}

    def turns(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        """Turn rows of one arm. Columns that are not kept are read now, and so are rows of some users only."""
        if columns is None or users is not None or not set(columns) <= set(self.columns):
            return self.run.turns(arm, columns, self.users if users is None else users)
        if arm not in self.held:
            self.held.clear()  # before the next is read: there is room for one
            self.held[arm] = self.run.turns(arm, list(dict.fromkeys([*self.columns, "user", "turn"])), self.users)
        return self.held[arm].select(list(dict.fromkeys([*columns, "user", "turn"])))

    def let_go(self) -> None:
        """Let go of the turn log that is kept: the block is read."""
        self.held.clear()

    def updates(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        return self.run.updates(arm, columns, self.users if users is None else users)

    def feedback(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        return self.run.feedback(arm, columns, self.users if users is None else users)


def user_blocks(runs: Sequence[RunTables], columns: Sequence[str] = ()) -> list[list[RunBlock]]:
    """All users of some runs in blocks, in order: of each block the part of each run, whose turn logs are read with
    all of `columns`. Memory does not grow with the number of blocks.
    """
    turns, stops = dict[int, int](), dict[int, int]()
    for run in runs:
        for users, n in run.rows().items():
            turns[users.start] = max(turns.get(users.start, 0), n)
            stops[users.start] = max(stops.get(users.start, 0), users.stop)
    ranges, room = list[range](), 0
    for start in sorted(turns):
        room -= turns[start]
        if ranges and room >= 0 and ranges[-1].stop == start:
            ranges[-1] = range(ranges[-1].start, stops[start])
        else:
            ranges.append(range(start, stops[start]))
            room = BLOCK_TURNS - turns[start]
    return [[RunBlock(run, users, columns) for run in runs] for users in ranges or [range(0)]]


class ReadBlock(Protocol):
    """Results of a block."""

    @property
    def weeks(self) -> Sequence[int]:
        """Calendar weeks that each of the runs has there."""
        ...


B = TypeVar("B", bound=ReadBlock)


def read_all(read: Callable[..., B | None], blocks: Sequence[Sequence[RunBlock]]) -> list[B]:
    """All blocks that have users; of others `read` gives None. It is given `weeks`, of every run at least: where a
    block has more than the runs say, all are read with as many.
    """
    weeks: Sequence[int] = [0] * len(blocks[0])
    while True:
        parts = [part for part in (read(block, weeks=weeks) for block in blocks) if part is not None]
        weeks = [max(of_run) for of_run in zip(*(part.weeks for part in parts), strict=True)]
        if all(list(part.weeks) == weeks for part in parts):
            return parts
