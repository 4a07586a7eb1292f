"""The best candidate: the largest combined score, and of equal ones the lowest id; and plain distributions."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.policy.shared.distributions import best, best_of, certain, uniform_choice
from tests.policy.played import candidates


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 300), st.integers(1, 20))
def test_the_best_is_that_of_a_sort_by_score_and_id(seed: int, b: int, k: int) -> None:
    rng, c = np.random.default_rng(seed), candidates(seed, b, k, skills=500)
    skill = c.skill
    combined = np.where(skill >= 0, rng.integers(0, 4, (b, k)) * rng.choice([2.0**-16, 0.25]), -1.0)
    place = best(replace(c, combined=combined))
    assert place.dtype == np.int32
    assert np.array_equal(place, best_of(combined, skill))
    for row in range(b):
        there = [(-combined[row, i], int(skill[row, i]), i) for i in range(k) if skill[row, i] >= 0]
        assert place[row] == (min(there)[2] if there else 0)


def test_certain_puts_all_on_one_action() -> None:
    assert certain(np.array([-1, 0, 2], np.int32), 3).tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    assert certain(np.zeros(0, np.int32), 3).shape == (0, 4)


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 50), st.integers(1, 9))
def test_uniform_is_the_same_for_the_fallback_and_each_skill_that_is_listed(seed: int, b: int, k: int) -> None:
    c = candidates(seed, b, k)
    share = uniform_choice(c)
    for row, skills in zip(share, c.skill, strict=True):
        listed = [True, *(skills >= 0)]
        assert row.tolist() == [there / sum(listed) for there in listed]
