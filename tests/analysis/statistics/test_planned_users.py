"""Plans from a pilot: Bonett's interval by hand, effects of the pilot, and pilots that say too little."""

from math import exp, inf, log, sqrt

import numpy as np
import pytest

from skg_bench.analysis.statistics.inference import power_for
from skg_bench.analysis.statistics.intervals import t_quantile
from skg_bench.analysis.statistics.planned_users import LEAST_EQUAL, least_users, planned_users
from skg_bench.core.errors import UsageError

NORMAL = np.random.default_rng(0).normal(size=200)
SKEWED = np.random.default_rng(1).exponential(size=200)


def test_a_given_effect_has_the_interval_of_bonett() -> None:
    plan = planned_users([SKEWED], np.zeros(200), SKEWED, 0.2)
    n, squares = 200, (SKEWED - SKEWED.mean()) ** 2
    cut = int(n / (2 * sqrt(n - 4)))
    middle = np.sort(SKEWED)[cut : n - cut].mean()
    kurtosis = n * ((SKEWED - middle) ** 4).sum() / squares.sum() ** 2
    assert plan.equal == pytest.approx(n / kurtosis)
    t = t_quantile(0.975, n / kurtosis - 1)
    c = n / (n - t)
    half = t * c * sqrt((kurtosis - (n - 3) / n) / (n - 1))
    ends = [least_users(exp((log(c * SKEWED.var(ddof=1)) + sign * half) / 2), 0.2) for sign in (-1, 1)]
    assert [plan.low, plan.high] == ends
    assert plan.low < plan.users < plan.high
    assert power_for(0.2, SKEWED.std(ddof=1), int(plan.users)) >= 0.8
    assert power_for(0.2, SKEWED.std(ddof=1), int(plan.users) - 1) < 0.8


def test_the_difference_of_the_pilot_widens_the_interval_and_one_that_may_be_nothing_has_no_end() -> None:
    clear = NORMAL - NORMAL.mean() + 0.3
    given, own = (planned_users([clear], np.zeros(200), clear, effect) for effect in (0.3, None))
    assert given.users == own.users
    assert own.low < given.low < given.high < own.high < inf
    vague = NORMAL - NORMAL.mean() + 0.05
    assert planned_users([vague], np.zeros(200), vague).high == inf


def test_two_groups_and_chance_in_a_log_add_their_variance() -> None:
    other = np.roll(NORMAL, 7)
    paired = planned_users([SKEWED], np.zeros(200), SKEWED, 0.2)
    grouped = planned_users([SKEWED, other], np.zeros(200), SKEWED, 0.2)
    logged = planned_users([SKEWED], np.full(200, other.var(ddof=1)), SKEWED, 0.2)
    assert (
        grouped.users == logged.users == least_users(sqrt(SKEWED.var(ddof=1) + other.var(ddof=1)), 0.2) > paired.users
    )


def test_a_pilot_that_hangs_on_few_users_is_not_trusted() -> None:
    few = np.where(np.arange(200) < 3, 1.0, 0.0)
    plan = planned_users([few], np.zeros(200), few, 0.01)
    assert plan.equal < LEAST_EQUAL
    assert not plan.trusted
    assert not planned_users([NORMAL[:40]], np.zeros(40), NORMAL[:40], 0.1).trusted
    assert planned_users([NORMAL], np.zeros(200), NORMAL, 0.1).trusted


@pytest.mark.parametrize(
    ("values", "effect", "words"),
    [
        (np.arange(4.0), 0.1, "4 users"),
        (np.ones(50), 0.1, "no user differs"),
        (np.resize([1.0, -1.0], 50), None, "--effect"),
    ],
)
def test_pilots_that_say_nothing_are_refused(values: np.ndarray, effect: float | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        planned_users([values], np.zeros(len(values)), values, effect)


def test_a_tiny_effect_takes_users_without_end() -> None:
    assert least_users(1.0, 1e-9) == inf
    assert planned_users([NORMAL], np.zeros(200), NORMAL, 1e-9).users == inf
