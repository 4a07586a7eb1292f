"""The worth of the skillbook of turn s at turn t, for all s and t: learning, forgetting and drift told apart.

V[s, k] is the utility of a request in bin k, answered with the skillbook and the scorer of turn s and no learning
(`book=hindsight`). Events are exogenous, so the same ones are answered with every book, those before s too. Bin k
begins at turn s_k, the k-th of the books, s_0 = 0 being the empty one; W[s, k] = V[s, k] - V[0, k] is what the book is
worth there, free of how hard the bin is. From one bin to the next the worth of the book at hand changes by

    W[s_k, k] - W[s_(k-1), k-1] = learning_k + drift_k,
    learning_k = W[s_k, k] - W[s_(k-1), k]          what the bin before added to the book, on the requests of now
    drift_k    = W[s_(k-1), k] - W[s_(k-1), k-1]    the same book, on the requests of now: they move on, answers age

and what later learning does to what was learned is the backward transfer of Lopez-Paz and Ranzato (NeurIPS 2017,
section 2; their R_(i,j) is V[s_(i+1), j]), below 0 where it is forgotten:

    backward_k = V[s_last, k] - V[s_(k+1), k]

Their forward transfer, on requests that the book has never seen, is the diagonal W[s_k, k]. A book from after bin k
holds answers to the very requests of bin k: below the diagonal, worth is that of remembering, not of generalising.
"""

from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.comparison.turn_bins import BinTable, bin_table, binned_arms
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.statistics.inference import PairedT, paired_t
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64
from skg_bench.runfolder.run import Run


@dataclass(frozen=True, slots=True)
class TransferMatrix:
    """Tables by book (rows) and bin (columns); users count in the rows of books whose turn they reached."""

    trunk: str  # the arm whose books they are
    books: tuple[int, ...]  # [K] turns, the first is 0; also the first turns of the bins
    value: BinTable  # [K, K] V
    worth: BinTable  # [K, K] W; its first row is 0
    learning: BinTable  # [1, K] from k = 1 on
    drift: BinTable  # [1, K] from k = 1 on
    backward: BinTable  # [1, K] but for the last two: the last book is the first that knows the last but one
    forward_transfer: PairedT | None  # mean over a user's bins from k = 1 on; None: no user got there
    backward_transfer: PairedT | None


def hindsight(run: Run) -> tuple[str, dict[int, str]]:
    """The arm whose books most arms serve in hindsight, and these arms by turn; none: empty."""
    by_trunk: dict[str, dict[int, str]] = {}
    for arm, composition in run.manifest.get("compositions", {}).items():
        if composition.get("book") == "hindsight":
            trunk, _, turn = str(composition["fork"]).rpartition("@")
            by_trunk.setdefault(trunk, {})[int(turn)] = arm
    return max(by_trunk.items(), key=lambda trunk: len(trunk[1]), default=("", {}))


def transfer_matrix(run: Run) -> TransferMatrix:
    """Transfer matrix from the arms of a run that serve the books of another one in hindsight.

    Raises UsageError when there are none, or not of turn 0 too.
    """
    trunk, arms = hindsight(run)
    if not arms:
        raise UsageError(f"{run.path} has none of the arms that it takes: [fork=ARM@TURN,book=hindsight,curator=none]")
    if 0 not in arms or len(arms) < 2:
        raise UsageError(f"{run.path} has books of {trunk} at turns {sorted(arms)}; 0 and another one are needed")
    books = tuple(sorted(arms))
    binned = binned_arms(run, [arms[s] for s in books], books, Utility.of(run.config))
    value = binned.values
    value[binned.turns[None] <= np.array(books)[:, None]] = np.nan
    part = split(value)
    learning, drift, backward = (bin_table(row[None], binned) for row in (part.learning, part.drift, part.backward))
    return TransferMatrix(
        trunk, books, bin_table(value, binned), bin_table(part.worth, binned), learning, drift, backward,
        forward_transfer=_over(part.diagonal[:, 1:]), backward_transfer=_over(part.backward),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parts:
    """Sums of every user; NaN where there is no such part."""

    worth: F64  # [K, n, K]
    diagonal: F64  # [n, K]
    learning: F64  # [n, K]
    drift: F64  # [n, K]
    backward: F64  # [n, K]


def split(value: F64) -> Parts:
    """Parts of users' values `[K, n, K]` by book and bin."""
    k = np.arange(len(value))
    worth = value - value[:1]
    diagonal = worth[k, :, k].T
    learning, drift, backward = (np.full(diagonal.shape, np.nan) for _ in range(3))
    learning[:, 1:] = (worth[k[1:], :, k[1:]] - worth[k[:-1], :, k[1:]]).T
    drift[:, 1:] = (worth[k[:-1], :, k[1:]] - worth[k[:-1], :, k[:-1]]).T
    backward[:, :-2] = (value[-1][:, :-2].T - value[k[1:-1], :, k[:-2]]).T
    return Parts(worth, diagonal, learning, drift, backward)


def _over(values: F64) -> PairedT | None:
    """Mean over users of the mean over their bins, `[n, K]`."""
    mask = ~np.isnan(values)
    some = mask.any(axis=1)
    if not some.any():
        return None
    return paired_t(np.where(mask, values, 0.0)[some].sum(axis=1) / mask[some].sum(axis=1))
