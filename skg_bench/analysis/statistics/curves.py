"""Curves over calendar weeks with simultaneous bands over users.

A band holds the whole curve, all weeks at once, in 95 % of runs with other users (*these requests*). With standard
errors se_w and n_w users in week w, its half width there is t(1 - a/2, n_w - 1) se_w, with one pointwise level a for
all weeks: the level that the largest of all weeks' |t|, each by its own degrees of freedom, passes in 5 % of cases
(sup-t band: Montiel Olea and Plagborg-Moller 2019). Its distribution is drawn by a studentised multiplier bootstrap
over users (Chernozhukov, Chetverikov and Kato 2013): residuals e_uw from the week's mean times a random sign x_u that
a user keeps over all weeks, ``t_w = m (n_w - 1)^(1/2) / (1 - m^2)^(1/2)``, ``m = sum_u x_u e_uw / (n_w sum_u
e_uw^2)^(1/2)``. Without studentising, bands of 12 users held in 82 % of cases. With very few users in a week signs
repeat themselves; then Bonferroni's level, 5 % over the number of weeks, is larger and is taken.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from skg_bench.analysis.statistics.intervals import LEVEL
from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.grid import F64, I64, U8

DRAWS = 2000
_USERS = 1024  # whose multipliers are numbers of eight bytes at once: 16 MiB
_DRAWN = 64  # users whose multipliers are drawn at once: 1 MiB, which stays in the processor's cache
_TOGETHER = 2**17  # users times curves that are held at once: of 26 weeks 26 MiB an array
_UNIT = 2.0**-32  # residuals are snapped to multiples of it: their sums are exact in float64 in any order


@dataclass(frozen=True, slots=True)
class Band:
    """A curve over W weeks; NaN where nobody has a value (mean) or fewer than two have (low, high)."""

    n: I64  # [W] users with a value
    mean: F64  # [W]
    low: F64  # [W]
    high: F64  # [W]


@dataclass(frozen=True, slots=True)
class PackedSigns:
    """Multipliers of n users, of eight draws in a byte."""

    packed: U8  # [n, DRAWS / 8]

    def __len__(self) -> int:
        """Number of users."""
        return len(self.packed)

    def of(self, some: slice) -> F64:
        """Multipliers of some users, -1 or 1, `[DRAWS, n]`."""
        return np.where(np.unpackbits(self.packed[some], axis=1).T, 1.0, -1.0)


def signs(seed: int, users: I64) -> PackedSigns:
    """Multipliers keyed by user, so that a user has the same ones in every curve and run."""
    packed, resample = np.empty((len(users), DRAWS // 8), np.uint8), np.arange(DRAWS)
    for start in range(0, len(users), _DRAWN):
        some = slice(start, start + _DRAWN)
        u = draw(key(seed, users[some])[:, None], resample, Purpose.RESAMPLE)
        packed[some] = np.packbits(u >= 0.5, axis=1)
    return PackedSigns(packed)


def bands(values: Iterable[F64], multipliers: PackedSigns, bounds: Sequence[tuple[float, float]]) -> list[Band]:
    """The band of each curve, from users' values `[n, W]` (NaN: none), cut at its bounds.

    Of many users, values that are made as they are asked for are held for a few curves at a time.
    """
    pairs, drawn = zip(values, bounds, strict=True), list[Band]()
    while some := list(islice(pairs, max(1, _TOGETHER // max(1, len(multipliers))))):
        drawn += _bands([_curve(v) for v, _ in some], multipliers, [limits for _, limits in some])
    return drawn


def _bands(
    curves: Sequence["_Curve"], multipliers: PackedSigns, bounds: Sequence[tuple[float, float]]
) -> Iterator[Band]:
    width = len(curves[0].n)
    drawn = np.zeros((DRAWS, width * len(curves)))
    for some in _blocks(len(multipliers)):  # sums are exact in any order, see _UNIT
        drawn += multipliers.of(some) @ np.concatenate([c.standard[some] for c in curves], axis=1)
    for i, (c, (lowest, highest)) in enumerate(zip(curves, bounds, strict=True)):
        half = _quantile(c, drawn[:, i * width : (i + 1) * width]) * c.se
        yield Band(c.n, c.mean, np.maximum(c.mean - half, lowest), np.minimum(c.mean + half, highest))


def _blocks(users: int) -> Iterator[slice]:
    return (slice(first, first + _USERS) for first in range(0, users, _USERS))


def _quantile(c: "_Curve", drawn: F64) -> F64:
    """Student's t for each week at the common level; `drawn` `[DRAWS, W]`: sums of signed residuals of unit length."""
    from scipy import special  # costs 0.1 s: not at import

    df = np.maximum(c.n - 1, 1).astype(np.float64)
    weeks = np.flatnonzero((c.n > 1) & (c.se > 0))
    if weeks.size == 0:
        return np.zeros(c.n.size)
    f = df[weeks]
    m2 = np.minimum(drawn[:, weeks] ** 2 / c.n[weeks], 1.0 - 1e-12)
    # |t| as a standard normal of the same level (Wallace 1959): 60 times faster than the distribution function of t
    z = (np.sqrt(-f * np.log1p(-m2)) * ((8 * f + 1) / (8 * f + 3))).max(axis=1)
    level = max(2.0 * float(special.ndtr(-np.quantile(z, LEVEL))), (1.0 - LEVEL) / weeks.size)
    quantile: F64 = -special.stdtrit(df, min(level, 1.0 - LEVEL) / 2)
    return quantile


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
