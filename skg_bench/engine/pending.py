"""Feedback on its way: ratings that are not known yet, and known ratings that the scorer has not learned from."""

import numpy as np

from skg_bench.core.grid import F64, I32, I64
from skg_bench.core.types import EMPTY, Late, Rated, Reaction

_LABEL = np.array([1.0, 0.5, 0.0])  # ok, partial, miss
_NEVER = np.iinfo(np.int64).max


class Ratings:
    """Rated uses of skills since each user's last refit."""

    def __init__(self, n_users: int, n_features: int) -> None:
        self._n = np.zeros(n_users, np.int32)
        self._label = np.zeros((n_users, 4))
        self._features = np.zeros((n_users, 4, n_features))

    def add(self, row: I64, rating: I32, features: F64 | None) -> None:
        """Ratings of users `row`, each at most once; `rating` and `features` are `[B, ...]`."""
        if features is None or not len(row):
            return
        place = self._n[row]
        if place.max() >= self._label.shape[1]:
            self._label = np.concatenate([self._label, np.zeros_like(self._label)], axis=1)
            self._features = np.concatenate([self._features, np.zeros_like(self._features)], axis=1)
        self._label[row, place] = _LABEL[rating[row]]
        self._features[row, place] = features[row]
        self._n[row] += 1

    def take(self, rows: I64) -> tuple[I64, Rated]:
        """Which of `rows` have new ratings, and these, which are then no longer new."""
        rows = rows[self._n[rows] > 0]
        place = np.arange(self._label.shape[1])
        at, where = np.nonzero(place[None, :] < self._n[rows, None])
        rated = Rated(at.astype(np.int32), self._features[rows[at], where], self._label[rows[at], where])
        self._n[rows] = 0
        return rows, rated


class Pending:
    """Ratings of uses that become known later."""

    def __init__(self, n_users: int, n_features: int) -> None:
        self._known_at = np.full((n_users, 4), _NEVER)
        self._first = np.full(n_users, _NEVER)  # the earliest of each user
        self._skill = np.zeros((n_users, 4), np.int32)
        self._rating = np.zeros((n_users, 4), np.int32)
        self._turn = np.zeros((n_users, 4), np.int32)
        self._features = np.zeros((n_users, 4, n_features))

    def add(self, row: I64, turn: int, now: I64, reaction: Reaction, skill: I32, features: F64 | None) -> None:
        """Late ratings of users `row` for this turn; ratings of the LLM's answers teach nothing and are only logged."""
        row = row[skill[row] >= 0]
        if not len(row):
            return
        free = self._known_at[row] == _NEVER
        if not free.any(axis=1).all():
            for name in ("_known_at", "_skill", "_rating", "_turn", "_features"):
                old = getattr(self, name)
                fill = np.full_like(old, _NEVER) if name == "_known_at" else np.zeros_like(old)
                setattr(self, name, np.concatenate([old, fill], axis=1))
            free = self._known_at[row] == _NEVER
        place = free.argmax(axis=1)
        self._known_at[row, place] = now[row] + reaction.delay[row]
        self._first[row] = np.minimum(self._first[row], self._known_at[row, place])
        self._skill[row, place] = skill[row]
        self._rating[row, place] = reaction.rating[row]
        self._turn[row, place] = turn
        if features is not None:
            self._features[row, place] = features[row]

    def due(self, now: I64, ratings: Ratings) -> Late:
        """Ratings known by `now` `[B]`, in order of the rated turn; they go to `ratings` as well."""
        users = np.flatnonzero(self._first[: len(now)] <= now)
        if not len(users):
            return Late(EMPTY, EMPTY, EMPTY, EMPTY)
        at, place = np.nonzero(self._known_at[users] <= now[users, None])
        row = users[at]
        order = np.lexsort((self._turn[row, place], row))
        row, place = row[order], place[order]
        late = Late(row.astype(np.int32), self._skill[row, place], self._rating[row, place], self._turn[row, place])
        features = self._features[row, place]
        self._known_at[row, place] = _NEVER
        self._first[users] = self._known_at[users].min(axis=1)
        nth = np.arange(len(row)) - np.searchsorted(row, row)
        for n in range(int(nth.max()) + 1):
            part = np.flatnonzero(nth == n)
            full_rating, full_features = np.zeros(len(now), np.int32), np.zeros((len(now), features.shape[1]))
            full_rating[row[part]], full_features[row[part]] = late.rating[part], features[part]
            if features.shape[1]:
                ratings.add(row[part], full_rating, full_features)
        return late
