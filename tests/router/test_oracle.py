"""The oracle among routers, where skills are advice: what is worth most, and nothing that is worth less than asking."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.types import Query, Skillbooks
from skg_bench.policy.always import Always
from skg_bench.router.oracle import RightSkill
from tests.policy.played import candidates
from tests.router.test_routers import world

seeds = st.integers(0, 2**32)


def advised(seed: int) -> tuple[Query, Skillbooks, np.ndarray]:
    """Books in which many skills are worth the same."""
    query, books, _ = world(seed)
    worth = np.random.default_rng(seed).integers(-2, 3, (30, 1 + books.active.shape[1])) / 4
    assert query.truth is not None
    return replace(query, truth=replace(query.truth, worth=worth)), books, worth


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
def test_the_skill_that_is_worth_most_is_listed_unless_the_generic_question_is_worth_as_much(seed: int) -> None:
    query, books, worth = advised(seed)
    made = RightSkill(near=False).route(query, books)
    for u in range(30):
        better = [s for s in np.flatnonzero(books.active[u]).tolist() if worth[u, 1 + s] > worth[u, 0]]
        expected = min(better, key=lambda s, u=u: (-worth[u, 1 + s], s), default=-1)  # type: ignore[misc]
        assert made.skill[u].tolist() == [expected]
    assert np.array_equal(made.similarity, made.skill >= 0)


def test_whoever_always_takes_a_skill_takes_the_one_of_the_oracle() -> None:
    query, books, _ = advised(3)
    made = RightSkill(near=False).route(query, books)
    shown = replace(candidates(0, 30, 1), skill=made.skill, combined=np.where(made.skill >= 0, 0.3, -1.0))
    share = Always().propensities(shown, None)
    assert np.array_equal(share[:, 1] == 1, made.skill[:, 0] >= 0)
    assert 0 < share[:, 0].sum() < 30


def test_rightness_of_answers_says_nothing_about_advice() -> None:
    query, books, _ = advised(4)
    assert query.truth is not None
    other = replace(query, truth=replace(query.truth, quality=1 - query.truth.quality))
    assert np.array_equal(
        RightSkill(near=False).route(query, books).skill, RightSkill(near=False).route(other, books).skill
    )
