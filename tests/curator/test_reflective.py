"""The simulated reflector and skill manager: what they learn from what, how they err, and what they report."""

import json
from collections import Counter
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from skg_bench.core.batch import ADD, REMOVE, TAG, UPDATE, Batch, part
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import AFTERWARDS, RATING, RETRACTED
from skg_bench.core.learning_jobs import Jobs
from skg_bench.core.state import check_state, first, rows
from skg_bench.curator.reflective import Reflective
from skg_bench.curator.shared.shelf import common_sense
from skg_bench.simulator.advice.levels import ACCEPTED, OUTCOME, OVERRIDDEN, REGRET_IT, SATISFACTION, WAIT, WORTH_IT
from skg_bench.skillbook.prompt_layout import shown_id
from tests.curator.advised import KINDS, LIBRARY, MESSAGES, TURNS, Library, Turn, of_rows, with_books

pytestmark = pytest.mark.usefixtures("shelf")
OK, PARTIAL, MISS = range(3)
NOW = TURNS - 1


def learner(**changes: Any) -> Reflective:
    """One that never errs and adds after every override."""
    exact = {
        "rho": 0.5, "belief": 0, "misses": 0.0, "wrong_skill": 0.0, "useless": 0.0, "adds": 1.0, "most_skills": 20,
        "rewords": 0.0, "remove_after": None, "remove_margin": 1, "tokens_in": 7, "tokens_out": 3, "usd": 0.5,
        "latency_ms": 10.0, "strategies": None,
    }  # fmt: skip
    return Reflective(**{**exact, **changes})


def overridden(b: int = 400, **values: Any) -> Turn:
    """All users overrode what their first skill said, and signs call that a miss."""
    turn = Turn(b, **values)
    turn.hear(OUTCOME, OVERRIDDEN)
    turn.hear(RATING, MISS)
    return turn


def made(batch: Batch, op: int) -> Batch:
    return part(batch, batch.op == op)


def kinds_of(batch: Batch) -> list[int]:
    keys = {content.key: int(kind) for content, kind in zip(LIBRARY.contents, LIBRARY.kind, strict=True)}
    return [keys[key] for key in batch.content.tolist()]


# --------------------------------------------------------------------------------------------- what is learned


@pytest.mark.req("P28", "P34")
def test_an_override_tags_the_skill_as_harmful_and_adds_a_strategy_for_the_trigger() -> None:
    turn = overridden(40, active=2)
    _, batch = turn.curated(learner())
    tags, adds = made(batch, TAG), made(batch, ADD)
    assert tags.row.tolist() == adds.row.tolist() == list(range(40))
    assert set(tags.rating.tolist()) == {MISS}
    assert set(tags.skill.tolist()) == {0}
    assert np.array_equal(adds.text, turn.seen.text)
    assert set(adds.source.tolist()) == {-1}
    names = turn.texts.read(adds.name)
    assert [KINDS[kind] for kind in kinds_of(adds)] == names
    (jobs,) = turn.jobs
    assert jobs.operations.tolist() == [2] * 40
    texts = [json.loads(text) for text in turn.texts.read(jobs.reflection)]
    for i, text in enumerate(texts):
        assert text["analysis"] == ("incorrect — user overrode the Guardian's suggestion; strategies-00001 harmed")
        assert (text["helpful_skill_ids"], text["harmful_skill_ids"]) == ([], ["strategies-00001"])
        (learned,) = turn.texts.contents.of(adds.content[i : i + 1])
        assert learned is not None
        assert text["new_learnings"] == [{"section": "strategies", "content": learned.issue, "atomicity_score": 1.0}]


def test_no_strategy_is_added_after_another_outcome() -> None:
    turn = Turn(40)
    turn.hear(OUTCOME, WAIT)
    turn.hear(RATING, OK)
    _, batch = turn.curated(learner())
    assert set(batch.op.tolist()) == {TAG}
    assert set(batch.rating.tolist()) == {OK}


def test_a_generic_question_that_was_overridden_has_nothing_to_tag_and_something_to_learn() -> None:
    turn = Turn(40, active=2)
    turn.hear(OUTCOME, OVERRIDDEN, skill=-1)
    turn.hear(RATING, MISS, skill=-1)
    _, batch = turn.curated(learner())
    assert batch.op.tolist() == [ADD] * 40


def test_each_use_is_tagged_once_whatever_is_known() -> None:
    turn = Turn(30)
    served = np.where(np.arange(30) % 2 == 0, 1, -1).astype(np.int32)
    turn.seen = replace(turn.seen, skill=served)
    _, batch = turn.curated(learner())
    assert batch.row.tolist() == list(range(0, 30, 2))
    assert set(zip(batch.op.tolist(), batch.skill.tolist(), batch.uses.tolist(), strict=True)) == {(TAG, 1, 1)}
    assert set(batch.rating.tolist()) == {-1}
    assert turn.jobs == []


def test_the_kind_that_is_believed_to_fit_best_is_added_among_those_that_the_user_never_had(shelf: Library) -> None:
    turn = overridden(300, active=3)
    adds = made(turn.curated(learner())[1], ADD)
    beliefs = common_sense(shelf, 0.5, 0)
    keys = {content.key: int(kind) for content, kind in zip(shelf.contents, shelf.kind, strict=True)}
    for row, kind in zip(adds.row.tolist(), kinds_of(adds), strict=True):
        held = {keys[key] for key in turn.books.content[row].tolist() if key}
        context = shelf.context_of(MESSAGES[turn.seen.text[row]])
        open_ = [k for k in range(len(KINDS)) if k not in held]
        assert kind == max(open_, key=lambda k, context=context: beliefs[k, context])  # type: ignore[misc]
    assert len(set(kinds_of(adds))) == len(KINDS)


def test_of_kinds_that_the_user_had_all_those_that_were_removed_come_last(shelf: Library) -> None:
    turn = overridden(100, active=4)
    one_of_each = np.array([turn.texts.contents.add(shelf.contents[7 * kind]) for kind in range(4)], np.uint64)
    content = np.zeros_like(turn.books.content)
    content[:, :4] = one_of_each
    active = turn.books.active.copy()
    active[:, 1:3] = False  # kinds 1 and 2 were removed
    with_books(turn, content=content, active=active)
    adds = made(turn.curated(learner())[1], ADD)
    assert set(kinds_of(adds)) == {0, 3}
    assert not np.isin(adds.content, one_of_each).any()  # another text of the kind


def test_a_full_book_takes_nothing_more() -> None:
    turn = overridden(20, active=5)
    assert len(made(turn.curated(learner(most_skills=5))[1], ADD).op) == 0
    assert len(made(turn.curated(learner(most_skills=6))[1], ADD).op) == 20


# --------------------------------------------------------------------------------------------------- its errors


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_jobs_are_overlooked_as_often_as_stated_and_then_nothing_comes_of_them(share: float) -> None:
    turn = overridden(2000)
    _, batch = turn.curated(learner(misses=share))
    n = 0 if not turn.jobs else len(turn.jobs[0].row)
    assert n / 2000 == pytest.approx(1 - share, abs=0.04)
    assert len(made(batch, TAG).op) == len(made(batch, ADD).op) == n


def test_another_active_skill_is_credited_as_often_as_stated() -> None:
    turn = overridden(2000)
    active = turn.books.active.copy()
    active[:, 2] = False
    with_books(turn, active=active)
    tags = made(turn.curated(learner(wrong_skill=0.3))[1], TAG)
    counts = Counter(tags.skill.tolist())
    assert set(counts) == {0, 1, 3, 4}
    assert counts[0] / 2000 == pytest.approx(0.7, abs=0.04)
    assert all(counts[skill] / 2000 == pytest.approx(0.1, abs=0.03) for skill in (1, 3, 4))
    only = overridden(50, active=1)
    assert set(made(only.curated(learner(wrong_skill=1.0))[1], TAG).skill.tolist()) == {0}


def test_texts_are_no_good_and_overrides_teach_nothing_as_often_as_stated(shelf: Library) -> None:
    turn = overridden(2000)
    adds = made(turn.curated(learner(adds=0.6, useless=0.25))[1], ADD)
    assert len(adds.op) / 2000 == pytest.approx(0.6, abs=0.04)
    sound = {content.key: bool(ok) for content, ok in zip(shelf.contents, shelf.sound, strict=True)}
    poor = sum(not sound[key] for key in adds.content.tolist())
    assert poor / len(adds.op) == pytest.approx(0.25, abs=0.05)


@pytest.mark.parametrize("rho", [0.0, 0.6, 1.0])
def test_common_sense_has_the_stated_correlation_to_what_fits(rho: float) -> None:
    correlations = [
        np.corrcoef(common_sense(LIBRARY, rho, belief)[:, :-1].reshape(-1), LIBRARY.fit.reshape(-1))[0, 1]
        for belief in range(80)
    ]
    assert np.mean(correlations) == pytest.approx(rho, abs=0.06)
    noise = [common_sense(LIBRARY, 0.0, belief)[:, :-1] for belief in range(80)]
    assert np.std(noise) == pytest.approx(1.0, abs=0.05)
    assert not np.array_equal(noise[0], noise[1])


# ------------------------------------------------------------------------------------- both loops of feedback


@pytest.mark.req("P07", "P29", "P30")
def test_a_later_answer_is_a_job_of_its_own_which_takes_the_earlier_rating_back() -> None:
    curator, turn = learner(wrong_skill=0.5), overridden(200, active=3)
    state, before = turn.curated(curator)
    earlier = dict(zip(made(before, TAG).row.tolist(), made(before, TAG).skill.tolist(), strict=True))
    later = Turn(200, active=3, seed=5)
    later.seen = replace(later.seen, context=replace(later.seen.context, texts=turn.texts))
    later.hear(SATISFACTION, REGRET_IT)
    later.hear(RETRACTED, MISS)
    later.hear(RATING, OK)
    state, batch = later.curated(curator, state)
    tags = made(batch, TAG)
    back, given = part(tags, tags.rating == 3 + MISS), part(tags, tags.rating == OK)
    assert dict(zip(back.row.tolist(), back.skill.tolist(), strict=True)) == earlier  # also where it went astray
    assert given.row.tolist() == list(range(200))
    (jobs,) = later.jobs
    assert set(jobs.kind.tolist()) == {SATISFACTION}
    assert set(jobs.operations.tolist()) == {2}
    analyses = [json.loads(text)["analysis"] for text in turn.texts.read(jobs.reflection)]
    assert {a.partition("; ")[0] for a in analyses} == {
        "positive_reinforcement — user regrets having overridden the Guardian"
    }
    assert len(made(later.curated(curator, state)[1], TAG).op) == 400  # once more: what stands now is taken back


def test_a_rating_that_was_never_given_is_not_taken_back() -> None:
    turn = overridden(500)
    state, before = turn.curated(learner(misses=0.5))
    tagged = set(made(before, TAG).row.tolist())
    turn.known = turn.known.rows(turn.known.kind == -1)
    turn.hear(SATISFACTION, REGRET_IT, turn=NOW)
    turn.hear(RETRACTED, MISS)
    turn.hear(RATING, OK)
    _, batch = turn.curated(learner(misses=0.0), state)
    assert set(batch.row[batch.rating == 3 + MISS].tolist()) == tagged
    assert 100 < len(tagged) < 400


def test_a_user_who_overrode_twice_learns_one_strategy_and_a_skill_is_reworded_once() -> None:
    turn = overridden(50, active=2)
    turn.hear(OUTCOME, OVERRIDDEN, turn=3)
    turn.hear(RATING, MISS, turn=3)
    _, batch = turn.curated(learner(rewords=1.0))
    for op in (ADD, UPDATE):
        assert made(batch, op).row.tolist() == list(range(50))
    assert Counter(made(batch, TAG).row.tolist()) == dict.fromkeys(range(50), 2)
    assert turn.jobs[0].operations.sum() == 200


def test_what_was_taken_back_is_not_taken_back_again() -> None:
    curator, turn = learner(), overridden(20)
    state, _ = turn.curated(curator)
    for n in (20, 0):
        turn.known = turn.known.rows(turn.known.kind == -1)
        turn.hear(SATISFACTION, REGRET_IT)
        turn.hear(RETRACTED, MISS)
        state, batch = turn.curated(curator, state)
        assert batch.rating.tolist() == [3 + MISS] * n


def test_ratings_that_are_kept_apart_begin_a_job_and_change_no_counter() -> None:
    turn = Turn(30)
    turn.hear(SATISFACTION, WORTH_IT)
    turn.hear(AFTERWARDS, OK)
    _, batch = turn.curated(learner())
    assert len(batch.op) == 0
    (jobs,) = turn.jobs
    assert set(jobs.result.tolist()) == {1}


@pytest.mark.req("P29")
def test_a_later_answer_is_read_with_the_outcome_that_it_is_about() -> None:
    curator, turn = learner(), Turn(4)
    turn.hear(OUTCOME, np.array([ACCEPTED, WAIT, OVERRIDDEN, ACCEPTED], np.int32))
    state, _ = turn.curated(curator)
    turn.known = turn.known.rows(turn.known.kind == -1)
    turn.hear(SATISFACTION, WORTH_IT)
    turn.curated(curator, state)
    analyses = [json.loads(text)["analysis"] for text in turn.texts.read(turn.jobs[1].reflection)]
    assert analyses[0] == analyses[3] == "positive_reinforcement — user confirms good decision"
    assert len(set(analyses)) == 3


def test_where_an_outcome_and_a_later_answer_become_known_at_once_the_first_job_has_the_operations() -> None:
    turn = overridden(20)
    turn.hear(SATISFACTION, REGRET_IT)
    turn.hear(RATING, OK)
    _, batch = turn.curated(learner(adds=0.0))
    assert Counter(batch.rating.tolist()) == {MISS: 20, OK: 20}
    (jobs,) = turn.jobs
    assert jobs.kind.tolist() == [OUTCOME] * 20 + [SATISFACTION] * 20
    assert jobs.operations.tolist() == [2] * 20 + [0] * 20


def test_a_rating_with_no_outcome_is_a_job_itself() -> None:
    turn = Turn(20)
    turn.hear(RATING, OK, row=range(10))
    turn.hear(RATING, OK, row=range(10, 20), skill=-1)
    _, batch = turn.curated(learner())
    assert batch.row.tolist() == list(range(10))
    assert turn.jobs[0].kind.tolist() == [RATING] * 20


# ------------------------------------------------------------------------------------------ blindness and rows


def everything(b: int = 60) -> Turn:
    """A turn with all kinds of feedback, about earlier turns as well."""
    turn = overridden(b, seed=3)
    turn.hear(SATISFACTION, np.arange(b, dtype=np.int32) % 3, turn=4)
    turn.hear(RETRACTED, OK, turn=4, skill=1)
    turn.hear(RATING, np.arange(b, dtype=np.int32) % 3, turn=4, skill=1)
    turn.seen = replace(turn.seen, skill=np.where(np.arange(b) % 2 == 0, 0, -1).astype(np.int32))
    return turn


ERRING = {"misses": 0.3, "wrong_skill": 0.4, "useless": 0.4, "adds": 0.7, "rewords": 0.5, "remove_after": 1}


@pytest.mark.parametrize("which", [[7], [3, 5, 40], list(range(59, -1, -1))])
def test_a_user_is_learned_from_the_same_whoever_else_is_in_the_call(which: list[int]) -> None:
    curator, turn = learner(**ERRING), everything()
    state = curator.start(60)
    state = replace(state, skill=np.where(np.arange(TURNS) == 4, 1, -1) * np.ones((60, 1), np.int32))
    alone = turn.of(which)
    own = alone.curated(curator, rows(state, np.array(which)))
    whole = turn.curated(curator, state)
    assert of_rows(own[1], list(range(len(which)))) == of_rows(whole[1], which)
    assert {REMOVE, UPDATE, ADD, TAG} <= set(whole[1].op.tolist())
    for f in fields(own[0]):
        assert np.array_equal(getattr(own[0], f.name), getattr(whole[0], f.name)[which])
    everyone, mine = reported(turn), reported(alone)
    assert {(which[row], about): said for (row, about), said in mine.items()} == {
        job: said for job, said in everyone.items() if job[0] in which
    }


def reported(turn: Turn) -> dict[tuple[int, int], tuple[int, int]]:
    """Operations and reflection of each job, by user and turn."""
    return {
        (row, about): (operations, reflection)
        for jobs in turn.jobs
        for row, about, operations, reflection in zip(
            *(getattr(jobs, name).tolist() for name in ("row", "turn", "operations", "reflection")), strict=True
        )
    }


def test_what_it_remembers_is_a_state() -> None:
    curator, turn = learner(), everything()
    check_state(curator.start(7), 7, curator)
    state, _ = turn.curated(curator)
    check_state(state, 60, curator)
    check_state(first(state, 9), 9, curator)


def test_users_of_other_curators_and_frozen_books_are_left_alone() -> None:
    turn = everything()
    context = replace(turn.seen.context, asks=np.arange(60) % 2 == 0, tags_only=np.arange(60) % 4 == 0)
    turn.seen = replace(turn.seen, context=context)
    _, batch = turn.curated(learner(**{**ERRING, "misses": 0.0}))
    assert set((batch.row % 2).tolist()) == {0}
    assert set(batch.op[batch.row % 4 == 0].tolist()) == {TAG}
    assert {ADD, REMOVE} <= set(batch.op[batch.row % 4 == 2].tolist())
    (jobs,) = turn.jobs
    assert set((jobs.row % 2).tolist()) == {0}
    assert jobs.operations.sum() == (batch.uses == 0).sum()


@pytest.mark.req("P06")
def test_every_operation_that_is_no_use_belongs_to_one_job_that_says_what_it_cost() -> None:
    turn = everything()
    _, batch = turn.curated(learner(**ERRING))
    (jobs,) = turn.jobs
    assert jobs.operations.sum() == (batch.uses == 0).sum() > 0
    assert set(batch.row[batch.uses == 0].tolist()) <= set(jobs.row[jobs.operations > 0].tolist())
    assert np.array_equal(jobs.result == 0, jobs.operations > 0)
    assert {(jobs.tokens_in[0], jobs.tokens_out[0], jobs.cost_usd[0], jobs.latency_ms[0])} == {(7, 3, 0.5, 10.0)}
    for f in fields(Jobs):
        assert getattr(jobs, f.name).shape == jobs.row.shape


def test_reflections_with_the_same_words_are_one_text() -> None:
    turn = overridden(500, active=2)
    turn.curated(learner(adds=0.0))
    assert set(turn.jobs[0].reflection.tolist()) == {turn.jobs[0].reflection[0]}
    assert shown_id("strategies", 0) in turn.texts.read(turn.jobs[0].reflection[:1])[0]


# ---------------------------------------------------------------------------------------------- bad parameters


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rho": 1.5}, "curator.rho=1.5 must lie in [0, 1]"),
        ({"misses": -0.1}, "curator.misses=-0.1 must lie in [0, 1]"),
        ({"useless": float("nan")}, "curator.useless=nan must lie in [0, 1]"),
        ({"usd": float("inf")}, "curator.usd=inf must be finite and not negative"),
        ({"tokens_in": -1}, "curator.tokens_in=-1 must be finite and not negative"),
        ({"most_skills": 0}, "curator.most_skills=0 must be at least 1"),
        ({"remove_margin": 0}, "curator.remove_margin=0 must be at least 1"),
        ({"remove_after": 0}, "curator.remove_after=0 must be at least 1, or null for never"),
    ],
)
def test_bad_parameters_are_refused_by_name(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as error:
        learner(**change)
    assert says in str(error.value)
