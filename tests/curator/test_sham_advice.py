"""The placebo of advice: when something is learned stays; what skills say and how they are rated is random."""

from collections import Counter
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from skg_bench.core.batch import ADD, TAG, UPDATE, Batch, part
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING, RETRACTED
from skg_bench.core.state import check_state, rows
from skg_bench.curator.reflective import Reflective
from skg_bench.curator.sham import Sham
from skg_bench.simulator.advice.levels import OUTCOME, OVERRIDDEN, REGRET_IT, SATISFACTION
from tests.curator.advised import Library, Turn, of_rows
from tests.curator.test_reflective import learner, overridden

pytestmark = pytest.mark.usefixtures("shelf")
OK, PARTIAL, MISS = range(3)


def placebo(inside: Reflective | None = None, /, **values: Any) -> Sham:
    return Sham(
        inside or learner(rewords=0.5), **{"content": "any", "draw": 0, "tags": "coin", "says": "any", **values}
    )


def test_all_but_what_skills_say_and_how_they_are_rated_is_what_the_curator_inside_does() -> None:
    inside = learner(rewords=0.5, misses=0.2)
    real, sham = overridden(300).curated(inside)[1], overridden(300).curated(placebo(inside))[1]
    for f in fields(Batch):
        if f.name not in ("content", "rating"):
            assert np.array_equal(getattr(real, f.name), getattr(sham, f.name)), f.name
    assert np.array_equal(real.rating >= 0, sham.rating >= 0)
    assert np.array_equal(real.content != 0, sham.content != 0)
    assert {ADD, UPDATE, TAG} <= set(sham.op.tolist())
    assert (sham.source == -1).all()


def test_any_text_of_the_library_is_as_likely(shelf: Library) -> None:
    batch = overridden(4000).curated(placebo(learner()))[1]
    counts = Counter(batch.content[batch.op == ADD].tolist())
    assert set(counts) == {content.key for content in shelf.contents}
    expected = 4000 / len(shelf.contents)
    assert sum((n - expected) ** 2 / expected for n in counts.values()) < 55  # chi-square with 27 degrees of freedom


def test_ratings_are_ok_or_miss_as_often_whatever_the_curator_inside_says() -> None:
    for value in (OK, PARTIAL, MISS):
        turn = Turn(2000)
        turn.hear(OUTCOME, OVERRIDDEN)
        turn.hear(RATING, value)
        batch = turn.curated(placebo(learner(adds=0.0)))[1]
        counts = Counter(batch.rating.tolist())
        assert set(counts) == {OK, MISS}
        assert counts[OK] / 2000 == pytest.approx(0.5, abs=0.04)


def test_ratings_alone_can_be_random() -> None:
    inside = learner(rewords=0.5)
    real, sham = overridden(300).curated(inside)[1], overridden(300).curated(placebo(inside, says="own"))[1]
    for f in fields(Batch):
        assert np.array_equal(getattr(real, f.name), getattr(sham, f.name)) == (f.name != "rating"), f.name


@pytest.mark.req("P30")
def test_what_a_coin_gave_is_taken_back_and_another_coin_is_tossed() -> None:
    curator, turn = placebo(learner(adds=0.0)), overridden(400)
    state, before = turn.curated(curator)
    given = dict(zip(before.row.tolist(), before.rating.tolist(), strict=True))
    turn.known = turn.known.rows(turn.known.kind == -1)
    context = turn.seen.context
    turn.seen = replace(turn.seen, context=replace(context, event=context.event + np.uint64(1)))
    turn.hear(SATISFACTION, REGRET_IT)
    turn.hear(RETRACTED, MISS)
    turn.hear(RATING, OK)
    state, batch = turn.curated(curator, state)
    back, new = part(batch, batch.rating > MISS), part(batch, batch.rating <= MISS)
    assert dict(zip(back.row.tolist(), (back.rating - 3).tolist(), strict=True)) == given
    again = dict(zip(new.row.tolist(), new.rating.tolist(), strict=True))
    assert 0.4 < np.mean([again[row] == rating for row, rating in given.items()]) < 0.6
    _, batch = turn.curated(curator, state)
    back = part(batch, batch.rating > MISS)
    assert dict(zip(back.row.tolist(), (back.rating - 3).tolist(), strict=True)) == again
    check_state(state, 400, curator)


def test_another_draw_is_another_placebo_and_the_same_draw_repeats() -> None:
    first, again, other = (overridden(200).curated(placebo(draw=draw))[1] for draw in (0, 0, 1))
    assert np.array_equal(first.content, again.content)
    assert np.array_equal(first.rating, again.rating)
    assert not np.array_equal(first.content, other.content)
    assert not np.array_equal(first.rating, other.rating)


def test_a_users_placebo_does_not_depend_on_who_else_is_in_the_call() -> None:
    curator, turn = placebo(), overridden(40)
    alone = turn.of([5, 17])
    own = alone.curated(curator, rows(curator.start(40), np.array([5, 17])))[1]
    assert of_rows(own, [0, 1]) == of_rows(turn.curated(curator)[1], [5, 17])


def test_what_another_skill_was_to_say_is_said_by_default() -> None:
    turn, curator = overridden(200, active=1), Sham(learner(), "any", 0)
    state, batch = turn.curated(curator)
    assert not batch.content.any()  # nothing was proposed before
    said = turn.curated(learner())[1]
    context = turn.seen.context
    turn.seen = replace(turn.seen, context=replace(context, event=context.event + np.uint64(1)))
    _, batch = turn.curated(curator, state)
    some = batch.content[batch.op == ADD]
    assert set(some.tolist()) - {0} <= set(said.content.tolist())
    assert some.any()
    assert set(batch.rating[batch.op == TAG].tolist()) == {MISS}


@pytest.mark.req("P31")
def test_a_placebo_of_ratings_alone_has_skills_say_what_the_curator_inside_says() -> None:
    inside = learner(rewords=0.5)
    real = overridden(400).curated(inside)[1]
    sham = overridden(400).curated(Sham(inside, "any", 0, tags="coin", says="own"))[1]
    assert np.array_equal(real.content, sham.content)
    assert real.content.any()
    assert set(real.rating[real.op == TAG].tolist()) == {MISS}
    assert set(sham.rating[sham.op == TAG].tolist()) == {OK, MISS}


@pytest.mark.parametrize(("name", "value"), [("tags", "none"), ("says", "all")])
def test_bad_values_are_refused_by_name(name: str, value: str) -> None:
    valid = "own, coin" if name == "tags" else "own, other, any"
    with pytest.raises(UsageError, match=rf"curator\.{name}='{value}', valid are {valid}"):
        placebo(**{name: value})
