"""A coin between two policies, whose chances the log states."""

from typing import Any

import numpy as np
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.core.state import check_state
from skg_bench.policy.interleave import Interleave
from skg_bench.policy.softmax import Softmax
from skg_bench.policy.thompson import Thompson
from skg_bench.policy.threshold import Threshold
from skg_bench.policy.vcache import VCache
from tests.policy.played import candidates


def test_where_two_rules_agree_nothing_is_left_to_chance_and_elsewhere_a_coin_is() -> None:
    c = candidates(3, b=200)
    lax, strict = Threshold(0.3), Threshold(0.6)
    first, second = lax.propensities(c, None), strict.propensities(c, None)
    share = Interleave(lax, strict).propensities(c, (None, None))
    same = (first == second).all(axis=1)
    assert 0 < same.sum() < 200
    assert (share[same] == first[same]).all()
    assert set(np.unique(share[~same])) == {0.0, 0.5}
    assert (share.sum(axis=1) == 1.0).all()
    assert ((first > 0) | (second > 0)).tolist() == (share > 0).tolist()


def test_it_is_the_mean_of_policies_with_chances_and_keeps_the_memory_of_both() -> None:
    c = candidates(2)
    soft, rule = Softmax(0.5, 0.1), Threshold(0.5)
    mean = (soft.propensities(c, None) + rule.propensities(c, None)) / 2
    assert Interleave(soft, rule).propensities(c, (None, None)) == pytest.approx(mean, abs=1e-15)
    both = Interleave(VCache(0.1, 2), Thompson(0.5, 1.0, 1.0, 8.5, 1.5))
    state = both.start(7)
    check_state(state, 7, both)
    assert type(state[0]) is type(both.first.start(7))
    assert set(both.reads) == {*both.first.reads, *both.second.reads}


@pytest.mark.parametrize("given", ["llm_chooser", 0.4, None])
def test_what_is_no_policy_is_refused_by_its_name(given: object) -> None:
    parts: dict[str, Any] = {"first": given, "second": Threshold(0.5)}
    with pytest.raises(UsageError, match=r"policy\.first=.* is a value, and a policy stands there"):
        Interleave(**parts)
