"""The simulated skill manager rewords what was rated harmful, and removes what is proven harmful."""

from dataclasses import replace

import numpy as np
import pytest

from skg_bench.core.batch import REMOVE, UPDATE
from skg_bench.core.feedback import RATING, RETRACTED
from skg_bench.simulator.advice.levels import OUTCOME, REGRET_IT, SATISFACTION, WAIT
from tests.curator.advised import TURNS, Turn, with_books
from tests.curator.test_reflective import MISS, OK, PARTIAL, kinds_of, learner, made, overridden

pytestmark = pytest.mark.usefixtures("shelf")


def test_a_skill_that_was_rated_harmful_says_something_else_of_its_kind_as_often_as_stated() -> None:
    turn = overridden(1000)
    said = made(turn.curated(learner(rewords=0.4, adds=0.0))[1], UPDATE)
    assert len(said.op) / 1000 == pytest.approx(0.4, abs=0.05)
    assert set(said.skill.tolist()) == {0}
    assert (said.source == -1).all()
    assert (said.text == -1).all()
    before = replace(said, content=turn.books.content[said.row, 0])
    assert kinds_of(said) == kinds_of(before)
    assert not (said.content[:, None] == turn.books.content[said.row]).any()
    happy = Turn(50)
    happy.hear(OUTCOME, WAIT)
    happy.hear(RATING, OK)
    assert len(made(happy.curated(learner(rewords=1.0))[1], UPDATE).op) == 0


def test_a_skill_is_removed_as_soon_as_it_is_proven_harmful() -> None:
    curator = learner(remove_after=4, remove_margin=2, adds=0.0, rewords=1.0)
    ok, partial, miss = (np.zeros((6, 8), np.int32) for _ in range(3))
    ok[:, 0], partial[:, 0], miss[:, 0] = [0, 1, 0, 1, 2, 9], [0, 0, 2, 1, 0, 0], [3, 2, 1, 2, 2, 9]
    turn = overridden(6)
    with_books(turn, ok=ok, partial=partial, miss=miss)
    batch = turn.curated(curator)[1]
    # with this miss: 0 to 4; 1 to 3; 0 to 2 and 2 neutral; 1 to 3 and 1 neutral; 2 to 3; 9 to 10
    assert made(batch, REMOVE).row.tolist() == [0, 1, 2, 3]
    assert made(batch, UPDATE).row.tolist() == [4, 5]  # what goes is not reworded
    assert len(made(turn.curated(learner(remove_after=5, remove_margin=2))[1], REMOVE).op) == 1
    assert len(made(turn.curated(learner(remove_after=None))[1], REMOVE).op) == 0


def test_a_rating_that_is_taken_back_proves_nothing() -> None:
    curator, turn = learner(remove_after=1, remove_margin=1, adds=0.0), Turn(3)
    state = curator.start(3)
    state = replace(state, skill=np.zeros((3, TURNS), np.int32))
    miss = turn.books.miss.copy()
    miss[:, 0] = [1, 2, 1]
    with_books(turn, miss=miss)
    turn.hear(SATISFACTION, REGRET_IT)
    turn.hear(RETRACTED, MISS)
    turn.hear(RATING, PARTIAL)
    assert made(turn.curated(curator, state)[1], REMOVE).row.tolist() == [1]
