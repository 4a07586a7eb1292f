"""A softmax over scores is in proportion to their exponentials, and nears the threshold rule as it cools."""

from math import exp

import numpy as np
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.policy.softmax import Softmax
from skg_bench.policy.threshold import Threshold
from tests.policy.played import candidates


@pytest.mark.parametrize("policy", [Softmax(0.5, 0.3), Softmax(0.2, 2.0)], ids=repr)
def test_a_whole_row_is_in_proportion_to_the_exponential_of_scores(policy: Softmax) -> None:
    c = candidates(2)
    share = policy.propensities(c, None)
    for u in range(len(share)):
        scores = {-1: policy.threshold} | {k: c.combined[u, k] for k in range(5) if c.skill[u, k] >= 0}
        weight = {action: exp(score / policy.temperature) for action, score in scores.items()}
        expected = [weight.get(action, 0.0) / sum(weight.values()) for action in range(-1, 5)]
        assert share[u] == pytest.approx(expected, rel=1e-12, abs=0)


def test_cold_it_is_the_threshold_rule_where_no_two_scores_are_equal() -> None:
    c = candidates(4, b=200)
    scores = np.concatenate([np.full((200, 1), 0.45), np.where(c.skill >= 0, c.combined, -np.arange(1, 6))], axis=1)
    apart = np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0] > 0.04
    cold, rule = Softmax(0.45, 0.001).propensities(c, None), Threshold(0.45).propensities(c, None)
    assert apart.sum() > 50
    assert cold[apart] == pytest.approx(rule[apart], abs=1e-12)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_temperature_that_is_none_is_refused_by_name(bad: float) -> None:
    with pytest.raises(UsageError, match=f"policy.temperature={bad} must be finite and at least 0.001"):
        Softmax(0.5, bad)
    with pytest.raises(UsageError, match=r"policy\.threshold=1\.5 must lie in"):
        Softmax(1.5, 0.1)
