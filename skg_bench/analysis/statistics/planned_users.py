"""Numbers of users that show a difference, planned from a pilot, with an interval.

A plan hangs on the variance of a user's part in the difference, and that is a mean of squares: it has an error of its
own, which the fourth moment gives. The interval is that of Bonett (2006, Computational Statistics & Data Analysis
50:775, equation 3): normal on the logarithm of the variance, with a kurtosis about a trimmed mean. Here Student's t
takes the place of the normal distribution, with as many users as would spread so unevenly if they were equal. Where the
pilot says the size of the difference as well, the interval is that of the standardised difference, by its influence on
each user (the delta method).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log, sqrt

import numpy as np

from skg_bench.analysis.statistics.inference import users_for
from skg_bench.analysis.statistics.intervals import ALPHA, t_quantile
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64

LEAST_PILOT, LEAST_EQUAL = 50, 5.0
"""Users of a pilot, and equal ones who would spread its difference as unevenly, from which on intervals hold the truth
in nine of ten pilots.
"""
LEAST_PLANNED = 50
"""Users from which on Student's test of skewed differences has the power that is planned."""
_MOST = 10**9  # users of a plan; more are written as without end
_LARGE = 300.0  # logarithm of a spread
_LEAST_USERS = 5  # for a trimmed mean


@dataclass(frozen=True, slots=True)
class PlannedUsers:
    """Users that decide a contrast, and how sure that number is."""

    users: float  # inf: more than a billion
    low: float  # 95 % interval
    high: float
    pilot: int  # users
    equal: float  # number of equal users who would spread the pilot's difference as unevenly

    @property
    def trusted(self) -> bool:
        """Does the interval hold the truth as often as it says?"""
        return self.pilot >= LEAST_PILOT and self.equal >= LEAST_EQUAL


def planned_users(
    groups: Sequence[F64], noise: F64, difference: F64, effect: float | None = None, *, power: float = 0.80
) -> PlannedUsers:
    """Users in each group, for a two-sided test at 5 %.

    `groups`: values `[G]` of the pilot's users, one array if each user meets both arms, two if each meets one. `noise`
    `[G]`: variance that a user's value has besides, such as that of a coin. `difference` `[G]`: of the two arms.
    `effect`: smallest difference that matters; None: the pilot's, whose error widens the interval.

    Raises UsageError for fewer than five users, users who do not differ, and an effect of 0.
    """
    n = len(difference)
    if n < _LEAST_USERS:
        raise UsageError(
            f"the pilot has {n} users; a spread takes {_LEAST_USERS} at least, and a good one {LEAST_PILOT}: run more"
        )
    squares = _squares(groups, [float(each.mean()) for each in groups]) + noise * (n - 1) / n
    variance = float(squares.sum()) / (n - 1)
    if not noise.any() and not any(np.ptp(each) for each in groups):
        raise UsageError("no user differs from another one, so nothing tells how many are needed; take a larger pilot")
    around = _squares(groups, [_trimmed(each) for each in groups]) + noise * (n - 1) / n
    kurtosis = n * float((around**2).sum()) / float(squares.sum()) ** 2
    t = t_quantile(1 - ALPHA / 2, max(n / kurtosis - 1.0, 1.0))
    mean = float(difference.mean())
    if effect is None and mean == 0:
        raise UsageError("the arms have the same mean in the pilot; say which difference matters: --effect 0.01")
    size = mean if effect is None else effect
    planned = least_users(sqrt(variance), size, power)
    if effect is None:
        standard = mean / sqrt(variance)
        influence = (difference - mean) / sqrt(variance) - standard / 2 * (squares / variance - 1.0)
        half = t * float(influence.std(ddof=1)) / sqrt(n)
        far, near = abs(standard) + half, max(abs(standard) - half, 0.0)
        low, high = least_users(1.0, far, power), least_users(1.0, near, power)
    elif t >= n:
        low, high = 2.0, inf
    else:
        correction = n / (n - t)
        half = t * correction * sqrt((kurtosis - (n - 3) / n) / (n - 1))
        logs = log(correction * variance) - half, log(correction * variance) + half
        low, high = (least_users(exp(min(end / 2, _LARGE)), size, power) for end in logs)
    return PlannedUsers(planned, min(low, planned), max(high, planned), n, n / kurtosis)


def least_users(spread: float, effect: float, power: float = 0.80) -> float:
    """Fewest users that show an effect; inf: more than a billion."""
    if effect == 0 or spread / abs(effect) > sqrt(_MOST) / 2:
        return inf
    return float(users_for(spread, effect, power=power))


def _squares(groups: Sequence[F64], centres: Sequence[float]) -> F64:
    squares: F64 = np.sum([(each - centre) ** 2 for each, centre in zip(groups, centres, strict=True)], axis=0)
    return squares


def _trimmed(values: F64) -> float:
    """Mean without the share 1 / (2 sqrt(n - 4)) at each end, as Bonett takes it."""
    n = len(values)
    cut = int(n / (2 * sqrt(max(n - 4, 1))))
    return float(np.sort(values)[cut : n - cut].mean()) if n > 2 * cut else float(np.median(values))
