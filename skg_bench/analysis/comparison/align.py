"""Runs laid side by side: which users and events all of them have, and what one lacks of the others'."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.comparison.seeds import STRIDE
from skg_bench.analysis.counts.tally import LoggedEvents, events
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I64
from skg_bench.runfolder.run import RunTables

Coverage = list[tuple[int, int]]  # (user, number of first turns), by user


@dataclass(frozen=True)
class Aligned:
    """Users and events of a block that all runs share."""

    on: LoggedEvents  # of the first
    each: list[LoggedEvents]  # of every run
    keep: Coverage | None  # the part that is shared, None: all


@dataclass(frozen=True)
class Alignment:
    """Differences between runs that are laid side by side."""

    moved: list[bool]  # of every run: the same requests in another order than the first has them
    gaps: list[str]


def align(pools: Sequence[RunTables], weeks: Sequence[int]) -> Aligned | None:
    """The events of a block that all runs have; None: they share no user there. `weeks`: of every run, at least.

    Raises UsageError where a single run has no events.
    """
    if len(pools) == 1:
        only = events(pools[0], None, weeks[0])
        return Aligned(only, [only], None)
    if not all(pool.rows() for pool in pools):
        return None
    each = [events(pool, None, least) for pool, least in zip(pools, weeks, strict=True)]
    turns = [_turns(pool_events) for pool_events in each]
    shared = _shared(turns)
    if not shared:
        return None
    if all(counts == dict(shared) for counts in turns):
        return Aligned(each[0], each, None)
    each = [events(pool, shared, least) for pool, least in zip(pools, weeks, strict=True)]
    return Aligned(each[0], each, shared)


def alignment(blocks: Sequence[Sequence[RunTables]]) -> Alignment:
    """Differences between runs over all blocks.

    Raises UsageError when they share no user, or users of other requests.
    """
    pools = blocks[0]
    if len(pools) == 1:
        return Alignment([False], [])
    moved, every, common = [False] * len(pools), np.zeros((len(pools), 2), np.int64), np.zeros(2, np.int64)
    for block in blocks:
        turns = [_turns(events(pool)) if pool.rows() else {} for pool in block]
        every += [(len(counts), sum(counts.values())) for counts in turns]
        shared = _shared(turns)
        common += (len(shared), sum(n for _, n in shared))
        if aligned := align(block, [0] * len(block)):
            for i, (pool, pool_events) in enumerate(zip(block[1:], aligned.each[1:], strict=True), 1):
                moved[i] |= _moved(block[0], aligned.on, pool, pool_events)
    if not common[0]:
        raise UsageError(
            f"{' and '.join(str(pool.path) for pool in pools)} share no user; "
            "compare runs of the same seeds, salts and users"
        )
    gaps = [_gap(pool, total, common) for pool, total in zip(pools, every, strict=True) if (total != common).any()]
    gaps += [
        f"{pool.path}: the same requests in another order; paired by user, not turn by turn"
        for pool, other in zip(pools, moved, strict=True)
        if other
    ]
    return Alignment(moved, gaps)


def _turns(pool_events: LoggedEvents) -> dict[int, int]:
    """Turns by user."""
    return dict(zip(pool_events.users.tolist(), np.bincount(pool_events.row).tolist(), strict=True))


def _shared(turns: Sequence[Mapping[int, int]]) -> Coverage:
    users = sorted(set.intersection(*(set(counts) for counts in turns)))
    return [(user, min(counts[user] for counts in turns)) for user in users]


def _gap(pool: RunTables, every: I64, common: I64) -> str:
    (users, turns), all_turns = every - common, every[1]
    return f"{pool.path}: {turns:,} of {all_turns:,} turns ({users} users wholly) are not in all runs; left out"


def _moved(first: RunTables, a: LoggedEvents, second: RunTables, b: LoggedEvents) -> bool:
    """Do users have the same requests in another order?

    Raises UsageError when they have others.
    """
    differs, what = a.time != b.time, "time"
    if not differs.any():
        code = np.minimum(np.searchsorted(a.message, b.message), len(a.message) - 1)
        same_text = np.where(a.message[code] == b.message, code, -1)  # b's vocabulary as a's codes
        differs, what = a.text != same_text[b.text], "message"
    if not differs.any():
        return False
    mine, others = (np.sort(e.row * len(e.message) + e.text) for e in (a, b))
    if np.array_equal(a.message, b.message) and np.array_equal(mine, others):
        return True
    at = int(np.flatnonzero(differs)[0])
    user = int(a.users[a.row[at]])
    seed = f"seed number {user // STRIDE}, " if user >= STRIDE else ""
    raise UsageError(
        f"{first.path} and {second.path} differ in the {what} of {int(differs.sum()):,} of {len(a):,} events "
        f"(first: {seed}user {user % STRIDE}, turn {a.turn[at]}), so that their arms cannot be paired; compare runs "
        "of the same simulator and data"
    )
