"""Law 5: a rating reaches curator and scorer at the user's first turn at or after it became known, and once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.assistant.pipeline.ratings import DecisionContext, Ratings
from skg_bench.core.feedback import AGREES, RATING, Feedback
from skg_bench.core.types import TrainingRows
from skg_bench.engine.pending import Pending

LABEL = (1.0, 0.5, 0.0)
Learned = tuple[int, float, bytes, int, int, int]  # user, label, features, candidates, place, event


def shown_to(rng: np.random.Generator, b: int, width: int) -> DecisionContext:
    candidates = rng.integers(1, 6, b).astype(np.int32)
    features = np.rint(rng.random((b, 5, width)) * 64) / 64
    place = (candidates * rng.random(b)).astype(np.int32)
    return DecisionContext(features, candidates, place, rng.integers(0, 2**64, b, np.uint64))


def one(user: int, label: float, context: DecisionContext) -> Learned:
    numbers = (int(column[user]) for column in (context.candidates, context.place, context.event))
    return user, label, context.features[user].tobytes(), *numbers


def each(rows: np.ndarray, training: TrainingRows) -> list[Learned]:
    columns = (training.row, training.label, training.features, training.candidates, training.place, training.event)
    return [(int(rows[r]), y, x.tobytes(), *map(int, rest)) for r, y, x, *rest in zip(*columns, strict=True)]


def late_feedback(rng: np.random.Generator, rating: np.ndarray, rated: np.ndarray) -> Feedback:
    """Late ratings of users `rated`, and of some users whether answers agree, in any order."""
    agreeing = np.flatnonzero(rng.random(len(rating)) < 0.2)
    row = np.concatenate([rated, agreeing])
    kind = np.repeat([RATING, AGREES], [len(rated), len(agreeing)]).astype(np.int32)
    value = np.concatenate([rating[rated], rng.integers(0, 2, len(agreeing), np.int32)])
    return Feedback(row, kind, value, rng.integers(1, 200, len(row))).rows(rng.permutation(len(row)))


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32), b=st.integers(1, 40), turns=st.integers(1, 25), width=st.sampled_from([None, 1, 32]),
    window=st.sampled_from([0, 1, 5, 300]),
)  # fmt: skip
@pytest.mark.req("K07", "P27")
def test_late_ratings_come_when_they_are_due_and_none_is_lost(
    seed: int, b: int, turns: int, width: int | None, window: int
) -> None:
    rng = np.random.default_rng(seed)
    pending, ratings = Pending(b), Ratings(b, window)
    waiting: list[tuple[int, int, int, int, int, int]] = []  # known at, user, turn, kind, skill, value
    fresh: dict[int, list[Learned]] = {user: [] for user in range(b)}  # known, and not yet learned from
    known: dict[int, list[Learned]] = {user: [] for user in range(b)}  # ever
    shown_at: dict[tuple[int, int], DecisionContext] = {}
    now = np.zeros(b, np.int64)

    def learn(due: np.ndarray) -> None:
        rows, training = ratings.take(due)
        assert rows.tolist() == [u for u in due.tolist() if fresh[u]]
        expected = [k for u in rows.tolist() for k in (known[u][-window:] if window else fresh[u])]
        assert each(rows, training) == expected  # in the order in which they became known
        for u in rows.tolist():
            fresh[u] = []

    for t in range(turns):
        here = max(1, b - t * b // 30)
        now = now + rng.integers(0, 50, b)
        late, since, contexts = pending.due(now[:here])
        assert len(since) == len(late.row)
        assert (since <= now[late.row]).all()
        if contexts is not None:
            rated = np.flatnonzero((late.kind == RATING) & (late.skill >= 0))
            ratings.add_late(late.row[rated], late.value[rated], contexts.rows(rated))
        learned = list(zip(late.row, late.turn, late.kind, late.skill, late.value, strict=True))
        due = sorted((u, *what) for at, u, *what in waiting if at <= now[u] and u < here)
        assert learned == due  # by user, then by the turn that it is about
        for u, turn, kind, s, r in due if width else []:
            if kind == RATING and s >= 0:  # from what is said of the LLM's answers no scorer learns
                fresh[u].append(one(u, LABEL[r], shown_at[u, turn]))
                known[u].append(fresh[u][-1])
        waiting = [w for w in waiting if w[0] > now[w[1]] or w[1] >= here]

        context = shown_to(rng, here, width) if width else None
        skill = rng.integers(-1, 5, here).astype(np.int32)
        rating, chance = rng.integers(0, 3, here).astype(np.int32), rng.random(here)
        said = late_feedback(rng, rating, np.flatnonzero(chance < 0.6))
        pending.add(said, t, now[:here], skill, context)
        at_once = np.flatnonzero(chance > 0.8)
        ratings.add(at_once, rating[at_once], None if context is None else context.rows(at_once))
        for u in at_once.tolist() if context else []:
            fresh[u].append(one(u, LABEL[rating[u]], context))  # type: ignore[arg-type]
            known[u].append(fresh[u][-1])
        for u, kind, value, delay in zip(said.row, said.kind, said.value, said.delay, strict=True):
            waiting.append((int(now[u] + delay), int(u), t, int(kind), int(skill[u]), int(value)))
            if context is not None:
                shown_at[u, t] = context
        if rng.random() < 0.3:
            learn(np.flatnonzero(rng.random(b) < 0.5))
    learn(np.arange(b))
    assert ratings.take(np.arange(b))[0].tolist() == []


def test_ratings_are_taken_once_by_those_who_are_asked_for() -> None:
    ratings = Ratings(3, 0)
    features = np.arange(6.0).reshape(3, 1, 2)
    context = DecisionContext(features, np.ones(3, np.int32), np.zeros(3, np.int32), np.arange(3, dtype=np.uint64))
    rows = np.array([0, 2])
    for rating in ([0, 2], [1, 1]):
        ratings.add(rows, np.array(rating, np.int32), context.rows(rows))
    rows, training = ratings.take(np.array([1, 2]))
    assert rows.tolist() == [2]
    assert (training.row.tolist(), training.label.tolist()) == ([0, 0], [0.0, 0.5])
    assert training.features.tolist() == [[[4, 5]], [[4, 5]]]
    assert ratings.take(np.array([1, 2]))[0].tolist() == []
    assert ratings.take(np.array([0, 1, 2]))[0].tolist() == [0]
