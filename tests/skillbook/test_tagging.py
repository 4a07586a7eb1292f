"""Ratings that become known later, as TAGs: those that no longer count are taken back, where they are still there."""

from dataclasses import replace

import numpy as np
import pytest

from skg_bench.core.batch import TAG_RATINGS
from skg_bench.core.feedback import AFTERWARDS, RATING, RETRACTED, KnownFeedback
from skg_bench.core.types import Skillbooks
from skg_bench.simulator.advice.levels import OUTCOME
from skg_bench.skillbook.tagging import later_tags
from tests.core import samples


def books(ok: int, partial: int, miss: int) -> Skillbooks:
    """Three users whose skills all have these counters."""
    drawn = samples.ragged(np.random.default_rng(0), 3, 20, skills=5)
    counts = [np.full(drawn.active.shape, n, np.int32) for n in (ok, partial, miss)]
    return replace(drawn, ok=counts[0], partial=counts[1], miss=counts[2])


def tags(known: list[tuple[int, int, int, int, int]], there: Skillbooks) -> list[tuple[int, int, str]]:
    """User, skill and word of each TAG before turn 9; rows are user, turn, kind, value, skill."""
    rows = KnownFeedback(*(np.array(column, np.int32) for column in zip(*known, strict=True)))
    later = later_tags(rows, 9, there)
    words = [TAG_RATINGS[value] for value in later.value.tolist()]
    return list(zip(later.row.tolist(), later.skill.tolist(), words, strict=True))


REPLACED = [(0, 3, RETRACTED, 0, 1), (0, 3, RATING, 2, 1)]


def test_a_rating_that_is_replaced_is_taken_back_in_order() -> None:
    assert tags(REPLACED, books(1, 0, 0)) == [(0, 1, "ok taken back"), (0, 1, "miss")]


@pytest.mark.parametrize(("ok", "partial", "miss"), [(0, 0, 0), (0, 5, 5)])
def test_what_the_skill_does_not_have_any_more_is_not_taken_back(ok: int, partial: int, miss: int) -> None:
    assert tags(REPLACED, books(ok, partial, miss)) == [(0, 1, "miss")]


def test_no_more_is_taken_back_than_there_is_with_what_comes_along() -> None:
    back = [(0, t, RETRACTED, 0, 1) for t in (1, 2, 3)]
    assert tags(back, books(2, 0, 0)) == [(0, 1, "ok taken back")] * 2
    given = [(0, 1, RATING, 0, 1), *back]
    assert tags(given, books(2, 0, 0)) == [(0, 1, "ok"), *[(0, 1, "ok taken back")] * 3]
    others = [(1, 1, RETRACTED, 0, 1), (0, 1, RETRACTED, 0, 2), (0, 2, RETRACTED, 1, 1)]
    assert len(tags([*back, *others], books(1, 1, 1))) == 1 + len(others)


def test_this_turns_feedback_and_that_of_the_llm_and_other_kinds_are_no_tags() -> None:
    more = [(1, 9, RETRACTED, 0, 1), (1, 3, RETRACTED, 0, -1), (1, 3, OUTCOME, 0, 1), (1, 3, AFTERWARDS, 0, 1)]
    assert tags([*REPLACED, *more], books(1, 1, 1)) == [(0, 1, "ok taken back"), (0, 1, "miss")]


def test_without_anything_to_take_back_the_ratings_are_handed_on() -> None:
    rows = KnownFeedback(*(np.array(column, np.int32) for column in ([0], [3], [RATING], [2], [1])))
    assert later_tags(rows, 9, books(0, 0, 0)) is rows
