"""The rule of the verdict. Harm is signed so that positive is worse; limits are one-sided, at 95 %.

    pass          every metric's upper limit is below its margin
    fail          some metric's lower limit, corrected for their number (Holm 1979), is above 0, and its harm is at
                  least the margin
    inconclusive  anything else, with the number of users that would decide it

The lead over `never` has no margin: its harm is what is missing to the share that must be kept, and 0 is too much. So a
build that gives the product up passes in no way, however wide the other margins are.

A metric of role "efficiency" (right hits, cost) also passes where all of role "errors" are proven to have fallen: what
is lost in right hits may be the price of fewer wrong answers, and utility, which weighs both, decides. A build that is
worse has then two ways to pass, so that each is judged at 2.5 % (Bonferroni). Right hits have a floor: a share of them
must provably be kept even then, for who answers nothing answers nothing wrongly.

Pass needs no correction, as each metric alone must pass (Berger 1982), and it excludes fail, as no harm lies above its
own upper limit. Harm that is proven but below the margin passes, and is flagged.

Student's limits assume that the mean of n users is about normal; skewed harms make one of them err more often than 5 %.
The first term of Edgeworth's expansion says by how much (Hall 1992, section 2.6), so both are widened by
``|skewness| (2 t^2 + 1) / (6 sqrt(n))`` standard errors. That holds from n = 25 skewness^2 users on (Cochran 1977, eq.
2.15). Where there are fewer, Cantelli's inequality takes the place of Student's quantile: P(mean - truth >= k se) <=
1 / (1 + k^2), whatever the distribution. So a build that changes the answers of a few users can pass if it changes
them little, and is inconclusive otherwise. A metric is not judged at all with fewer users than its
rule takes (30; for the worst 5 %: 100), or with fewer trials than would show one event in 95 of 100 cases at the rate
of the margin (the rule of three: 299 for 1 %), unless it is an amount of money.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil, log, log1p, sqrt
from typing import Literal

import numpy as np

from skg_bench.analysis.gate.rules import MONEY, Rule
from skg_bench.analysis.statistics.inference import paired_t, users_for
from skg_bench.analysis.statistics.intervals import t_quantile
from skg_bench.core.grid import F64, I64

GATE_ALPHA = 0.05  # one-sided
GATE_POWER = 0.95  # with which the users asked for decide, if nothing is worse or something by twice the margin
COCHRAN = 25.0  # users per squared skewness from which Student's limits are used
_MANY = 1_000_000  # more users than this are not asked for

GateState = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Harm:
    """Change of one metric, user by user."""

    rule: Rule
    users: I64  # [n] who have the metric before and after
    each: F64  # [n] positive is worse
    excluded: int  # other users
    trials: int  # rows under the metric, before or after, whichever are fewer
    effect: float | None = None  # what users are planned for; None: the margin
    floor: F64 | None = None  # [n] what is missing to the share that must be kept in any case; None: there is no such

    @property
    def metric(self) -> str:
        return self.rule.metric

    @property
    def margin(self) -> float:
        return self.rule.margin

    @property
    def least_trials(self) -> int:
        """Fewest rows of which anything is said."""
        return 1 if self.metric in MONEY else trials_for(self.margin)

    @property
    def planned(self) -> float:
        """The harm that users are planned to tell from none."""
        return self.margin if self.effect is None else self.effect


@dataclass(frozen=True, slots=True)
class Judged:
    """One metric's part of the verdict."""

    metric: str
    margin: float
    n: int
    excluded: int
    mean: float  # harm
    lower: float  # one-sided limits; lower is corrected for the number of metrics
    upper: float
    cantelli: bool  # limits are Cantelli's
    state: GateState
    why: tuple[str, ...]  # what keeps it from being judged better
    users: int | None  # that would decide it; None: it is decided, or no affordable number would
    alarm: float  # probability of failing if nothing had become worse
    paid: bool = False  # it did not pass by itself, but by fewer wrong answers

    @property
    def worse(self) -> bool:
        """Is harm proven, however small?"""
        return self.lower > 0


def judge(harms: Sequence[Harm]) -> list[Judged]:
    """Every metric's part, corrected for their number."""
    return judge_together([harms])[0]


def judge_together(comparisons: Sequence[Sequence[Harm]]) -> list[list[Judged]]:
    """The parts of several comparisons of one build, corrected for the number of all their metrics."""
    tests = [[_test(harm) for harm in harms] for harms in comparisons]
    metrics = sum(map(len, tests))
    lower = iter(_holm_limits(list(chain(*tests))))
    judged = [
        [_judged(harm, test, next(lower), metrics) for harm, test in zip(*both, strict=True)]
        for both in zip(comparisons, tests, strict=True)
    ]
    return [_paid(*each) for each in zip(comparisons, tests, judged, strict=True)]


def _paid(harms: Sequence[Harm], tests: Sequence["_Test"], judged: Sequence[Judged]) -> list[Judged]:
    """Efficiency passes where wrong answers are proven fewer."""
    errors = [(harm, test) for harm, test in zip(harms, tests, strict=True) if harm.rule.role == "errors"]
    fewer = bool(errors) and all(not _too_few(*each) and each[1].upper(GATE_ALPHA / 2) < 0 for each in errors)
    return [
        _excused(harm, part) if fewer and harm.rule.role == "efficiency" and part.state != "pass" else part
        for harm, part in zip(harms, judged, strict=True)
    ]


def _excused(harm: Harm, part: Judged) -> Judged:
    """Fewer wrong answers are no excuse below the floor."""
    if harm.floor is not None and not _spread(harm.floor).upper(GATE_ALPHA / 2) < 0:
        kept = f"not proven that {100 * (harm.rule.option or 0):g} % of them are kept, which fewer wrong answers excuse"
        return replace(part, why=(*part.why, kept))
    return replace(part, state="pass", paid=True, why=(), users=None, alarm=0.0)


def overall_state(judged: Sequence[Judged]) -> GateState:
    """The verdict on all metrics together."""
    states = [judgement.state for judgement in judged]
    return "fail" if "fail" in states else "inconclusive" if "inconclusive" in states else "pass"


def trials_for(margin: float) -> int:
    """Fewest trials that show an event of this rate at least once in 95 of 100 cases: 299 for 1 %."""
    return ceil(log(GATE_ALPHA) / log1p(-margin)) if 0 < margin < 1 else 1


@dataclass(frozen=True, slots=True)
class _Test:
    """A mean and how its limits are drawn; NaN standard error: there are none."""

    n: int
    mean: float
    se: float
    skewness: float

    @property
    def cantelli(self) -> bool:
        return self.n < COCHRAN * self.skewness**2

    @property
    def _skew(self) -> float:
        """Term that widens Student's quantile."""
        return abs(self.skewness) / (6 * sqrt(self.n))

    def quantile(self, tail: float) -> float:
        """Standard errors beyond which the mean is with probability `tail` at most."""
        if self.cantelli:
            return sqrt((1 - tail) / tail)
        t = t_quantile(1 - tail, self.n - 1.0)
        return t + self._skew * (2 * t**2 + 1)

    def tail(self, errors: float) -> float:
        """Inverse of `quantile`; 1 below the mean for Cantelli, who says nothing there."""
        from scipy import special  # costs 0.1 s: not at import

        if self.cantelli:
            return 1 / (1 + errors**2) if errors > 0 else 1.0
        beyond = errors - self._skew
        t = 2 * beyond / (1 + sqrt(max(1 + 8 * self._skew * beyond, 0.0)))
        return float(special.stdtr(self.n - 1.0, -t))

    def upper(self, tail: float) -> float:
        """Above which the true mean lies with probability `tail` at most."""
        return self.mean + (self.quantile(tail) * self.se if self.se > 0 else self.se)

    @property
    def p(self) -> float:
        """One-sided p-value of "nothing became worse"."""
        if not self.se > 0:
            return 0.0 if self.se == 0 and self.mean > 0 else 1.0
        return self.tail(self.mean / self.se)


def _test(harm: Harm) -> _Test:
    return _spread(harm.each)


def _spread(values: F64) -> _Test:
    n = len(values)
    if n == 0:
        return _Test(0, np.nan, np.nan, 0.0)
    t_test = paired_t(values)
    spread = values.std()
    skewness = float(((values - values.mean()) ** 3).mean() / spread**3) if t_test.se > 0 else 0.0
    return _Test(n, t_test.mean, t_test.se, skewness)


def _holm_limits(tests: Sequence[_Test]) -> list[float]:
    """Lower limits that are above 0 where Holm's procedure rejects: each at the level of its step."""
    lower, steps = [np.nan] * len(tests), len(tests)
    for at in sorted(range(len(tests)), key=lambda i: tests[i].p):
        test = tests[at]
        lower[at] = test.mean - (test.quantile(GATE_ALPHA / steps) * test.se if test.se > 0 else test.se)
        if lower[at] > 0:
            steps -= 1
    return lower


def upper_limit(values: F64) -> float:
    """One-sided upper 95 % limit of the mean."""
    return _spread(values).upper(GATE_ALPHA)


def _too_few(harm: Harm, test: _Test) -> list[str]:
    """Reason why there are too few users or trials for any verdict; empty: there are enough."""
    wanted, why = harm.least_trials, []
    if test.n < harm.rule.least:
        why.append(f"too few users: {test.n} have it before and after, {harm.rule.least} are needed")
    if harm.trials < wanted:
        why.append(f"rare: {harm.trials:,} trials, and it takes {wanted:,} to see a rate of {harm.margin:g} at all")
    return why


def _judged(harm: Harm, test: _Test, lower: float, metrics: int) -> Judged:
    alpha = GATE_ALPHA / 2 if harm.rule.role == "efficiency" else GATE_ALPHA
    upper, why = test.upper(alpha), _too_few(harm, test)
    can_fail = not why and test.se > 0
    state: GateState = "inconclusive"
    if not why and upper < harm.margin:
        state = "pass"
    elif not why and lower > 0 and test.mean >= harm.margin:
        state = "fail"
    users = None
    if state == "inconclusive":
        if test.cantelli:
            why.append(
                f"skewed: a few users changed much (skewness {test.skewness:+.1f}), so Cantelli's limits are used"
            )
        users = _users(harm, test, metrics, alpha)
    alarm = test.tail(max(harm.margin / test.se, test.quantile(GATE_ALPHA / metrics))) if can_fail else 0.0
    return Judged(
        harm.metric, harm.margin, test.n, harm.excluded, test.mean, lower, upper, test.cantelli, state, tuple(why),
        users, alarm,
    )  # fmt: skip


def _users(harm: Harm, test: _Test, metrics: int, alpha: float) -> int | None:
    """Sample size at which, with probability GATE_POWER, zero harm passes and twice the margin fails on all metrics.

    If already reached: the size that separates the observed harm from the margin. None: none, or more than _MANY.

    The spread of few users may be too small by chance, and who plans with it asks for too few: instead of it stands its
    upper 90 % limit (Browne 1995).
    """
    from scipy import special

    if not test.n or not harm.trials:
        return None
    least = max(harm.rule.least, ceil(test.n * harm.least_trials / harm.trials))
    scatter, skewness = harm.rule.scatter
    if not (test.se > 0 or scatter > 0):
        return least
    df = test.n - 1.0
    sd = max(scatter, test.se * sqrt(test.n * df / float(special.chdtri(df, 0.9)))) if df else scatter
    symmetric = ceil(COCHRAN * max(skewness, abs(test.skewness)) ** 2)
    power = 1 - (1 - GATE_POWER) / metrics
    if not harm.planned > 0:
        return None
    student = max(_users_for(sd, harm.planned, alpha, power), symmetric)
    cantelli = ceil(((sqrt((1 - alpha) / alpha) + float(special.ndtri(power))) * sd / harm.planned) ** 2)
    planned = max(least, min(student, cantelli))
    if planned <= test.n:
        below = test.mean < harm.margin
        gap, level = (harm.margin - test.mean, alpha) if below else (test.mean, GATE_ALPHA / metrics)
        planned = max(_users_for(sd, gap, level, power), symmetric)
    return planned if planned <= _MANY else None


def _users_for(sd: float, effect: float, alpha: float, power: float) -> int:
    return users_for(sd, effect, alpha, power, True) if sd < effect * sqrt(_MANY) else _MANY + 1
