"""Runs laid side by side: which users and events all of them have, and what one lacks of the others'."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.comparison.seeds import STRIDE
from skg_bench.analysis.counts.tally import LoggedEvents, events
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import RunTables

Coverage = list[tuple[int, int]]  # (user, number of first turns), by user


@dataclass(frozen=True)
class Aligned:
    """Users and events that all runs share."""

    on: LoggedEvents  # of the first
    each: list[LoggedEvents]  # of every run
    keep: Coverage | None  # the part that is shared, None: all
    moved: list[bool]  # of every run: the same requests in another order than the first has them
    gaps: list[str]


def align(pools: Sequence[RunTables]) -> Aligned:
    """The events that all runs have.

    Raises UsageError when they share no user, or users of other requests.
    """
    each = [events(combined) for combined in pools]
    turns = [
        dict(zip(pool_events.users.tolist(), np.bincount(pool_events.row).tolist(), strict=True))
        for pool_events in each
    ]
    users = sorted(set.intersection(*(set(counts) for counts in turns)))
    if not users:
        raise UsageError(
            f"{' and '.join(str(combined.path) for combined in pools)} share no user; "
            "compare runs of the same seeds, salts and users"
        )
    shared = [(user, min(counts[user] for counts in turns)) for user in users]
    gaps = [
        _gap(combined, counts, shared) for combined, counts in zip(pools, turns, strict=True) if counts != dict(shared)
    ]
    kept = [events(combined, shared) for combined in pools] if gaps else each
    moved = [False] + [
        _moved(pools[0], kept[0], combined, pool_events)
        for combined, pool_events in zip(pools[1:], kept[1:], strict=True)
    ]
    for combined, other in zip(pools, moved, strict=True):
        if other:
            gaps.append(f"{combined.path}: the same requests in another order; paired by user, not turn by turn")
    return Aligned(kept[0], kept, shared if kept is not each else None, moved, gaps)


def _gap(combined: RunTables, counts: dict[int, int], shared: Coverage) -> str:
    users = len(counts) - len(shared)
    turns = sum(counts.values()) - sum(n for _, n in shared)
    every = sum(counts.values())
    return f"{combined.path}: {turns:,} of {every:,} turns ({users} users wholly) are not in all runs; left out"


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
