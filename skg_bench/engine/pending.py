"""Feedback on its way: what is not known yet, and known ratings that the scorer learns from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from skg_bench.core.batch import EMPTY
from skg_bench.core.feedback import RATING, WORTH, Feedback, KnownFeedback
from skg_bench.core.grid import F64, I32, I64, U64
from skg_bench.core.types import TrainingRows

_NEVER = np.iinfo(np.int64).max
Columns = dict[str, npt.NDArray[Any]]  # [B, n, ...] each


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """The shortlists that served skills were chosen from, n turns."""

    features: F64  # [n, K, F]
    candidates: I32  # [n] skills of the shortlist
    place: I32  # [n] the one that was served
    event: U64  # [n] key of the event

    def rows(self, rows: I64) -> "DecisionContext":
        """These turns only."""
        return DecisionContext(self.features[rows], self.candidates[rows], self.place[rows], self.event[rows])


class Ratings:
    """Rated uses of skills: those since each user's last refit or, with a window, the last so many.

    `keep`: all stay, for a recipe that comes later.
    """

    def __init__(self, n_users: int, window: int, keep: bool = False) -> None:
        self._window, self.keep = window, keep
        self._ring = 0 if keep else window  # slots in use
        self._n = np.zeros(n_users, np.int32)  # since the last refit; with a window, or if all are kept: ever
        self._seen = np.zeros(n_users, np.int32)  # of these, how many the last refit saw
        self._new = np.zeros(n_users, np.bool_)  # is any of them new since the last refit?
        self._columns: Columns = _context_columns(n_users) | {"label": np.zeros((n_users, 4))}

    def add(self, row: I64, rating: I32, context: DecisionContext | None) -> None:
        """Ratings `[n]` of users `row` `[n]`, each at most once; None: there is no scorer that would learn."""
        if context is None or not len(row):
            return
        slot = self._n[row] % self._ring if self._ring else self._n[row]
        if slot.max() >= self._columns["label"].shape[1]:
            self._columns = {name: _wider(column) for name, column in self._columns.items()}
        _put(self._columns, row, slot, context)
        self._columns["label"][row, slot] = WORTH[RATING][rating]
        self._n[row] += 1
        self._new[row] = True

    def take(self, rows: I64) -> tuple[I64, TrainingRows]:
        """Which of `rows` have new ratings, and what they learn from; nothing of it is new any longer."""
        rows = rows[self._new[rows]]
        n = self._n[rows]
        kept = np.minimum(n, self._window) if self._window else n - self._seen[rows]
        at, nth = np.nonzero(np.arange(kept.max(initial=0)) < kept[:, None])
        slot = (n - kept)[at] + nth
        user, slot = rows[at], slot % self._ring if self._ring else slot
        columns = {name: column[user, slot] for name, column in self._columns.items()}
        self._new[rows] = False
        if self.keep:
            self._seen[rows] = n
        elif not self._window:
            self._n[rows] = 0
        return rows, TrainingRows(row=at.astype(np.int32), **columns)

    def restart(self, window: int) -> None:
        """For a recipe that has seen none of them; all must have been kept."""
        self._window, self._seen, self._new = window, np.zeros_like(self._seen), self._n > 0


class Pending:
    """Feedback of all kinds that becomes known later."""

    def __init__(self, n_users: int) -> None:
        self._first = np.full(n_users, _NEVER)  # when the earliest of each user will be known
        self._columns: Columns = _context_columns(n_users) | {
            name: np.zeros((n_users, 4), np.int32) for name in ("skill", "kind", "value", "turn")
        }
        self._columns["known_at"] = np.full((n_users, 4), _NEVER)

    def add(self, late: Feedback, turn: int, now: I64, skill: I32, context: DecisionContext | None) -> None:
        """Feedback for this turn that is known later; `now`, `skill` and `context` are of all users, `[B]`."""
        kinds = late.kind[:1] if (late.kind == late.kind[:1]).all() else np.unique(late.kind)
        for kind in kinds:  # of each at most one row a user
            self._add(late if len(kinds) == 1 else late.rows(late.kind == kind), turn, now, skill, context)

    def _add(self, late: Feedback, turn: int, now: I64, skill: I32, context: DecisionContext | None) -> None:
        row = late.row
        free = self._columns["known_at"][row] == _NEVER
        if not free.any(axis=1).all():
            self._columns = {name: _wider(column) for name, column in self._columns.items()}
            free = self._columns["known_at"][row] == _NEVER
        slot, known_at = free.argmax(axis=1), now[row] + late.delay
        self._first[row] = np.minimum(self._first[row], known_at)
        values = ("known_at", known_at), ("skill", skill[row]), ("kind", late.kind), ("value", late.value)
        for name, column in values:
            self._columns[name][row, slot] = column
        self._columns["turn"][row, slot] = turn
        if context is not None:  # a scorer learns nothing from what is said of the LLM's answers
            by_skill = skill[row] >= 0
            _put(self._columns, row[by_skill], slot[by_skill], context.rows(row[by_skill]))

    def due(self, now: I64, ratings: Ratings) -> KnownFeedback:
        """What is known by `now` `[B]`, in order of the turn that it is about; `ratings` gets those of skills."""
        users = np.flatnonzero(self._first[: len(now)] <= now)
        if not len(users):
            return KnownFeedback(EMPTY, EMPTY, EMPTY, EMPTY, EMPTY)
        known_at = self._columns["known_at"]
        at, slot = np.nonzero(known_at[users] <= now[users, None])
        row = users[at]
        turn, kind, value, skill = (self._columns[name][row, slot] for name in ("turn", "kind", "value", "skill"))
        known_at[row, slot] = _NEVER
        self._first[users] = known_at[users].min(axis=1)
        if len(row) > 1:
            order = np.lexsort((kind, turn, row))
            row, slot, turn, kind, value, skill = (x[order] for x in (row, slot, turn, kind, value, skill))
        rated = np.flatnonzero((kind == RATING) & (skill >= 0))
        if len(rated) and self._columns["features"].size:
            row_of, slot_of = row[rated], slot[rated]
            context = DecisionContext(*(self._columns[name][row_of, slot_of] for name in DecisionContext.__slots__))
            nth = np.arange(len(rated)) - np.searchsorted(row_of, row_of)
            for n in range(int(nth.max()) + 1):
                part = np.flatnonzero(nth == n)
                ratings.add(row_of[part], value[rated[part]], context.rows(part))
        return KnownFeedback(row.astype(np.int32), turn, kind, value, skill)


def _context_columns(n_users: int) -> Columns:
    """Columns of `DecisionContext`; the shape of the features is known when the first come."""
    whole = np.zeros((n_users, 4), np.int32)
    event = np.zeros((n_users, 4), np.uint64)
    return {"features": np.zeros((n_users, 4, 0, 0)), "candidates": whole, "place": whole.copy(), "event": event}


def _put(columns: Columns, row: I64, slot: I64 | I32, context: DecisionContext) -> None:
    old, (_, k, n_features) = columns["features"], context.features.shape
    if k > old.shape[2]:  # the first, or a fork has a longer shortlist
        columns["features"] = np.zeros((*columns["place"].shape, k, n_features))
        columns["features"][:, :, : old.shape[2]] = old if old.size else 0.0
    columns["features"][row, slot, k:] = 0.0
    columns["features"][row, slot, :k] = context.features
    for name in ("candidates", "place", "event"):
        columns[name][row, slot] = getattr(context, name)


def _wider(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Twice as many slots a user."""
    fill = np.full_like(column, _NEVER) if column.dtype == np.int64 else np.zeros_like(column)
    return np.concatenate([column, fill], axis=1)
