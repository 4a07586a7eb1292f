"""A softmax over scores chooses as often as it says, and nears the threshold rule as it cools."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.policy.softmax import Softmax
from skg_bench.policy.threshold import Threshold
from tests.core import samples
from tests.policy.test_policies import candidates, rows


@pytest.mark.parametrize("policy", [Softmax(0.5, 0.3), Softmax(0.2, 2.0)], ids=repr)
def test_it_chooses_as_often_as_it_says_and_in_proportion_to_the_exponential_of_scores(policy: Softmax) -> None:
    n, c = 40_000, candidates(2, b=6)
    for u in range(6):
        made = policy.choose(rows(c, np.full(n, u)), samples.draws(np.random.default_rng(u), n))
        scores = {-1: policy.threshold} | {k: c.combined[u, k] for k in range(5) if c.skill[u, k] >= 0}
        weight = {action: exp(score / policy.temperature) for action, score in scores.items()}
        assert set(made.place.tolist()) <= set(weight)
        for action, w in weight.items():
            chosen, p = made.place == action, w / sum(weight.values())
            assert made.propensity[chosen] == pytest.approx(p, rel=1e-6)
            assert abs(chosen.mean() - p) < 5 * (p * (1 - p) / n) ** 0.5 + 1e-12


def test_its_choice_of_a_skill_does_not_depend_on_the_place_of_the_skill() -> None:
    c, draws = candidates(3), samples.draws(np.random.default_rng(3), 40)
    there = c.skill >= 0
    columns = {f: getattr(c, f) for f in ("skill", "combined", "uses", "ok", "rated")}
    turned = replace(c, **{name: column[:, ::-1] for name, column in columns.items()})
    one, other = (Softmax(0.5, 0.3).choose(x, draws) for x in (c, turned))
    assert there.any()
    assert np.array_equal(np.where(one.place < 0, -1, 4 - one.place), other.place)
    assert one.propensity == pytest.approx(other.propensity)


def test_cold_it_is_the_threshold_rule_where_no_two_scores_are_equal() -> None:
    c, draws = candidates(4, b=200), samples.draws(np.random.default_rng(4), 200)
    scores = np.concatenate([np.full((200, 1), 0.45), np.where(c.skill >= 0, c.combined, -np.arange(1, 6))], axis=1)
    apart = np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0] > 0.04
    cold, rule = Softmax(0.45, 0.001).choose(c, draws), Threshold(0.45).choose(c, draws)
    assert apart.sum() > 50
    assert np.array_equal(cold.place[apart], rule.place[apart])
    assert cold.propensity[apart] == pytest.approx(1.0)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_temperature_that_is_none_is_refused_by_name(bad: float) -> None:
    with pytest.raises(UsageError, match=f"policy.temperature={bad} must be finite and at least 0.001"):
        Softmax(0.5, bad)
    with pytest.raises(UsageError, match=r"policy\.threshold=1\.5 must lie in"):
        Softmax(1.5, 0.1)
