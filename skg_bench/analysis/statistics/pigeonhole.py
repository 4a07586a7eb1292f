"""Bootstrap of users and intents at once (Owen 2007, pigeonhole bootstrap): an interval that assumes no formula.

Each resample counts every user and every intent by a Poisson number of mean 1 of its own, and a cell by the product of
its two. Counts are keyed draws and scores whole numbers, so that the interval is the same bits everywhere. Noise within
cells is counted more than once: the interval is somewhat too wide where that is all there is.
"""

from functools import cache
from math import exp, factorial

import numpy as np

from skg_bench.core.draws import Purpose, fold, key, uniform
from skg_bench.core.grid import F64, I32, I64

TWO_WAY_RESAMPLES, TWO_WAY_SEED = 1000, 0
_BITS, _BLOCK = 30, 1 << 22  # of a score as a whole number; numbers held at a time
_KEPT = 1024  # rows at most whose counts are kept: 33 MB for both sides, of 1 to 1024 rows
_BELOW = np.cumsum([exp(-1.0) / factorial(k) for k in range(20)])  # of a Poisson number of mean 1: at most k


def pigeonhole(user: I64 | I32, intent: I64 | I32, score: F64, tail: float) -> tuple[float, float]:
    """Quantiles `tail` and 1 - `tail` of the resampled sum of `score` `[c]`, which sums to 0 over all cells."""
    from scipy.sparse import csr_array  # costs 0.1 s: not at import

    some = score != 0
    if not some.any():
        return 0.0, 0.0
    users, rows = np.unique(user[some], return_inverse=True)
    intents, columns = np.unique(intent[some], return_inverse=True)
    _, exponent = np.frexp(np.abs(score).max())
    unit = np.ldexp(1.0, int(exponent) - min(_BITS, 50 - int(some.sum()).bit_length()))
    table = csr_array((np.rint(score[some] / unit), (rows, columns)), shape=(len(users), len(intents)))
    sums, step = np.empty(TWO_WAY_RESAMPLES), max(_BLOCK // (len(users) + len(intents)), 1)
    for start in range(0, TWO_WAY_RESAMPLES, step):
        number = np.arange(start, min(start + step, TWO_WAY_RESAMPLES))
        by_intent = (table.T @ _counts(0, number, len(users)).T).T
        sums[start : start + len(number)] = (by_intent * _counts(1, number, len(intents))).sum(axis=1)
    low, high = np.quantile(sums, [tail, 1.0 - tail]) * unit
    return float(low), float(high)


def _counts(side: int, number: I64, width: int) -> F64:
    """How often each row counts in the resamples `number` `[b]`, `[b, width]`."""
    if width > _KEPT or len(number) < TWO_WAY_RESAMPLES:
        return _new_counts(TWO_WAY_SEED, side, number, width)
    return _kept_counts(TWO_WAY_SEED, side, 1 << (width - 1).bit_length())[:, :width]


@cache
def _kept_counts(seed: int, side: int, width: int) -> F64:
    """Counts of all resamples, kept: drawn anew for each interval they take a fifth of the CPU time of a small run."""
    counts = _new_counts(seed, side, np.arange(TWO_WAY_RESAMPLES), width)
    counts.setflags(write=False)
    return counts


def _new_counts(seed: int, side: int, number: I64, width: int) -> F64:
    each = fold(fold(key(seed, number), int(Purpose.RESAMPLE)), side)
    return np.searchsorted(_BELOW, uniform(fold(each[:, None], np.arange(width))), side="right").astype(np.float64)
