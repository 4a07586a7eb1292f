"""What stands in a prompt, counted for many books at once, is what stands in it when it is written."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.content import Content
from skg_bench.skillbook.prompt_layout import block_sizes, fitting, frame_size, ordered, shown_id, skill_block

CONTENTS = [
    Content("context", "Do you really need this?"),
    Content("Spending habits", "That is four hours of your hourly rate", "name the hours", ("hours", "wage")),
    Content("İstanbul", "ß " * 40, None, ("ünit",)),  # whose lower case is longer
]


@settings(deadline=None)
@given(
    which=st.integers(0, 2), skill=st.integers(0, 200_000),
    counters=st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6)),
)  # fmt: skip
def test_a_block_has_the_size_that_is_counted(which: int, skill: int, counters: tuple[int, int, int]) -> None:
    content = CONTENTS[which]
    arrays = [np.array([[n]]) for n in (frame_size(content), skill)]
    size = block_sizes(*arrays, *(np.array([[n]], np.int32) for n in counters))
    assert size.tolist() == [[len(skill_block(shown_id(content.section, skill), content, *counters))]]


@pytest.mark.req("P14")
@settings(deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_order_by_evidence_is_that_of_exact_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ok, miss = (rng.choice([0, 1, 2, 3, 5, 10**7, 10**7 + 1], (4, 9)).astype(np.int32) for _ in range(2))
    inside = rng.random((4, 9)) < 0.7
    for row, ids in enumerate(ordered(inside, ok, miss, "evidence").tolist()):

        def key(s: int, row: int = row) -> tuple[bool, Fraction, int, int]:
            helpful, harmful = int(ok[row, s]), int(miss[row, s])
            mean = Fraction(helpful + 1, helpful + harmful + 2)
            return not inside[row, s], -mean, -(helpful + harmful), s

        assert ids == sorted(range(9), key=key)
    ids = ordered(inside, ok, miss, "inserted")
    assert ids.tolist() == [[*np.flatnonzero(row).tolist(), *np.flatnonzero(~row).tolist()] for row in inside]


@pytest.mark.req("P13")
def test_what_fits_whole_needs_no_room_for_the_words_that_say_that_something_is_missing() -> None:
    size = np.array([[100, 50, 30, 7]] * 3)
    count = np.array([3, 3, 2])  # 184 characters with what stands between, 184, 152
    assert fitting(size, count, 184).tolist() == [3, 3, 2]
    assert fitting(size, count, 183).tolist() == [2, 2, 2]
    assert fitting(size, count, 151).tolist() == [1, 1, 1]
    assert fitting(size, count, 100).tolist() == [0, 0, 0]
    assert fitting(size[:, :0], count * 0, 100).tolist() == [0, 0, 0]
