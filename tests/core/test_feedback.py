"""Feedback as rows: its kinds and levels, what they are worth, and parts of it."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.feedback import AGREES, FEEDBACK_KINDS, RATING, WORTH, KnownFeedback, feedback, joined_rows
from skg_bench.core.types import RATINGS

NAMES = [f.name for f in fields(KnownFeedback)]


def known(seed: int, n: int = 60) -> KnownFeedback:
    """Rows of all kinds about turns 0 to 9, of skills and of the LLM."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, len(FEEDBACK_KINDS), n).astype(np.int32)
    value = rng.integers(0, [len(levels) for levels in FEEDBACK_KINDS.values()], (n, len(FEEDBACK_KINDS)))[
        np.arange(n), kind
    ]
    row, turn, skill = (rng.integers(low, high, n).astype(np.int32) for low, high in ((0, 9), (0, 10), (-1, 4)))
    return KnownFeedback(row, turn, kind, value.astype(np.int32), skill)


def tuples(of: KnownFeedback) -> list[tuple[int, ...]]:
    return list(zip(*(getattr(of, name).tolist() for name in NAMES), strict=True))


def test_codes_of_kinds_are_their_places_and_ratings_are_the_levels_of_their_kind() -> None:
    assert [list(FEEDBACK_KINDS)[code] for code in (RATING, AGREES)] == ["rating", "agrees"]
    assert FEEDBACK_KINDS["rating"] == RATINGS == ("ok", "partial", "miss")
    assert FEEDBACK_KINDS["agrees"] == ("other", "same")


def test_every_level_of_what_is_said_of_answers_has_a_worth_and_that_of_agreement_is_unknown() -> None:
    """What is said of advice has none of its own: an arm's signs make ratings of it."""
    levels = list(FEEDBACK_KINDS.values())
    assert {code: len(worth) for code, worth in WORTH.items()} == {code: len(levels[code]) for code in (RATING, AGREES)}
    assert dict(zip(RATINGS, WORTH[RATING].tolist(), strict=True)) == {"ok": 1.0, "partial": 0.5, "miss": 0.0}
    assert np.isnan(WORTH[AGREES]).all()


@settings(deadline=None)
@given(seed=st.integers(0, 2**32), before=st.integers(0, 11))
def test_ratings_before_a_turn_are_those_of_skills_at_earlier_turns_in_their_order(seed: int, before: int) -> None:
    all_ = known(seed)
    found = all_.ratings(before)
    expected = [one for one in tuples(all_) if one[2] == RATING and one[4] >= 0 and one[1] < before]
    assert tuples(found) == expected


@settings(deadline=None)
@given(seed=st.integers(0, 2**32))
def test_parts_by_mask_and_by_index_and_joined_parts_keep_rows_whole(seed: int) -> None:
    all_, rng = known(seed), np.random.default_rng(seed)
    mask, index = rng.random(60) < 0.5, rng.integers(0, 60, 20)
    assert tuples(all_.rows(mask)) == [one for one, kept in zip(tuples(all_), mask, strict=True) if kept]
    assert tuples(all_.rows(index)) == [tuples(all_)[i] for i in index]
    both = joined_rows([all_.rows(mask), all_.rows(np.zeros(60, np.bool_)), all_.rows(~mask)])
    assert tuples(both) == tuples(all_.rows(mask)) + tuples(all_.rows(~mask))
    assert all(getattr(both, name).dtype == np.int32 for name in NAMES)


@pytest.mark.parametrize("turn", [4, np.array([1, 7, 2], np.int32)])
def test_rows_of_one_kind_about_one_turn_or_about_one_each(turn: int | np.ndarray) -> None:
    skill = np.array([5, -1, 0], np.int32)
    made = feedback(np.array([2, 0, 2]), turn, AGREES, np.array([1, 0, 1]), skill)
    turns = [4, 4, 4] if isinstance(turn, int) else [1, 7, 2]
    assert tuples(made) == list(zip([2, 0, 2], turns, [AGREES] * 3, [1, 0, 1], [5, -1, 0], strict=True))
    assert all(getattr(made, name).dtype == np.int32 for name in NAMES)
