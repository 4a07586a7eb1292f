"""Runs laid side by side: which users and events all of them have, and what one lacks of the others'."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.seeds import STRIDE, SeedRuns
from skg_bench.analysis.tally import LoggedEvents, events
from skg_bench.core.errors import UsageError

Coverage = list[tuple[int, int]]  # (user, number of first turns), by user


@dataclass(frozen=True)
class Aligned:
    """What all runs share."""

    on: LoggedEvents  # of the first
    each: list[LoggedEvents]  # of every run
    keep: Coverage | None  # the part that is shared, None: all
    moved: list[bool]  # of every run: the same requests in another order than the first has them
    gaps: list[str]


def align(of: Sequence[SeedRuns]) -> Aligned:
    """The events that all runs have.

    Raises UsageError when they share no user, or users of other requests.
    """
    each = [events(combined) for combined in of]
    turns = [dict(zip(own.users.tolist(), np.bincount(own.row).tolist(), strict=True)) for own in each]
    users = sorted(set.intersection(*(set(of) for of in turns)))
    if not users:
        raise UsageError(
            f"{' and '.join(str(combined.path) for combined in of)} share no user; "
            "compare runs of the same seeds and users"
        )
    shared = [(user, min(of[user] for of in turns)) for user in users]
    gaps = [_gap(combined, of, shared) for combined, of in zip(of, turns, strict=True) if of != dict(shared)]
    kept = [events(combined, shared) for combined in of] if gaps else each
    moved = [False] + [_moved(of[0], kept[0], combined, own) for combined, own in zip(of[1:], kept[1:], strict=True)]
    for combined, other in zip(of, moved, strict=True):
        if other:
            gaps.append(f"{combined.path}: the same requests in another order; paired by user, not turn by turn")
    return Aligned(kept[0], kept, shared if kept is not each else None, moved, gaps)


def _gap(combined: SeedRuns, of: dict[int, int], shared: Coverage) -> str:
    users = len(of) - len(shared)
    turns = sum(of.values()) - sum(n for _, n in shared)
    return (
        f"{combined.path}: {turns:,} of {sum(of.values()):,} turns ({users} users wholly) are not in all runs; left out"
    )


def _moved(first: SeedRuns, a: LoggedEvents, second: SeedRuns, b: LoggedEvents) -> bool:
    """Whether users have the same requests in another order.

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
