"""The same book for all: every kind once, and nothing learned."""

from dataclasses import replace

import numpy as np
import pytest

from skg_bench.core.batch import ADD, TAG
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING
from skg_bench.curator.population import Population
from skg_bench.simulator.advice.levels import OUTCOME, OVERRIDDEN
from skg_bench.skillbook.library import strategies as library
from tests.curator.advised import KINDS, Library, Turn, of_rows, with_books

pytestmark = pytest.mark.usefixtures("shelf")


def test_a_user_is_given_the_first_sound_strategy_of_each_kind_in_their_order(shelf: Library) -> None:
    turn = Turn(5, active=0)
    _, batch = turn.curated(Population(None))
    firsts = [
        next(c.key for c, k, ok in zip(shelf.contents, shelf.kind, shelf.sound, strict=True) if k == kind and ok)
        for kind in range(len(KINDS))
    ]
    for user in range(5):
        mine = batch.row == user
        assert batch.op[mine].tolist() == [ADD] * 4
        assert batch.content[mine].tolist() == firsts
        assert turn.texts.read(batch.name[mine]) == list(KINDS)
        assert (batch.text[mine] == turn.seen.text[user]).all()
    assert (batch.source == -1).all()


def test_who_has_the_book_is_only_counted_whatever_is_known() -> None:
    turn = Turn(4, active=0)
    given = turn.curated(Population(None))[1].content[:4]
    active = np.ones((4, 4), np.bool_)
    active[:, 2] = False  # what was archived is not given again
    zeros = np.zeros((4, 4), np.int32)
    with_books(turn, n_skills=np.full(4, 4, np.int32), active=active, content=np.tile(given, (4, 1)), ok=zeros)
    turn.seen = replace(turn.seen, skill=np.array([1, 3, -1, -1], np.int32))
    turn.hear(OUTCOME, OVERRIDDEN)
    turn.hear(RATING, 2)
    _, batch = turn.curated(Population(None))
    assert (batch.op.tolist(), batch.skill.tolist(), batch.uses.tolist()) == ([TAG] * 2, [1, 3], [1, 1])
    assert set(batch.rating.tolist()) == {-1}
    assert turn.jobs == []


def test_a_users_book_does_not_depend_on_who_else_is_in_the_call_nor_on_taste() -> None:
    turn = Turn(9, active=0)
    whole = turn.curated(Population(None))[1]
    assert of_rows(turn.of([4, 6]).curated(Population(None))[1], [0, 1]) == of_rows(whole, [4, 6])
    turn.seen = replace(turn.seen, context=replace(turn.seen.context, asks=np.arange(9) == 3))
    assert set(turn.curated(Population(None))[1].row.tolist()) == {3}
    assert not Population(None).sees_truth


def test_a_kind_without_a_sound_text_is_refused_by_name(shelf: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    poor = replace(shelf, sound=shelf.sound & (shelf.kind != 2))
    monkeypatch.setattr(library, "strategies", lambda folder=None: poor)
    with pytest.raises(UsageError, match="kind 'goal' has no sound text"):
        Population("mine")
