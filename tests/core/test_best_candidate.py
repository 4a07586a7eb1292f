"""The best candidate: the largest combined score, and of equal ones the lowest id."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.best_candidate import best
from skg_bench.core.types import Candidates


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 300), st.integers(1, 20))
def test_the_best_is_that_of_a_sort_by_score_and_id(seed: int, b: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    n = rng.integers(0, k + 1, b)
    skill = np.stack([np.where(np.arange(k) < m, rng.permutation(500)[:k], -1) for m in n]).astype(np.int32)
    combined = np.where(skill >= 0, rng.integers(0, 4, (b, k)) * rng.choice([2.0**-16, 0.25]), -1.0)
    none = np.zeros((b, k), np.int32)
    place = best(Candidates(skill, combined, none, np.zeros((b, k)), none, np.zeros(b, np.int32)))
    for row in range(b):
        there = [(-combined[row, i], int(skill[row, i]), i) for i in range(k) if skill[row, i] >= 0]
        assert place[row] == (min(there)[2] if there else 0)
