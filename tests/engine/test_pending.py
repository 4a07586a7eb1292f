"""Law 5: a rating reaches curator and scorer at the user's first turn at or after it became known, and once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.types import Reaction
from skg_bench.engine.pending import Pending, Ratings

LABEL = (1.0, 0.5, 0.0)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), b=st.integers(1, 40), turns=st.integers(1, 25), width=st.sampled_from([0, 1, 32]))
@pytest.mark.req("K07", "P27")
def test_late_ratings_come_when_they_are_due_and_none_is_lost(seed: int, b: int, turns: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    pending, ratings = Pending(b, width), Ratings(b, width)
    waiting: list[tuple[int, int, int, int, int]] = []  # known at, user, turn, skill, rating
    learned: list[tuple[int, float, tuple[float, ...]]] = []
    came: list[tuple[int, float, tuple[float, ...]]] = []
    feature_of: dict[tuple[int, int], tuple[float, ...]] = {}
    now = np.zeros(b, np.int64)
    for t in range(turns):
        here = max(1, b - t * b // 30)
        now = now + rng.integers(0, 50, b)
        late = pending.due(now[:here], ratings)
        found = list(zip(late.row, late.turn, late.skill, late.rating, strict=True))
        due = sorted(w for w in waiting if w[0] <= now[w[1]] and w[1] < here)
        assert sorted(found) == sorted((u, turn, s, r) for _, u, turn, s, r in due)
        assert found == sorted(found, key=lambda f: f[:2])  # by user, then by the turn that was rated
        came += [(u, LABEL[r], feature_of[u, turn]) for _, u, turn, _, r in due]
        waiting = [w for w in waiting if w not in due]

        features = np.rint(rng.random((here, width)) * 64) / 64
        skill = rng.integers(-1, 5, here).astype(np.int32)
        reaction = Reaction(rng.integers(0, 3, here).astype(np.int32), rng.integers(1, 200, here).astype(np.int64))
        row = np.flatnonzero(rng.random(here) < 0.6)
        pending.add(row, t, now[:here], reaction, skill, features if width else None)
        for u in row:
            if skill[u] >= 0:  # ratings of the LLM's answers teach a skillbook nothing
                at = int(now[u] + reaction.delay[u])
                waiting.append((at, int(u), t, int(skill[u]), int(reaction.rating[u])))
                feature_of[int(u), t] = tuple(features[u])
        if rng.random() < 0.3:
            rows, rated = ratings.take(np.flatnonzero(rng.random(b) < 0.5))
            learned += [
                (int(rows[r]), y, tuple(x)) for r, y, x in zip(rated.row, rated.label, rated.features, strict=True)
            ]
    rows, rated = ratings.take(np.arange(b))
    learned += [(int(rows[r]), y, tuple(x)) for r, y, x in zip(rated.row, rated.label, rated.features, strict=True)]
    assert sorted(learned) == (sorted(came) if width else [])


def test_ratings_are_taken_once_by_those_who_are_asked_for() -> None:
    ratings = Ratings(3, 2)
    features = np.arange(6.0).reshape(3, 2)
    for rating in ([0, 0, 2], [1, 1, 1]):
        ratings.add(np.array([0, 2]), np.array(rating, np.int32), features)
    rows, rated = ratings.take(np.array([1, 2]))
    assert rows.tolist() == [2]
    assert (rated.row.tolist(), rated.label.tolist(), rated.features.tolist()) == ([0, 0], [0.0, 0.5], [[4, 5], [4, 5]])
    assert ratings.take(np.array([1, 2]))[0].tolist() == []
    assert ratings.take(np.array([0, 1, 2]))[0].tolist() == [0]
