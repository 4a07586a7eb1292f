"""Tests on per-user differences: users are independent, events within a user are not, so a user is one number.

All functions take one value a user, `[n]` float64. A user who has no value (no hit, no rating) is left out by the
caller, who counts them; the bootstrap, which resamples many columns at once, takes NaN for it. Where scipy has the
statistic it is used. Sign flips and the bootstrap are ours because theirs do not repeat: here resamples are keyed
draws, values are snapped to integers below 2**40, and sums of those are exact in float64, so that p-values and
intervals are the same bits in any order, thread or BLAS kernel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, pi, sqrt
from typing import Literal

import numpy as np

from skg_bench.analysis.statistics.intervals import ALPHA, LEVEL, POWER, holm, p_value, t_quantile
from skg_bench.core.draws import Purpose, fold, key
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I64, U64

__all__ = [
    "PairedT", "bh", "by", "cluster_bootstrap", "holm", "noninferiority", "paired_t", "percentile", "power_for",
    "resampled_means", "shrunken", "sign_flip", "tost", "users_for",
]  # fmt: skip

RESAMPLES = 10_000
_BITS = 40  # of a snapped value; fewer when there are so many users that a sum would not be exact
_BLOCK = 1 << 17  # (resample, user) pairs held at a time: 1 MiB, which stays in the processor's cache


@dataclass(frozen=True, slots=True)
class PairedT:
    """Student's t on one number a user; `se`, `df` and `p` are NaN for fewer than two users."""

    mean: float
    se: float
    df: float
    p: float  # two-sided, of "the mean is 0"; 1 when all users have exactly 0

    def limit(self, p: float) -> float:
        """Confidence limit: below it lies the true mean with probability p; .95 and .05 are the one-sided ones."""
        return self.mean + t_quantile(p, self.df) * self.se


def paired_t(d: F64) -> PairedT:
    """Mean over users of `d` with Student's test of "it is 0".

    Raises UsageError when there is no user or a value is not finite.
    """
    n = len(_finite(d))
    mean = float(d.mean())
    if n < 2:
        return PairedT(mean, np.nan, np.nan, np.nan)
    se = 0.0 if np.ptp(d) == 0 else float(d.std(ddof=1)) / n**0.5
    p = p_value(mean / se, n - 1.0) if se else float(mean == 0)
    return PairedT(mean, se, n - 1.0, p)


def noninferiority(harm: F64, margin: float) -> float:
    """One-sided p-value of "the mean harm is at least `margin`": small means that it is proven smaller."""
    test = paired_t(harm)
    return _below(test.mean, test, margin)


def tost(d: F64, margin: float) -> float:
    """p-value of "the mean is `margin` or more away from 0": small means that it is proven equivalent to 0.

    Two one-sided tests (Schuirmann 1987).
    """
    test = paired_t(d)
    return max(_below(test.mean, test, margin), _below(-test.mean, test, margin))


def _below(mean: float, test: PairedT, margin: float) -> float:
    from scipy import special  # costs 0.1 s: not at import

    if not 0 < margin < np.inf:
        raise UsageError(f"margin={margin:g}; it is a size above 0, in the unit of the values")
    if test.se == 0:
        return float(mean >= margin)
    return float(special.stdtr(test.df, (mean - margin) / test.se))


def shrunken(p: float, level: float) -> float:
    """Share that is left of an estimate that is reported because its two-sided p-value is below `level`.

    Such estimates exaggerate (Gelman and Carlin 2014, type M errors). This is the conditional maximum likelihood
    estimate by Zhong and Prentice (2008, Biostatistics 9:621): of a normal z that is seen only if |z| > c, the mean mu
    that solves z = mu + (phi(c - mu) - phi(c + mu)) / (Phi(mu - c) + Phi(-mu - c)).
    """
    from scipy import special

    z, c = (-float(special.ndtri(x / 2)) for x in (p, level))
    low, high = 0.0, z
    for _ in range(60):  # bisection: the right side rises with mu
        mu = (low + high) / 2
        seen = float(special.ndtr(mu - c) + special.ndtr(-mu - c))
        pulled = exp(-((c - mu) ** 2) / 2) - exp(-((c + mu) ** 2) / 2)
        low, high = (low, mu) if mu + pulled / (sqrt(2 * pi) * seen) > z else (mu, high)
    return low / z


def sign_flip(
    d: F64, seed: int, resamples: int = RESAMPLES, alternative: Literal["two-sided", "greater"] = "two-sided"
) -> float:
    """p-value of "the values are symmetric about 0", by flipping the signs of users.

    Exact over all 2**n sign vectors when there are no more than `resamples`; else (1 + extreme) / (1 + resamples) over
    keyed random ones (Phipson and Smyth 2010).
    """
    values = _snapped(_finite(d)[:, None])[0][:, 0]
    n, exact = len(values), 2.0 ** len(values) <= resamples
    draws = 2**n if exact else resamples
    observed, extreme, step = float(values.sum()), 0, max(_BLOCK // n, 1)
    for start in range(0, draws, step):
        number = np.arange(start, min(start + step, draws))
        bits = (number[:, None] >> np.arange(n)) & 1 if exact else _random_bits(seed, number, n)
        flipped = (1.0 - 2.0 * bits) @ values
        extreme += int(np.sum(flipped >= observed if alternative == "greater" else np.abs(flipped) >= abs(observed)))
    return extreme / draws if exact else (1 + extreme) / (1 + draws)


def cluster_bootstrap(values: F64, seed: int, resamples: int = RESAMPLES) -> tuple[F64, F64]:
    """95 % percentile intervals of the means of `values` `[n, m]` over users: (low `[m]`, high `[m]`).

    NaN: the user has no value in that column, and is left out of its mean.
    """
    if len(values) == 1:  # one user again and again
        nothing = np.full(values.shape[1], np.nan)
        return nothing, nothing
    tail = (1.0 - LEVEL) / 2
    means = resampled_means(values, seed, resamples)
    return percentile(means, tail), percentile(means, 1.0 - tail)


def resampled_means(values: F64, seed: int, resamples: int = RESAMPLES) -> F64:
    """Means of the columns of `values` `[n, m]` over each resample of the users, `[resamples, m]`.

    Whole users are resampled (Efron 1979; Field and Welsh 2007 for clusters), the same ones for all m columns: each
    resample is a row of counts, and counts @ values are all sums at once. NaN as in `cluster_bootstrap`; a mean of
    nobody is NaN.
    """
    n, missing = len(values), np.isnan(values)
    whole, unit = _snapped(_finite(np.where(missing, 0.0, values)))
    presence = (~missing).astype(np.float64)
    means = np.empty((resamples, values.shape[1]))
    step = max(_BLOCK // n, 1)
    for start in range(0, resamples, step):
        number = np.arange(start, min(start + step, resamples))
        counts = _counts(seed, number, n)
        users = counts @ presence if missing.any() else float(n)
        with np.errstate(invalid="ignore"):  # a mean of nobody: 0 / 0
            means[start : start + len(number)] = counts @ whole / users
    return means * unit


def percentile(means: F64, p: float) -> F64:
    """Below which the share p of the resampled means `[resamples, m]` lies, `[m]`; NaN ones do not count."""
    missing = np.isnan(means)
    whole, some = ~missing.any(axis=0), missing.any(axis=0) & ~missing.all(axis=0)
    quantiles = np.full(means.shape[1], np.nan)
    quantiles[whole] = np.quantile(means[:, whole], p, axis=0)
    quantiles[some] = np.nanquantile(means[:, some], p, axis=0)
    return quantiles


def bh(p: Sequence[float]) -> list[float]:
    """p-values adjusted so that the expected share of false findings is at most alpha (Benjamini and Hochberg 1995)."""
    return _false_discovery(p, "bh")


def by(p: Sequence[float]) -> list[float]:
    """As `bh`, under any dependence (Benjamini and Yekutieli 2001)."""
    return _false_discovery(p, "by")


def power_for(effect: float, sd: float, n: int, alpha: float = ALPHA, one_sided: bool = False) -> float:
    """Probability that n users show a true mean `effect` when users scatter by `sd` (noncentral t)."""
    from scipy import special

    df, shift = n - 1.0, abs(effect) / sd * n**0.5
    critical = t_quantile(1.0 - (alpha if one_sided else alpha / 2), df)
    above = 1.0 - np.nan_to_num(special.nctdtr(df, shift, critical))  # NaN where the probability is below 1e-100
    below = 0.0 if one_sided else np.nan_to_num(special.nctdtr(df, shift, -critical))
    return float(above + below)


def users_for(sd: float, effect: float, alpha: float = ALPHA, power: float = POWER, one_sided: bool = False) -> int:
    """Fewest users (at least 2) that show a true mean `effect` with this power.

    Raises UsageError when the effect is 0 or the spread is negative or not finite.
    """
    from scipy import special

    if not (0 < abs(effect) < np.inf and 0 <= sd < np.inf):
        raise UsageError(f"effect={effect:g}, sd={sd:g}; an effect other than 0 and a spread of 0 or more are needed")
    if sd == 0:
        return 2
    z = special.ndtri(1.0 - (alpha if one_sided else alpha / 2)) + special.ndtri(power)
    n = max(2, int(np.ceil((z * sd / effect) ** 2)))  # by the normal distribution: never too many, a few too few
    while power_for(effect, sd, n, alpha, one_sided) < power:
        n += 1
    return n


def _finite(values: F64) -> F64:
    if len(values) == 0:
        raise UsageError("no user has a value; nothing can be tested")
    bad = int(np.sum(~np.isfinite(values)))
    if bad:
        raise UsageError(f"{bad} of {values.size} values of users are missing or not finite; leave those users out")
    return values


def _snapped(values: F64) -> tuple[F64, F64]:
    """`values` `[n, m]` as whole numbers and the unit of each column `[m]`: sums over users are exact, below 2**53.

    Differences that are equal on paper and not in the last place become equal, so that ties count as ties.
    """
    _, exponent = np.frexp(np.abs(values).max(axis=0))
    unit: F64 = np.ldexp(1.0, exponent - min(_BITS, 53 - len(values).bit_length()))
    return np.rint(values / unit), unit


def _words(seed: int, number: I64, width: int) -> U64:
    """`[b, width]` random words of the resamples `number` `[b]`."""
    each = fold(key(seed, number), int(Purpose.RESAMPLE))
    return fold(each[:, None], np.arange(width))


def _random_bits(seed: int, number: I64, n: int) -> I64:
    words = _words(seed, number, -(-n // 64))
    bits = (words[:, :, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    return bits.reshape(len(number), -1)[:, :n].astype(np.int64)


def _counts(seed: int, number: I64, n: int) -> F64:
    """How often each user is in each resample, `[b, n]`: n users drawn from n, two from each word."""
    words = _words(seed, number, -(-n // 2))
    halves = np.concatenate([words >> np.uint64(32), words & np.uint64(0xFFFFFFFF)], axis=1)[:, :n]
    halves *= np.uint64(n)
    halves >>= np.uint64(32)
    user = halves.view(np.int64)
    user += np.arange(len(number))[:, None] * n
    return np.bincount(user.ravel(), minlength=len(number) * n).reshape(-1, n).astype(np.float64)


def _false_discovery(p: Sequence[float], method: Literal["bh", "by"]) -> list[float]:
    from scipy.stats import false_discovery_control

    adjusted = np.array(p, np.float64)
    tested = ~np.isnan(adjusted)  # NaN (no test) stays NaN and does not count, as in `holm`
    if tested.any():
        adjusted[tested] = false_discovery_control(adjusted[tested], method=method)
    return [float(x) for x in adjusted]
