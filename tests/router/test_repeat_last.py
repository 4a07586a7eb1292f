"""The router that repeats: the skill that was used or captured last, and no other."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.router.maxsim import MaxSim
from skg_bench.router.repeat_last import RepeatLast
from tests.router.test_routers import world


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_it_finds_the_active_skill_that_was_used_last_with_the_similarity_that_it_has(seed: int) -> None:
    asked, book, _ = world(seed)
    book = replace(book, last_used=book.last_used // 86_400 * 86_400)  # many at the same time
    found, nearest = RepeatLast().route(asked, book), MaxSim(70).route(asked, book)
    for u in range(len(book.n_skills)):
        there = [(-book.last_used[u, s], s) for s in np.flatnonzero(book.active[u])]
        assert found.skill[u].tolist() == ([min(there)[1]] if there else [-1])
        if there:
            assert found.similarity[u, 0] == nearest.similarity[u, nearest.skill[u] == found.skill[u, 0]][0]


def test_what_the_message_says_changes_nothing() -> None:
    asked, book, _ = world(1)
    other = replace(asked, text=(asked.text + 1) % 40)
    assert np.array_equal(RepeatLast().route(asked, book).skill, RepeatLast().route(other, book).skill)
    assert RepeatLast().route(asked, book).similarity != pytest.approx(RepeatLast().route(other, book).similarity)
