"""Means over users of a user's ratio, with two intervals.

Notation: user u of n, intent i (every one-off message is an intent of its own), cell (u, i) with sums A_ui and B_ui of
the numerator and the denominator; A_u, B_u the user's totals, r_u = A_u / B_u, and the figure is t = mean_u r_u.

*These requests* answers: what would other users do with the same intents? Users are independent, so
    V_user = sum_u (r_u - t)^2 / (n (n - 1)),        Student's t with n - 1 degrees of freedom.

*New requests* answers: and with other intents? All users share the intents, so two users' errors are correlated through
them. With the linearised score of a cell and its weight,
    s_ui = (A_ui - t B_ui) / (n B_u)    [sum_i s_ui = (r_u - t) / n],        w_ui = B_ui / (n B_u),  w_i = sum_u w_ui,
the two-way estimate by Cameron, Gelbach and Miller (2011, eq. 2.11: by user + by intent - by cell) is V_user plus the
products of different users within an intent,
    V_intent = sum_i g_i [ (sum_u s_ui)^2 - sum_u s_ui^2 ] + V_user sum_i g_i [ w_i^2 - sum_u w_ui^2 ],
    g_i = 1 / (1 - 2 w_i + sum_j w_j^2),        V_new = V_user + max(0, V_intent).
g_i undoes the shrinkage of residuals of heavy intents (Bell and McCaffrey 2002, exact when only intents differ); the
second sum undoes the pull of the common t on users' residuals (-V_user/n for each pair). Weights are held as they are:
the users' mix of intents stays, what the intents are is redrawn (Owen 2007, pigeonhole model). Degrees of freedom by
Satterthwaite (1946): V_new^2 / (V_user^2 / (n - 1) + V_intent^2 / f), where f is Bell and McCaffrey's for the quadratic
form in independent intent effects, f = tr(M)^2 / tr(M^2), M = (I - w 1') diag(g w^2) (I - 1 w') (Imbens and Kolesar
2016, eq. 7). Coverage is checked in `experiments/known_truth`.

A difference of two ratios of the same users has r_u and s_ui replaced by the differences.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from skg_bench.core.grid import F64, I64, Bool

LEVEL = 0.95  # of every interval
ALPHA = 1.0 - LEVEL  # two-sided
POWER = 0.80  # of the minimum detectable effect


@dataclass(frozen=True, slots=True)
class Cells:
    """Which user and which intent each (user, intent) cell belongs to."""

    user: I64  # [c] row of the user, 0..n_users-1
    intent: I64  # [c] intent or one-off message, 0..n_intents-1
    n_users: int
    n_intents: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over users and its two standard errors; NaN with too few users (a mean needs one, an interval two)."""

    mean: float
    se: float  # these requests
    df: float
    se_new: float  # new requests
    df_new: float
    n_users: int  # users in the mean
    excluded: int  # users without a denominator

    def interval(self, *, new: bool, bounds: tuple[float, float] = (-np.inf, np.inf)) -> tuple[float, float]:
        """The 95 % interval, cut at `bounds`."""
        se, df = (self.se_new, self.df_new) if new else (self.se, self.df)
        half = t_quantile(0.5 + LEVEL / 2, df) * se
        return max(self.mean - half, bounds[0]), min(self.mean + half, bounds[1])

    def p(self, *, new: bool) -> float:
        """Two-sided p-value of "the mean is 0"; 1 when all users have exactly 0."""
        se, df = (self.se_new, self.df_new) if new else (self.se, self.df)
        if se == 0:
            return 1.0 if self.mean == 0 else 0.0
        return p_value(self.mean / se, df)

    def detectable(self, *, new: bool) -> float:
        """Smallest true difference found at the 5 % level (two-sided) in 80 % of such runs: (t_.975 + t_.80) se."""
        se, df = (self.se_new, self.df_new) if new else (self.se, self.df)
        return (t_quantile(1 - ALPHA / 2, df) + t_quantile(POWER, df)) * se


def estimates(cells: Cells, overs: Sequence[F64], counts: Iterable[Sequence[F64]]) -> list[Estimate]:
    """Means over users of ratios that share their denominators.

    `overs`: B_ui `[c]` of a ratio, or of two whose difference, first - second, is wanted; a user needs all of them.
    `counts`: for each estimate, A_ui `[c]` of these ratios.
    """
    totals = [sums(cells.user, cells.n_users, over) for over in overs]
    kept = np.logical_and.reduce([total > 0 for total in totals])
    n = int(kept.sum())
    each = [np.where(kept, 1.0 / np.where(total > 0, total, 1.0), 0.0) for total in totals]
    weights = [inverse[cells.user] * over / max(n, 1) for inverse, over in zip(each, overs, strict=True)]
    mix = _mix(cells, weights[0] if len(weights) == 1 else (weights[0] + weights[1]) / 2) if n > 1 else None
    return [_estimate(cells, kept, each, weights, mix, count) for count in counts]


def _estimate(
    cells: Cells, kept: Bool, each: list[F64], weights: list[F64], mix: "_Mix | None", counts: Sequence[F64]
) -> Estimate:
    n = int(kept.sum())
    excluded = cells.n_users - n
    if n == 0:
        return Estimate(np.nan, np.nan, np.nan, np.nan, np.nan, 0, excluded)
    value, score, sign = np.zeros(cells.n_users), np.zeros(cells.user.size), 1.0
    for inverse, weight, count in zip(each, weights, counts, strict=True):
        # first whole counts, then the ratio: equal users stay equal
        ratio = sums(cells.user, cells.n_users, count) * inverse
        value += sign * ratio
        score += sign * ((inverse / n)[cells.user] * count - ratio.sum() / n * weight)
        sign = -1.0
    mean = float(value[kept].sum() / n)
    if mix is None:
        return Estimate(mean, np.nan, np.nan, np.nan, np.nan, n, excluded)
    by_user = float(((value[kept] - mean) ** 2).sum() / (n * (n - 1)))
    together = sums(cells.intent, cells.n_intents, score)
    pairs = float((mix.g * together**2).sum() - (mix.g[cells.intent] * score**2).sum())
    by_intent = max(pairs + by_user * mix.pull, 0.0) if mix.df == mix.df else np.nan
    both, df = by_user + by_intent, n - 1.0
    df_new = df if both == 0 else both**2 / (by_user**2 / df + by_intent**2 / mix.df)
    return Estimate(mean, by_user**0.5, df, both**0.5, df_new, n, excluded)


@dataclass(frozen=True, slots=True)
class _Mix:
    """What the users' mix of intents alone says, for the module's formulas."""

    g: F64  # [n_intents]
    pull: float  # sum_i g_i [w_i^2 - sum_u w_ui^2]
    df: float  # of V_intent; NaN: all is one intent, which says nothing about others


def _mix(cells: Cells, weight: F64) -> _Mix:
    w = sums(cells.intent, cells.n_intents, weight)
    square = float((w**2).sum())
    if square > 1.0 - 1e-9:
        return _Mix(np.zeros(cells.n_intents), 0.0, np.nan)
    g = 1.0 / (1.0 - 2.0 * w + square)
    pull = float((g * w**2).sum() - (g[cells.intent] * weight**2).sum())
    d = g * w**2
    sd, wd, dd, ddw, dww = (float(x.sum()) for x in (d, w * d, d * d, d * d * w, d * w * w))
    trace = sd - 2 * wd + sd * square
    trace_of_square = (
        dd + 2 * wd**2 + (sd * square) ** 2 + 2 * (-2 * ddw + sd * dww + dd * square - 2 * sd * wd * square)
    )
    return _Mix(g, pull, max(trace**2 / trace_of_square, 1.0))


def sums(index: I64, size: int, weights: npt.NDArray[Any] | None = None) -> F64:
    """Sums of `weights` (1 each if None) by index, added in the order of the rows: the same bits everywhere."""
    return np.bincount(index, weights, size).astype(np.float64, copy=False)


def t_quantile(p: float, df: float) -> float:
    """Quantile of Student's t."""
    from scipy import special  # costs 0.1 s: not at import

    return float(special.stdtrit(df, p))


def p_value(t: float, df: float) -> float:
    """Two-sided p-value of Student's t."""
    from scipy import special

    return float(2.0 * special.stdtr(df, -abs(t)))


def holm(p: Sequence[float]) -> list[float]:
    """p-values adjusted for all of them together (Holm 1979): at most 5 % of such tables hold a false finding.

    NaN (no test) stays NaN and does not count.
    """
    order = sorted((i for i, x in enumerate(p) if x == x), key=lambda i: p[i])
    adjusted, floor = list(p), 0.0
    for rank, i in enumerate(order):
        floor = max(floor, min(1.0, p[i] * (len(order) - rank)))
        adjusted[i] = floor
    return adjusted
