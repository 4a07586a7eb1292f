"""The interval that reports used before: Hall's transformation (1992) with Hazen's factor (1930) for few intents.

Kept here for comparison only. Degrees of freedom and skewness went by the effective number of intents found, users'
skewness by its plain estimate; the studentised mean T became ((1 + skewness T / 3)^3 - 1) / skewness + skewness / 6.
"""

import numpy as np

from skg_bench.analysis.statistics.intervals import ALPHA, Cells, Estimate, _mix, sums, t_quantile
from skg_bench.core.grid import F64

HAZEN = 8.5
_STRAIGHT = 1e-4  # skewness below which its square is nothing


def hall(cells: Cells, over: F64, gained: F64, e: Estimate) -> tuple[float, float]:
    """The 95 % interval for new requests of the mean over users of gained / over, whose estimate is `e`."""
    total = sums(cells.user, cells.n_users, over)
    n, inverse = e.n_users, np.where(total > 0, 1.0 / np.where(total > 0, total, 1.0), 0.0)
    weight = inverse[cells.user] * over / n
    mix = _mix(cells, weight)
    b = mix.g**0.5 * sums(cells.intent, cells.n_intents, inverse[cells.user] * gained / n - e.mean * weight)
    away = (sums(cells.user, cells.n_users, gained) * inverse)[total > 0] - e.mean
    by_user, both = e.se**2, e.se_new**2
    square = float((b**2).sum())
    if not (both > 0 and square > 0):
        return e.mean, e.mean
    m = square**2 / float((b**4).sum())
    df = both**2 / (by_user**2 / e.df + (both - by_user) ** 2 / min(mix.df, m))
    third = float((away**3).sum()) / max(n * (n - 1) * (n - 2), 1)
    if m < mix.df:
        few = 1.0 + HAZEN / (m + 1.0) - HAZEN / (mix.df + 1.0)
        third += (1.0 - (m / mix.df) ** 2) * few * float((b**3).sum())
    skewness = min((both - by_user) / square, 1.0) ** 0.25 * third / both**1.5
    low, high = (e.mean - _error(t_quantile(p, df), skewness) * e.se_new for p in (1 - ALPHA / 2, ALPHA / 2))
    return low, high


def _error(x: float, skewness: float) -> float:
    if not abs(skewness) > _STRAIGHT:
        return x - skewness * (x**2 / 3 + 1 / 6)
    return float(3.0 / skewness * (np.cbrt(1.0 + skewness * (x - skewness / 6)) - 1.0))
