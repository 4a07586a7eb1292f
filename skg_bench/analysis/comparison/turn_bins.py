"""Utility over bins of users' turns, and tables of it with bands that hold for a whole table at once.

Skillbooks grow with what a user brings, so these tables count turns, not weeks. Fewer users reach later turns: a cell
says how many are in it, and differences are taken within users.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.outcomes import worth_of
from skg_bench.analysis.counts.tally import LoggedEvents, events
from skg_bench.analysis.counts.turn_logs import user_blocks
from skg_bench.analysis.statistics.curves import bands, signs
from skg_bench.analysis.statistics.intervals import sums
from skg_bench.analysis.summary.figures import NO_BOUNDS
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I64
from skg_bench.runfolder.run import RunTables


@dataclass(frozen=True, slots=True)
class BinTable:
    """Means over users `[S, K]` with simultaneous 95 % bands (`curves`); NaN where there is no such cell."""

    n: I64  # users with a value
    mean: F64
    low: F64
    high: F64


def utility(run: RunTables, arm: str, requests: LoggedEvents, prices: Utility) -> F64:
    """Utility g of each turn of an arm, `[N]`.

    Raises UsageError when the arm's turns are not the events `requests`.
    """
    table = worth_of(run, arm, prices)
    user, turn = table["user"].to_numpy(), table["turn"].to_numpy()
    if not (np.array_equal(turn, requests.turn) and np.array_equal(user, requests.users[requests.row])):
        raise UsageError(f"{run.path}: arm {arm!r} has other turns than the first arm; finish the run, or run it again")
    values: F64 = table["utility"].to_numpy()
    return values


def by_bin(values: F64, requests: LoggedEvents, edges: Sequence[int]) -> F64:
    """Mean of `values` `[N]` of every user in every bin, `[n, K]`; NaN: the user has no turn there.

    Bin k begins at turn `edges[k]` and ends before `edges[k + 1]`, the last one with the user's last turn.
    """
    k = np.searchsorted(np.asarray(edges), requests.turn, side="right") - 1
    n, width, mask = len(requests.users), len(edges), k >= 0
    slot = requests.row[mask] * width + k[mask]
    count = sums(slot, n * width)
    total = sums(slot, n * width, values[mask])
    return np.where(count > 0, total / np.where(count > 0, count, 1.0), np.nan).reshape(n, width)


@dataclass(frozen=True, slots=True)
class BinnedArms:
    """Utility of some arms by user and bin; turns are held for a few users at a time."""

    seed: int
    users: I64  # [n]
    turns: I64  # [n] of each user
    values: F64  # [A, n, K] as of `by_bin`


def binned_arms(run: RunTables, arms: Sequence[str], edges: Sequence[int], prices: Utility) -> BinnedArms:
    """Utility of the arms in the bins that begin at `edges`.

    Raises UsageError as `utility` does, and for a run without turns.
    """
    parts, users, turns, seed = list[F64](), list[I64](), list[I64](), 0
    for (block,) in user_blocks([run]):
        requests = events(block)
        parts.append(np.stack([by_bin(utility(block, arm, requests, prices), requests, edges) for arm in arms]))
        users.append(requests.users)
        turns.append(np.bincount(requests.row, minlength=len(requests.users)))
        seed = requests.seed
    return BinnedArms(seed, np.concatenate(users), np.concatenate(turns), np.concatenate(parts, axis=1))


class OfUsers(Protocol):
    """Users of a table, and the seed of their multipliers."""

    @property
    def seed(self) -> int: ...

    @property
    def users(self) -> I64: ...


def bin_names(edges: Sequence[int]) -> list[str]:
    """Names of bins: `0–49`, `50–99`, `100 on`."""
    return [f"{a:,}–{b - 1:,}" for a, b in pairwise(edges)] + [f"{edges[-1]:,} on"]


def bin_table(values: F64, binned: OfUsers) -> BinTable:
    """Table from users' values `[S, n, K]`; NaN: a user has none."""
    rows, n, width = values.shape
    flat = np.ascontiguousarray(values.transpose(1, 0, 2)).reshape(n, rows * width)
    (band,) = bands([flat], signs(binned.seed, binned.users), [NO_BOUNDS])
    mean, low, high = (column.reshape(rows, width) for column in (band.mean, band.low, band.high))
    return BinTable(band.n.reshape(rows, width), mean, low, high)
