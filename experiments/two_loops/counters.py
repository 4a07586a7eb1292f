"""Does a larger share of helpful ratings mean a strategy that is worth more to the user?

The worth of a kind of strategy to a user is estimated from all arms at once: on each trigger, how much more what one
arm said is worth than what the arms said on average, without a mood. So no kind looks good for being said where much
was to be won, and an arm's own luck hardly counts.
"""

import numpy as np

from skg_bench.core.grid import F64, Bool
from skg_bench.study.guardian.lives import Life, Lives, MeanDifference, over_users

CONCORDANCE = ("immediate", "later", "both", "replace", "neutral_later", "neutral_replace", "wrong_immediate", "coin")
LEAST = 5  # turns, of all arms, that the worth of a kind is estimated from


def strategy_worths(lives: Lives) -> F64:
    """Worth of each kind to each user, above what the arms said on average; `[U, K]`, NaN where hardly known."""
    spoken = np.stack([life.spoken & (life.kind >= 0) for life in lives.values()])  # [arms, U, T]
    fresh = np.where(spoken, np.stack([life.fresh for life in lives.values()]), 0.0)
    n = spoken.sum(axis=0)
    above = fresh - fresh.sum(axis=0) / np.maximum(n, 1)
    kind = np.stack([life.kind for life in lives.values()])
    user = np.broadcast_to(np.arange(spoken.shape[1])[:, None], kind.shape)
    shape = spoken.shape[1], int(kind.max()) + 1
    flat = user[spoken] * shape[1] + kind[spoken]
    total, turns = (np.bincount(flat, w, shape[0] * shape[1]).reshape(shape) for w in (above[spoken], None))
    return np.where(turns >= LEAST, total / np.maximum(turns, 1), np.nan)


def concordance(life: Life, worths: F64) -> MeanDifference:
    """Concordance: how often, of two strategies of a user, that with the larger helpful share is worth more,
    less one half; mean over users, each with at least one such pair.
    """
    kinds, books = life.book_kinds, life.books
    users, width = kinds.shape
    ok, miss = books.ok[:users, :width], books.miss[:users, :width]
    worth = np.take_along_axis(worths, np.maximum(kinds, 0), axis=1)
    known: Bool = (kinds >= 0) & (ok + miss > 0) & ~np.isnan(worth)
    share = (ok + 1.0) / (ok + miss + 2.0)
    pairs = known[:, :, None] & known[:, None, :] & (share[:, :, None] > share[:, None, :])
    pairs &= worth[:, :, None] != worth[:, None, :]
    right = (pairs & (worth[:, :, None] > worth[:, None, :])).sum(axis=(1, 2))
    n = pairs.sum(axis=(1, 2))
    return over_users(np.where(n > 0, right / np.maximum(n, 1) - 0.5, np.nan))
