"""Values of policies from sums over a log, with intervals by user, and differences of policies on the same log.

Every estimator is a function of sums over the log: V/n + C/n, or V/n + C/W where it is self-normalised. Its variance is
that of the linearised sum over users, sum_u g_u (a . s_u)^2 (the delta method; Cochran 1977, section 6.3), with
Student's t. For G users with equal shares of the log g is G / (G - 1), with G - 1 degrees of freedom; where few users
have most of it, g is larger, and degrees are fewer. A difference of two policies is that of their linearised sums, user
by user.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log, nan, sqrt

import numpy as np

from skg_bench.analysis.policy_value.decision_sums import RowMoments, SummedDecisions, UserSums
from skg_bench.analysis.policy_value.estimates import (
    MOST_ODDS,
    EstimateVerdict,
    PolicyEstimates,
    PolicyValue,
    PolicyWeights,
    RatedValue,
)
from skg_bench.analysis.policy_value.estimators import ESTIMATORS, TUNING_GRID, PolicyEstimator
from skg_bench.analysis.statistics.intervals import ALPHA, t_quantile
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64

LEAST_ROWS = 100.0  # effective ones
LARGEST_SHARE = 0.05  # of the weight, of one row
MOST_ERRORS = 3.0  # of the mean weight from 1
LUCK_OF_MODEL = 1e-5  # chance of a model that saw no row of the log to differ from it by as much
MOST_UNSUPPORTED = 0.5  # rows in which it would do something else, and the log took no chance
_ROUNDING = 1e-6  # of the rewards' range: a smaller difference is one of rounded propensities
_SLOPE_DELTA, _MSE_DELTA = 0.1, 0.05  # those of Open Bandit Pipeline


@dataclass(frozen=True, slots=True)
class LinearEstimate:
    """An estimate and the weights of the sum that it is by first order."""

    value: float
    weights: F64  # [c]
    over: tuple[int, ...]  # columns that it is divided by

    def minus(self, other: "LinearEstimate") -> "LinearEstimate":
        """The difference of two on the same log."""
        return LinearEstimate(self.value - other.value, self.weights - other.weights, (*self.over, *other.over))

    def spread(self, sums: RowMoments | UserSums) -> tuple[float, float]:
        """Standard error and degrees of freedom; NaN of fewer than two groups."""
        return sums.spread(self.weights, self.over)

    def interval(self, sums: RowMoments | UserSums) -> tuple[float, float]:
        """The 95 % interval."""
        error, df = self.spread(sums)
        half = t_quantile(1 - ALPHA / 2, df) * error
        return self.value - half, self.value + half


def step_values(
    sums: SummedDecisions, policies: Mapping[str, Sequence[PolicyEstimator]], *, reference: str, users: bool
) -> PolicyEstimates:
    """Values of policies, which are in the order of the sums, by their estimators. `users`: does the log name them?

    Raises UsageError for a log of one user, and rewards that are all the same.
    """
    _check(sums, users=users)
    number = {name: i for i, name in enumerate(policies)}
    weights = {name: _policy_weights(sums, i, name) for name, i in number.items()}
    values = []
    for name, estimators in policies.items():
        for estimator in estimators:
            against = estimator if estimator in policies[reference] else estimator.without_model
            first = _estimate(sums, number[name], estimator)
            gap = first.minus(_estimate(sums, number[reference], against))
            withheld = bool(weights[name].withheld or weights[reference].withheld)
            low, high = gap.interval(sums.by_user)
            least = _ROUNDING * (sums.highest - sums.lowest)
            if abs(gap.value) > least >= high - low:
                low = high = nan  # users who are all alike, such as one who stands there twice, say nothing of others
            verdict: EstimateVerdict = "higher" if low > least else "lower" if high < -least else "inconclusive"
            if name == reference:
                verdict = "reference"
            elif withheld or estimator.biased:
                verdict = "withheld" if withheld else "biased"
            value = PolicyValue(
                name, "step", estimator.title, first.value, first.interval(sums.by_user),
                None if sums.by_row is None else first.interval(sums.by_row), gap.value, (low, high), verdict,
            )  # fmt: skip
            values.append(_without_intervals(value, weights[name], withheld=withheld))
    n_users = sums.by_user.groups if users else None
    return PolicyEstimates(reference, sums.rows, n_users, sums.missing, tuple(values), tuple(weights.values()))


def _without_intervals(value: PolicyValue, weights: PolicyWeights, *, withheld: bool) -> PolicyValue:
    """A value without what is withheld."""
    none = (nan, nan)
    if weights.withheld:
        value = replace(value, interval=none, row_interval=value.row_interval and none)
    if weights.bounds is not None:
        value = replace(value, value=nan)
    return replace(value, difference=nan, difference_interval=none) if withheld else value


def _check(sums: SummedDecisions, *, users: bool) -> None:
    if users and sums.by_user.groups < 2:
        raise UsageError("the log has one user; an interval for other users needs two at least: take more of the log")
    if not sums.lowest < sums.highest:
        if sums.missing == sums.rows:
            raise UsageError(
                "no reward is there: map a column of rewards; in a file of `skg-bench data label`, fill in reward "
                "where judge is 1"
            )
        known = f"every reward is {sums.lowest:g}"
        raise UsageError(f"{known}: nothing tells one decision from another; map a column of rewards that differ")


def linear_estimate(sums: SummedDecisions, policy: int, estimator: PolicyEstimator) -> LinearEstimate:
    """An estimate for the policy with this number, without tuning; NaN where it needs weight and there is none."""
    totals, n, at = sums.by_user.totals, float(sums.rows), sums.places[policy]
    column, over = sums.column(policy, estimator.term), at if estimator.normalised else 0
    weights, by = np.zeros(len(totals)), float(totals[over])
    divided = (over if by else 0,)
    ratio = float(totals[column]) / by if by else nan
    if by:
        weights[column] += 1.0 / by
        weights[over] -= ratio / by
    if not estimator.model:
        return LinearEstimate(ratio, weights, divided)
    expected = float(totals[at + 1]) / n
    weights[at + 1] += 1.0 / n
    weights[0] -= expected / n
    return LinearEstimate(expected + ratio, weights, divided)


def _estimate(sums: SummedDecisions, policy: int, estimator: PolicyEstimator) -> LinearEstimate:
    if not estimator.tuning:
        return linear_estimate(sums, policy, estimator)
    candidates = [linear_estimate(sums, policy, estimator.at(size)) for size in TUNING_GRID]
    return _slope(sums, candidates) if estimator.tuning == "slope" else _mse(sums, policy, candidates)


def _slope(sums: SummedDecisions, candidates: Sequence[LinearEstimate]) -> LinearEstimate:
    """The last estimate, from wide to narrow, that agrees with all wider ones (Su et al. 2020, SLOPE; the constant is
    that of Tucker and Lee 2021).
    """
    spreads = [each.spread(sums.by_user) for each in candidates]
    wide = [t_quantile(1 - _SLOPE_DELTA, df) * error for error, df in spreads]
    accepted = list[int]()
    for i in sorted(range(len(candidates)), key=lambda i: -wide[i]):
        gaps = (abs(candidates[i].value - candidates[j].value) - (sqrt(6) - 1) * wide[j] for j in accepted)
        if max(gaps, default=-inf) > wide[i]:
            break
        accepted.append(i)
    return candidates[accepted[-1]]


def _mse(sums: SummedDecisions, policy: int, candidates: Sequence[LinearEstimate]) -> LinearEstimate:
    """The estimate with the least sum of its variance and of a bound of its squared bias (Su et al. 2020)."""
    n, groups, figures, whole = sums.rows, sums.by_user.groups, sums.weights[policy], candidates[-1]
    chance = log(2 / _MSE_DELTA)
    slack = sqrt(2 * figures.squares / n * chance / n) + 2 * figures.largest * chance / (3 * n)
    variances = [each.spread(sums.by_user)[0] ** 2 * (groups - 1) / groups for each in candidates]
    biases = [abs(whole.value - each.value) + slack for each in candidates]
    return candidates[int(np.argmin(np.array(variances) + np.square(biases)))]


def _policy_weights(sums: SummedDecisions, policy: int, name: str) -> PolicyWeights:
    figures, n, at = sums.weights[policy], sums.rows, sums.places[policy]
    total, coefficients = float(sums.by_user.totals[at]), np.zeros(len(sums.by_user.totals))
    coefficients[at], coefficients[0] = 1.0 / n, -total / n**2
    error, _ = sums.by_user.spread(coefficients, (0,))
    weights = PolicyWeights(
        name, total / n, error, total**2 / figures.squares if total else 0.0,
        figures.largest, figures.largest / total if total else 0.0, _bounds(sums, policy), _rated(sums, policy), "",
    )  # fmt: skip
    return replace(weights, withheld=_reason(sums, policy, weights))


def _bounds(sums: SummedDecisions, policy: int) -> tuple[float, float] | None:
    """Ends of the value if missing rewards lie among the others; None where none is missing without a known chance."""
    unknown = sums.weights[policy].unknown
    if not unknown:
        return None
    known = float(sums.by_user.totals[sums.column(policy, ESTIMATORS["ips"].term)])
    return (known + sums.lowest * unknown) / sums.rows, (known + sums.highest * unknown) / sums.rows


def _rated(sums: SummedDecisions, policy: int) -> RatedValue | None:
    """Values by known rewards. Where the odds of being known are k times as large for good rewards as for bad ones, the
    odds of good ones among missing rewards are 1/k of those among known ones, by Bayes. A reward between the lowest and
    the highest counts as partly good.
    """
    unknown, span = sums.weights[policy].unknown, sums.highest - sums.lowest
    weight = float(sums.by_user.totals[sums.places[policy]]) - unknown
    if not unknown or not weight > 0:
        return None
    known = float(sums.by_user.totals[sums.column(policy, ESTIMATORS["ips"].term)])
    good = min(max((known / weight - sums.lowest) / span, 0.0), 1.0)
    values = []
    for odds in (1.0, 1.0 / MOST_ODDS, MOST_ODDS):
        share = good * odds / (1.0 - good + good * odds)
        values.append((known + unknown * (sums.lowest + span * share)) / (weight + unknown))
    return RatedValue(*values)


def _by_odds(weights: PolicyWeights) -> str:
    rated = weights.rated
    if rated is None:
        return ""
    return (
        f" Known ones alone give {rated.value:.5g}. It is between {rated.low:.5g} and {rated.high:.5g} if the odds of "
        f"being known are up to {MOST_ODDS:g} times as large for good ones as for bad ones, or the other way round."
    )


def _reason(sums: SummedDecisions, policy: int, weights: PolicyWeights) -> str:
    """Reason to withhold verdicts on a policy, and what to log instead; none: nothing."""
    if weights.bounds is not None:
        low, high = weights.bounds
        return (
            f"{sums.missing:,} of {sums.rows:,} rewards are missing, and nothing says by what chance. If they lie "
            f"between the lowest and the highest known one, the value is between {low:.5g} and {high:.5g}."
            f"{_by_odds(weights)} Have some judged that are drawn by chance: skg-bench data label LOG --n 500 --out "
            "judged.csv writes the chance of each as reward_propensity"
        )
    if not weights.mean:
        return "it never does what the log did. Log with a chance of what it would do, such as by policy=interleave"
    if (unsupported := sums.weights[policy].unsupported) > MOST_UNSUPPORTED:
        return (
            f"in {unsupported:,.0f} of {sums.rows:,} rows it would do something else, and the log took no chance "
            "(propensity 1), so nothing is known of them. Log with a chance of what it would do, such as by "
            "policy=interleave"
        )
    if abs(weights.mean - 1.0) > max(MOST_ERRORS * weights.error, _ROUNDING):
        less = "it does what the log never did, or propensities are too large. Log with a chance of what it would do"
        more = "propensities are too small, or its probabilities are no distribution. Log the chance at the decision"
        return (
            f"its mean weight, {weights.mean:.4g}, is more than {MOST_ERRORS:g} standard errors ({weights.error:.3g}) "
            f"from 1: {less if weights.mean < 1 else more}"
        )
    if weights.effective < LEAST_ROWS:
        return (
            f"for it the log is worth {weights.effective:.0f} rows (effective sample size), and {LEAST_ROWS:g} are "
            "needed; log more, or more of what it would do"
        )
    if weights.share >= LARGEST_SHARE:
        return (
            f"one row has {100 * weights.share:.1f} % of its weight, {weights.largest:.4g}; below "
            f"{100 * LARGEST_SHARE:g} % is needed: log more, or with a larger chance of what is rare"
        )
    if by_model := _seen(sums, policy):
        return by_model
    figures = sums.weights[policy]
    if figures.apart**2 < LEAST_ROWS * figures.apart_squares:
        worth = figures.apart**2 / figures.apart_squares
        return (
            f"its difference hangs on few rows, worth {worth:.0f}, and {LEAST_ROWS:g} are needed; log more, or with a "
            "larger chance of what is rare"
        )
    return ""


def _seen(sums: SummedDecisions, policy: int) -> str:
    """Reason to withhold verdicts where a model and the log contradict each other; none: nothing.

    For a model that saw no reward of these rows, the weighted mean of what it predicts of what was done has the same
    expectation as the policy's value by the model. Their difference is that of `dr` and `ips`.
    """
    robust = ESTIMATORS["dr"]
    if robust.term not in sums.terms[policy]:
        return ""
    first, second = (linear_estimate(sums, policy, each) for each in (robust, robust.without_model))
    gap = first.minus(second)
    error, df = gap.spread(sums.by_user)
    least = max(t_quantile(1.0 - LUCK_OF_MODEL / 2.0, df) * error, _ROUNDING * (sums.highest - sums.lowest))
    if not abs(gap.value) > least:
        return ""
    return (
        f"by the model (dr) it is worth {first.value:.5g} and without it (ips) {second.value:.5g}, which is no luck: "
        "the model was fitted on the same rows, its order of candidates is another one, or propensities are wrong. "
        "Predict each row by a model that was fitted on other users"
    )
