"""Curves over calendar weeks with simultaneous bands over users.

A band holds the whole curve, all weeks at once, in 95 % of runs with other users (*these requests*). With standard
errors se_w, its half width in week w is t(1 - a/2, n_w - 1) se_w, where a is the pointwise level at which the largest
of all weeks' standardised deviations stays inside in 95 % of cases. That largest deviation is drawn by a multiplier
bootstrap over users, `max_w |sum_u x_u e_uw| / (sum_u e_uw^2)^(1/2)`, where e are the residuals from the week's mean
and x is a random sign that a user keeps over all weeks (sup-t band: Montiel Olea and Plagborg-Moller 2019, algorithm 2;
multipliers: Chernozhukov, Chetverikov and Kato 2013). Student's t for the week's own number of users keeps weeks with
few users wide.
"""

from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.intervals import LEVEL
from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.grid import F64, I64

DRAWS = 2000
_UNIT = 2.0**-32  # residuals are snapped to multiples of it: their sums are exact in float64 in any order


@dataclass(frozen=True, slots=True)
class Band:
    """A curve over W weeks; NaN where nobody has a value (mean) or fewer than two have (low, high)."""

    n: I64  # [W] users with a value
    mean: F64  # [W]
    low: F64  # [W]
    high: F64  # [W]


def signs(seed: int, users: I64) -> F64:
    """Multipliers `[DRAWS, n]`, -1 or 1; keyed by user, so that a user has the same ones in every curve and run."""
    u = draw(key(seed, users)[None, :], np.arange(DRAWS)[:, None], Purpose.RESAMPLE)
    return np.where(u < 0.5, -1.0, 1.0)


def bands(values: list[F64], multipliers: F64, bounds: list[tuple[float, float]]) -> list[Band]:
    """The band of each curve, from users' values `[n, W]` (NaN: none), cut at its bounds."""
    curves = [_curve(v) for v in values]
    standard = np.concatenate([c.standard for c in curves], axis=1)
    width = values[0].shape[1]
    largest = np.abs(multipliers @ standard).reshape(len(multipliers), len(values), width).max(axis=2)
    found = []
    for c, critical, (lowest, highest) in zip(curves, np.quantile(largest, LEVEL, axis=0), bounds, strict=True):
        half = _t_of_normal(critical, c.n) * c.se
        low, high = np.maximum(c.mean - half, lowest), np.minimum(c.mean + half, highest)
        found.append(Band(c.n, c.mean, low, high))
    return found


@dataclass(frozen=True, slots=True)
class _Curve:
    n: I64
    mean: F64
    se: F64
    standard: F64  # [n, W] residuals of unit length in every week; 0 where there is none or all are equal


def _curve(values: F64) -> _Curve:
    here = ~np.isnan(values)
    n = here.sum(axis=0)
    filled = np.where(here, values, 0.0)
    mean = np.where(n > 0, filled.sum(axis=0) / np.maximum(n, 1), np.nan)
    residual = np.where(here, filled - mean, 0.0)
    square = (residual**2).sum(axis=0)
    se = np.where(n > 1, np.sqrt(square / np.maximum(n * (n - 1), 1)), np.nan)
    flat = square <= 1e-24 * np.maximum(1.0, (filled**2).sum(axis=0))  # rounding: everybody has the same value
    standard = np.where(flat | (n < 2), 0.0, residual / np.sqrt(np.where(flat, 1.0, square)))
    return _Curve(n, mean, np.where(flat & (n > 1), 0.0, se), np.rint(standard / _UNIT) * _UNIT)


def _t_of_normal(critical: float, n: I64) -> F64:
    """Quantiles of Student's t with n - 1 degrees of freedom at the level at which the normal's is `critical`."""
    from scipy import special  # costs 0.1 s: not at import

    tail = special.ndtr(-max(critical, special.ndtri(0.5 + LEVEL / 2)))
    quantile: F64 = -special.stdtrit(np.maximum(n - 1, 1).astype(np.float64), tail)
    return quantile
