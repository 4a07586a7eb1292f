"""The router that repeats: the skill that was used or captured last, and no other."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.router.maxsim import MaxSim
from skg_bench.router.repeat_last import RepeatLast
from tests.core import samples
from tests.router.test_routers import world


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_it_finds_the_active_skill_that_was_used_last_with_the_similarity_that_it_has(seed: int) -> None:
    query, books, _ = world(seed)
    books = replace(books, last_used=books.last_used // 86_400 * 86_400)  # many at the same time
    shortlist, nearest = RepeatLast().route(query, books), MaxSim(70).route(query, books)
    for u in range(len(books.n_skills)):
        candidates = [(-books.last_used[u, s], s) for s in np.flatnonzero(books.active[u])]
        assert shortlist.skill[u].tolist() == ([min(candidates)[1]] if candidates else [-1])
        if candidates:
            assert shortlist.similarity[u, 0] == nearest.similarity[u, nearest.skill[u] == shortlist.skill[u, 0]][0]


def test_what_the_message_says_changes_nothing() -> None:
    query, books, _ = world(1)
    other = samples.asked_with(replace(query, text=(query.text + 1) % 40), books)
    assert np.array_equal(RepeatLast().route(query, books).skill, RepeatLast().route(other, books).skill)
    assert RepeatLast().route(query, books).similarity != pytest.approx(RepeatLast().route(other, books).similarity)
