"""Counts of blocks of users, joined to those of the whole run: the same bits as if all had been read at once.

A cell, a week and a digest belong to one user, and so to one block; blocks come in the order of their users. Intents
are numbered by their names, which sort alike in a block and in the run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from skg_bench.analysis.counts.columns import Words
from skg_bench.analysis.counts.tally import LoggedEvents, MadeCounts, Tally, WeekSlots
from skg_bench.analysis.statistics.intervals import Cells
from skg_bench.core.grid import F64, I64

_WHOLE = (np.uint8, np.uint16, np.uint32)
_PLACE = 4  # bytes of an index
_OF_ALL = ("wrong", "wrong_hit", "add")  # counts that are known of all turns of an arm, or of none


@dataclass(frozen=True, slots=True)
class JoinedEvents:
    """Users and cells of a block, or of a whole run; its turns are counted, and not held."""

    users: I64  # [n] user ids, ascending
    weeks: int  # calendar weeks of the run, W
    spans: I64  # [n] as in `LoggedEvents`
    seed: int
    turns: int  # N
    judged: bool  # as in `LoggedEvents`
    answers: bool
    cells: Cells
    about: Words  # [n_intents] the intents' names; of a one-off its message
    named: int  # how many of these are intents; they come first

    @classmethod
    def of(cls, requests: LoggedEvents) -> "JoinedEvents":
        """All of the events but their turns."""
        cells = requests.cells
        return cls(
            requests.users, requests.weeks, requests.spans, requests.seed,
            len(requests), requests.judged, requests.answers,
            Cells(cells.user.astype(np.int32), cells.intent.astype(np.int32), cells.n_users, cells.n_intents),
            requests.about, requests.named,
        )  # fmt: skip

    def __len__(self) -> int:
        return self.turns


def joined_events(blocks: Sequence[JoinedEvents]) -> JoinedEvents:
    """The events of all blocks, in order."""
    intents = sorted({name for block in blocks for name in block.about[: block.named].tolist()})
    messages = sorted({name for block in blocks for name in block.about[block.named :].tolist()})
    place = {name: i for i, name in enumerate(intents)}, {name: len(intents) + i for i, name in enumerate(messages)}
    size, n = sum(len(block.cells.user) for block in blocks), 0
    user, intent, start = np.empty(size, np.int32), np.empty(size, np.int32), 0
    for block in blocks:
        names = block.about.tolist()
        number = np.array([place[i >= block.named][name] for i, name in enumerate(names)], np.int32)
        stop = start + len(block.cells.user)
        np.add(block.cells.user, np.int32(n), out=user[start:stop])
        intent[start:stop] = number[block.cells.intent]
        n, start = n + len(block.users), stop
    return JoinedEvents(
        np.concatenate([block.users for block in blocks]), max(block.weeks for block in blocks),
        np.concatenate([block.spans for block in blocks]), blocks[0].seed,
        sum(block.turns for block in blocks), all(block.judged for block in blocks), blocks[0].answers,
        Cells(user, intent, n, len(intents) + len(messages)), np.array([*intents, *messages], np.object_), len(intents),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Packed:
    """Numbers that are mostly 0 or small, in less room, to the bit."""

    size: int
    at: npt.NDArray[np.uint32] | None  # places of the numbers, all others are 0; None: all places
    values: npt.NDArray[Any]

    @classmethod
    def of(cls, values: F64) -> "Packed":
        """The numbers in the smallest form that holds them."""
        some = np.flatnonzero(values)
        least = values
        if values.min(initial=0.0) >= 0 and np.array_equal(values, np.rint(values)):
            high = values.max(initial=0.0)
            least = values.astype(next((kind for kind in _WHOLE if high <= np.iinfo(kind).max), np.float64))
        if (_PLACE + least.itemsize) * len(some) < least.itemsize * len(values):
            return cls(len(values), some.astype(np.uint32), least[some])
        return cls(len(values), None, least)


def unpacked(parts: Sequence[Packed]) -> F64:
    """Numbers of all parts, one after the other."""
    values, start = np.zeros(sum(part.size for part in parts)), 0
    for part in parts:
        values[start : start + part.size][slice(None) if part.at is None else part.at] = part.values
        start += part.size
    return values


@dataclass(frozen=True, slots=True)
class PackedRows(Sequence[F64]):
    """Rows of numbers by cell, each made `[c]` when it is asked for."""

    held: Sequence[Sequence[Packed]]  # of each block, its rows

    @overload
    def __getitem__(self, at: int) -> F64: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[F64]: ...

    def __getitem__(self, at: int | slice) -> F64 | Sequence[F64]:
        if isinstance(at, slice):
            return [self[i] for i in range(len(self))[at]]
        return unpacked([rows[at] for rows in self.held])

    def __len__(self) -> int:
        return len(self.held[0])


@dataclass(frozen=True, slots=True)
class BlockTally:
    """Counts of one arm in a block, packed."""

    tally: Tally
    packed: Mapping[str, Packed]

    @classmethod
    def of(cls, tally: Tally) -> "BlockTally":
        """The counts, which are not held unpacked."""
        bare = replace(tally, by_cell={})
        return cls(bare, {name: Packed.of(values) for name, values in tally.by_cell.items()})


def joined_tally(blocks: Sequence[BlockTally]) -> Tally:
    """The counts of an arm in all blocks, in order."""
    parts = [block.tally for block in blocks]
    held = {name: [block.packed[name] for block in blocks] for name in blocks[0].packed}
    weekly = {name: np.concatenate([part.by_week.held[name] for part in parts]) for name in parts[0].by_week}
    for name in _OF_ALL:
        if any(np.isnan(each.values).any() for each in held[name]):
            held[name] = [Packed(each.size, None, np.full(each.size, np.nan)) for each in held[name]]
            weekly |= {name: np.full(len(weekly[name]), np.nan)} if name in weekly else {}
    rows = np.cumsum([0, *(part.weeks.shape[0] for part in parts)])
    width = parts[0].weeks.shape[1]
    slots = np.concatenate([part.weeks.slots + row * width for part, row in zip(parts, rows, strict=False)])
    weeks = WeekSlots((int(rows[-1]), width), slots)
    return Tally(
        arm=parts[0].arm,
        by_cell=MadeCounts(held, unpacked),
        weeks=weeks,
        by_week=MadeCounts(weekly, weeks.spread),
        book=np.concatenate([part.book for part in parts]),
        book_end=np.concatenate([part.book_end for part in parts]),
        pending=sum(part.pending for part in parts),
        digest=b"".join(part.digest for part in parts),
    )
