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
Satterthwaite (1946): V_new^2 / (V_user^2 / (n - 1) + V_intent^2 / f). f is Bell and McCaffrey's for the quadratic form
in independent intent effects of one size, f = tr(M)^2 / tr(M^2), M = (I - w 1') diag(g w^2) (I - 1 w') (Imbens and
Kolesar 2016, eq. 7).

Where few users or few intents carry a difference, its distribution is skewed, and Student's misses on one side. The
third cumulant of t is that of the mean over users plus that of the intents' totals b_i = sum_u s_ui,
    k3 = sum_u (r_u - t)^3 / (n (n - 1) (n - 2)) + q sum_i (g_i^1/2 b_i)^3,      skewness = k3 / V_new^3/2.
Where V_intent is a small part of sum_i g_i b_i^2, the totals are users' noise, and so are their powers: q is the fourth
root of that part (by simulation). As unevenly as users and intents would
    M = V_new^2 / (sum_u (r_u - t)^4 / n^4 + q sum_i (g_i^1/2 b_i)^4)
equal ones spread. `skewed` makes the score interval of them: monotone, so that interval, p-values, one-sided limits
and detectable sizes are of one method, which does not look at the sign of t.

For which worlds it holds: no formula is right for every tail (Bahadur and Savage 1956). Measured in
`experiments/known_truth`, with 30 and 100 users and 40, 120 and 450 intents. Effects of light tails, heavy ones of both
signs, and harm that few users or few intents bear: it holds the truth in 91 to 99 %, and finds a difference where there
is none in 1 to 8 %. Where one tail is of users and the opposite one of intents, their skewness cancels, and it is no
better than Student's (86 %). It does not hold for effects that a smaller share of users or of intents
bears than `least_shares` says: a sample may hold none of them. On the side away from a long tail misses are below 1 %.
Where the ends of Student's interval and of this one differ by half of Student's width, a bootstrap of users and intents
is drawn as well (`pigeonhole`), and where the three disagree on whether the difference is 0, the verdict depends on the
interval.

Effective numbers are the inverse of Simpson's index (Hill 1973, order 2). That of the design is 1 / sum_i w_i^2, from
the requests alone: below LEAST_INTENTS there is no interval for new requests, whatever the intents showed. An estimate
rests on 1 / sum_i p_i^2 intents, with shares p_i of |sum_u A_ui / (n B_u)|.

A difference of two ratios of the same users has r_u, A_ui / B_u and s_ui replaced by the differences.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isnan
from typing import Any

import numpy as np
import numpy.typing as npt

from skg_bench.analysis.statistics.pigeonhole import pigeonhole
from skg_bench.analysis.statistics.skewed import detectable_at, error_at, student_at
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I32, I64, Bool

LEVEL = 0.95  # of every interval
ALPHA = 1.0 - LEVEL  # two-sided
POWER = 0.80  # of the minimum detectable effect
LEAST_INTENTS = 4.0  # effective ones of the design, for new requests
LARGEST = 5  # intents that are named
_TOGETHER = 2**15  # cells that are worked on at once: what is made of them stays in the processor's cache


@dataclass(frozen=True)
class Cells:
    """User and intent of each (user, intent) cell."""

    user: I64 | I32  # [c] row of the user, 0..n_users-1
    intent: I64 | I32  # [c] intent or one-off message, 0..n_intents-1
    n_users: int
    n_intents: int

    @cached_property
    def by_user(self) -> "SumsOf":
        """Sums over a user's cells, `[n_users]`, of values `[c]`."""
        return sums_by(self.user, self.n_users)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over users and its two standard errors; NaN with too few users (a mean needs one, an interval two)."""

    mean: float
    se: float  # these requests
    df: float
    se_new: float  # new requests; NaN: withheld, see `withheld`
    df_new: float
    n_users: int  # users in the mean
    excluded: int  # users without a denominator
    skewness: float = 0.0  # of the mean, new requests
    effects: float = np.inf  # users and intents that would spread as unevenly if they were equal
    intents: float = np.nan  # effective number that carries the mean; NaN: none contributes
    largest: tuple[tuple[int, float], ...] = ()  # intents with the largest shares of all contributions, without sign
    design: float = np.nan  # effective number of intents that the users bring; NaN: unknown
    bootstrap: tuple[float, float] | None = None  # 95 % for new requests; None: Student's is near, so it is not drawn

    @property
    def withheld(self) -> bool:
        """Has the design too few intents for an interval for new requests?"""
        return self.design < LEAST_INTENTS and isnan(self.se_new)

    @property
    def least_shares(self) -> tuple[float, float]:
        """Smallest shares of users and of intents of which 95 % of such designs hold at least one, about 3/n."""
        return 1.0 - ALPHA ** (1.0 / max(self.n_users, 1)), 1.0 - ALPHA ** (1.0 / max(self.design, 1.0))

    @property
    def student(self) -> tuple[float, float]:
        """Two-way Student's 95 % interval for new requests: without the skewness."""
        half = t_quantile(1 - ALPHA / 2, self.df_new) * self.se_new
        return self.mean - half, self.mean + half

    @property
    def disputed(self) -> bool:
        """Do intervals differ by half a width, and say different things on "the mean is 0"?"""
        ends = (self.interval(new=True), *self.others.values())
        return len({(low > 0, high < 0) for low, high in ends}) > 1

    @property
    def others(self) -> dict[str, tuple[float, float]]:
        """The other two intervals for new requests where they differ from this one by half a width; else none."""
        return {} if self.bootstrap is None else {"Student's": self.student, "bootstrap": self.bootstrap}

    def interval(self, *, new: bool, bounds: tuple[float, float] = (-np.inf, np.inf)) -> tuple[float, float]:
        """The 95 % interval, cut at `bounds`; all between them where too few users have the same value, not 0."""
        se = self.se_new if new else self.se
        if se == 0 and self.mean != 0 and self._alike >= ALPHA:
            return bounds
        low, high = (self.mean - self._errors(tail, new=new) * se for tail in (1 - ALPHA / 2, ALPHA / 2))
        return max(low, bounds[0]), min(high, bounds[1])

    def p(self, *, new: bool) -> float:
        """Two-sided p-value of "the mean is 0"; where all users have the same value that of the sign test, 1 for 0."""
        if (self.se_new if new else self.se) == 0:
            return 1.0 if self.mean == 0 else self._alike
        return 2.0 * min(self._tail(0.0, -1.0, new=new), self._tail(0.0, 1.0, new=new))

    def limit(self, p: float) -> float:
        """Confidence limit for new requests: below it lies the true mean with probability p."""
        return self.mean - self._errors(1 - p, new=True) * self.se_new

    def equivalence(self, margin: float) -> float:
        """p-value for new requests of "the mean is `margin` or more away from 0", by Schuirmann's (1987) two tests."""
        if not 0 < margin < np.inf:
            raise UsageError(f"margin={margin:g}; it is a size above 0, in the unit of the values")
        if self.se_new == 0:
            return 1.0 if abs(self.mean) >= margin else self._alike / 2
        return max(self._tail(margin, 1.0, new=True), self._tail(-margin, -1.0, new=True))

    def detectable(self, *, new: bool, level: float = ALPHA, sign: float = 0.0) -> float:
        """Smallest true difference that a two-sided test at this level finds in 80 % of such runs: a rise (`sign` 1), a
        fall (-1), or one of the sign found (0).

        These requests: (t_.975 + t_.80) se at 5 %. New requests: see `skewed`.
        """
        sign = sign or (-1.0 if self.mean < 0 else 1.0)
        if not new:
            return (t_quantile(1 - level / 2, self.df) + t_quantile(POWER, self.df)) * self.se
        quantiles = t_quantile(1 - level / 2, self.df_new), t_quantile(POWER, self.df_new)
        skewness, far = sign * self.skewness, self.bootstrap is not None
        return detectable_at(*quantiles, skewness, self.effects, agreed=far) * self.se_new

    @property
    def _alike(self) -> float:
        """Two-sided p-value of the sign test where all users are on one side of a value (Fisher 1935)."""
        return 2.0 ** (1 - self.n_users)

    def _errors(self, p: float, *, new: bool) -> float:
        """Standard errors by which the mean is above the truth at most, with probability p."""
        if not new:
            return t_quantile(p, self.df)
        return error_at(t_quantile(p, self.df_new), self.skewness, self.effects)

    def _tail(self, truth: float, sign: float, *, new: bool) -> float:
        """Probability of a mean as low as this one (`sign` 1), or as high (-1), if this is the truth."""
        from scipy import special  # costs 0.1 s: not at import

        if not new:
            return float(special.stdtr(self.df, sign * (self.mean - truth) / self.se))
        t = student_at((self.mean - truth) / self.se_new, self.skewness, self.effects)
        return float(special.stdtr(self.df_new, sign * t))


def estimates(cells: Cells, overs: Sequence[F64], counts: Iterable[Sequence[F64]]) -> list[Estimate]:
    """Means over users of ratios that share their denominators.

    `overs`: B_ui `[c]` of a ratio, or of two whose difference, first - second, is wanted; a user needs all of them.
    `counts`: for each estimate, A_ui `[c]` of these ratios.
    """
    totals = [cells.by_user(over) for over in overs]
    kept = np.logical_and.reduce([total > 0 for total in totals])
    n = int(kept.sum())
    each = [np.where(kept, 1.0 / np.where(total > 0, total, 1.0), 0.0) for total in totals]
    ratios = []
    for inverse, over in zip(each, overs, strict=True):
        weight = np.take(inverse, cells.user)
        weight *= over
        weight /= max(n, 1)
        ratios.append(_Ratio(inverse, inverse / max(n, 1), weight))
    mix = _mix(cells, _mean_of([ratio.weight for ratio in ratios])) if n > 1 else None
    scratch = np.empty(len(cells.user))  # once for all: fresh room costs as much as what is done in it
    return [_estimate(cells, kept, ratios, mix, count, scratch) for count in counts]


@dataclass(frozen=True, slots=True)
class _Ratio:
    """Denominators of a ratio, the same for all estimates; 0 for users without one."""

    inverse: F64  # [n_users] 1 / B_u
    gain: F64  # [n_users] 1 / (n B_u)
    weight: F64  # [c] B_ui / (n B_u)


def _mean_of(weights: Sequence[F64]) -> F64:
    return weights[0] if len(weights) == 1 else (weights[0] + weights[1]) / 2


def _difference(each: Sequence[F64]) -> F64:
    return each[0] if len(each) == 1 else each[0] - each[1]


@dataclass(frozen=True, slots=True)
class _Added:
    """Parts of a mean, and scores, that cells add to it, a few cells at a time: all at once are not held."""

    cells: Cells
    ratios: Sequence[_Ratio]
    counts: Sequence[F64]  # A_ui `[c]` of each ratio
    means: Sequence[float]  # of each ratio

    def __iter__(self) -> Iterator[tuple[slice, F64, F64]]:
        for some in _few(len(self.cells.user)):
            user = self.cells.user[some]
            parts = [ratio.gain[user] * count[some] for ratio, count in zip(self.ratios, self.counts, strict=True)]
            scores = [
                part - mean * ratio.weight[some]
                for part, mean, ratio in zip(parts, self.means, self.ratios, strict=True)
            ]
            yield some, _difference(parts), _difference(scores)


def _few(cells: int) -> Iterator[slice]:
    return (slice(first, first + _TOGETHER) for first in range(0, cells, _TOGETHER))


def _estimate(
    cells: Cells, kept: Bool, ratios: Sequence[_Ratio], mix: "_Mix | None", counts: Sequence[F64], scratch: F64
) -> Estimate:
    n = int(kept.sum())
    excluded = cells.n_users - n
    if n == 0:
        return Estimate(np.nan, np.nan, np.nan, np.nan, np.nan, 0, excluded)
    # first whole counts, then the ratio: equal users stay equal
    values = [cells.by_user(count) * ratio.inverse for count, ratio in zip(counts, ratios, strict=True)]
    added = _Added(cells, ratios, counts, [value.sum() / n for value in values])
    value = _difference(values)
    mean = float(value[kept].sum() / n)
    carried, together = np.zeros(cells.n_intents), np.zeros(cells.n_intents)
    for some, part, score in added:
        intent = cells.intent[some].astype(np.int64)  # which numpy adds at ten times as fast
        np.add.at(carried, intent, part)  # in the order of the rows, as `sums` adds
        if mix is not None:
            np.add.at(together, intent, score)
            np.multiply(mix.g[intent], score**2, out=scratch[some])
    effective, largest = _carried(carried)
    if mix is None:
        return Estimate(mean, np.nan, np.nan, np.nan, np.nan, n, excluded, 0.0, np.inf, effective, largest)
    away = value[kept] - mean
    by_user = float((away**2).sum() / (n * (n - 1)))
    pairs = float((mix.g * together**2).sum() - scratch.sum())
    by_intent = max(pairs + by_user * mix.pull, 0.0) if mix.df == mix.df else np.nan
    both, df = by_user + by_intent, n - 1.0
    design = mix.intents
    if both == 0 or design < LEAST_INTENTS:
        se_new = 0.0 if both == 0 else np.nan
        return Estimate(mean, by_user**0.5, df, se_new, df, n, excluded, 0.0, np.inf, effective, largest, design)
    scaled = mix.g**0.5 * together
    df_new = both**2 / (by_user**2 / df + by_intent**2 / mix.df)
    real = min(by_intent / total, 1.0) ** 0.25 if (total := float((scaled**2).sum())) > 0 else 0.0
    third = float((away**3).sum()) / max(n * (n - 1) * (n - 2), 1) + real * float((scaled**3).sum())
    effects = both**2 / (float((away**4).sum()) / n**4 + real * float((scaled**4).sum()))
    estimate = Estimate(
        mean, by_user**0.5, df, both**0.5, df_new, n, excluded, third / both**1.5, effects, effective, largest, design
    )
    return replace(estimate, bootstrap=_drawn(estimate, added))


def _drawn(e: Estimate, added: _Added) -> tuple[float, float] | None:
    """The bootstrap's interval, if one end of Student's is half of its width away."""
    (low, high), (low_student, high_student) = e.interval(new=True), e.student
    if not max(abs(low - low_student), abs(high - high_student)) >= (high_student - low_student) / 2:
        return None
    scores = np.concatenate([score for _, _, score in added])
    below, above = pigeonhole(added.cells.user, added.cells.intent, scores, ALPHA / 2)
    return e.mean + below, e.mean + above


def _simpson(size: F64) -> float:
    """How many equal sizes are as uneven as these; NaN: there is none."""
    total = float(size.sum())
    return total**2 / float((size**2).sum()) if total > 0 else np.nan


def _carried(by_intent: F64) -> tuple[float, tuple[tuple[int, float], ...]]:
    """Number of intents on which an estimate rests, and the largest with their shares."""
    size = np.abs(by_intent)
    effective = _simpson(size)
    if isnan(effective):
        return effective, ()
    largest = np.argsort(-size, kind="stable")[:LARGEST]
    shares = size[largest] / size.sum()
    return effective, tuple((int(i), float(p)) for i, p in zip(largest, shares, strict=True) if p > 0)


@dataclass(frozen=True, slots=True)
class _Mix:
    """Sums over the users' mix of intents, for the module's formulas."""

    g: F64  # [n_intents]
    pull: float  # sum_i g_i [w_i^2 - sum_u w_ui^2]
    df: float  # of V_intent; NaN: all is one intent, which says nothing about others
    intents: float  # effective number


def _mix(cells: Cells, weight: F64) -> _Mix:
    w = sums(cells.intent, cells.n_intents, weight)
    square = float((w**2).sum())
    if square > 1.0 - 1e-9:
        return _Mix(np.zeros(cells.n_intents), 0.0, np.nan, 1.0)
    g = 1.0 / (1.0 - 2.0 * w + square)
    pull = float((g * w**2).sum() - (g[cells.intent] * weight**2).sum())
    d = g * w**2
    sd, wd, dd, ddw, dww = (float(x.sum()) for x in (d, w * d, d * d, d * d * w, d * w * w))
    trace = sd - 2 * wd + sd * square
    trace_of_square = (
        dd + 2 * wd**2 + (sd * square) ** 2 + 2 * (-2 * ddw + sd * dww + dd * square - 2 * sd * wd * square)
    )
    return _Mix(g, pull, max(trace**2 / trace_of_square, 1.0), round(1.0 / square, 9))  # whole if all are equal


def sums(index: I64 | I32, size: int, weights: npt.NDArray[Any] | None = None) -> F64:
    """Sums of `weights` (1 each if None) by index, added in the order of the rows: the same bits everywhere."""
    return np.bincount(index, weights, size).astype(np.float64, copy=False)


SumsOf = Callable[[F64 | Bool], F64]  # of weights, a number for each row


def sums_by(index: I64 | I32, size: int) -> SumsOf:
    """`sums` of any weights by one index, to the same bits: three times as fast where the index ascends."""
    if np.any(index[1:] < index[:-1]):
        return partial(sums, index, size)
    from scipy.sparse import csr_array  # costs 0.1 s: not at import

    ends = np.concatenate([[0], np.cumsum(np.bincount(index, minlength=size))])
    runs, first = list[tuple[int, int]](), 0
    while first < size:
        last = max(int(np.searchsorted(ends, ends[first] + _TOGETHER, side="right")) - 1, first + 1)
        runs.append((first, last))
        first = last
    rows = max((int(ends[last] - ends[first]) for first, last in runs), default=0)
    ones, row = np.ones(rows), np.arange(rows, dtype=np.int32)  # those of the longest run, which the others share
    summed = []
    for first, last in runs:
        start, stop = int(ends[first]), int(ends[last])
        n, places = stop - start, (ends[first : last + 1] - start).astype(np.int32)
        summed.append((slice(start, stop), csr_array((ones[:n], row[:n], places), shape=(last - first, n))))
    return lambda weights: np.concatenate([each @ weights[some] for some, each in summed]) if summed else np.zeros(0)


def t_quantile(p: float, df: float) -> float:
    """Quantile of Student's t."""
    from scipy import special  # costs 0.1 s: not at import

    return float(special.stdtrit(df, p))


def p_value(t: float, df: float) -> float:
    """Two-sided p-value of Student's t."""
    from scipy import special

    return float(2.0 * special.stdtr(df, -abs(t)))


def holm(p: Sequence[float]) -> list[float]:
    """p-values adjusted for all of them together (Holm 1979). NaN, which is no test, stays NaN and does not count."""
    order = sorted((i for i, x in enumerate(p) if x == x), key=lambda i: p[i])
    adjusted, floor = list(p), 0.0
    for rank, i in enumerate(order):
        floor = max(floor, min(1.0, p[i] * (len(order) - rank)))
        adjusted[i] = floor
    return adjusted
