"""Feedback on its way: given about a turn, and known to the assistant later."""

from dataclasses import fields
from typing import Any

import numpy as np

from skg_bench.core.batch import NO_ROWS
from skg_bench.core.feedback import Feedback, KnownFeedback
from skg_bench.core.grid import I32, I64
from skg_bench.core.growing import Slots, doubled, put

_NEVER = np.iinfo(np.int64).max
_CONTEXT = "context."
_NOTHING, _AT_NO_TIME = KnownFeedback(NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS), NO_ROWS.astype(np.int64)


class Pending:
    """Feedback of all kinds that becomes known later, with what the assistant wants back with it."""

    def __init__(self, n_users: int) -> None:
        self._first = np.full(n_users, _NEVER)  # when the earliest of each user will be known
        names = ("skill", "kind", "value", "turn")
        self._columns: Slots = {name: np.zeros((n_users, 4), np.int32) for name in names}
        self._columns["known_at"] = np.full((n_users, 4), _NEVER)
        self._kind: type[Any] | None = None  # of contexts

    def add(self, late: Feedback, turn: int, now: I64, skill: I32, context: Any) -> None:
        """Feedback for this turn that is known later; `now`, `skill` and `context` are of all users, `[B]`."""
        kinds = late.kind[:1] if (late.kind == late.kind[:1]).all() else np.unique(late.kind)
        for kind in kinds:  # of each at most one row a user
            self._add(late if len(kinds) == 1 else late.rows(late.kind == kind), turn, now, skill, context)

    def _add(self, late: Feedback, turn: int, now: I64, skill: I32, context: Any) -> None:
        row = late.row
        free = self._columns["known_at"][row] == _NEVER
        if not free.any(axis=1).all():
            columns = self._columns
            self._columns = {k: doubled(column, _NEVER if k == "known_at" else 0) for k, column in columns.items()}
            free = self._columns["known_at"][row] == _NEVER
        slot, known_at = free.argmax(axis=1), now[row] + late.delay
        self._first[row] = np.minimum(self._first[row], known_at)
        turns = np.full(len(row), turn, np.int32)
        values = {"known_at": known_at, "skill": skill[row], "kind": late.kind, "value": late.value, "turn": turns}
        if context is not None:
            self._kind = type(context)
            values |= {_CONTEXT + f.name: getattr(context, f.name)[row] for f in fields(context)}
        put(self._columns, row, slot, values)

    def due(self, now: I64) -> tuple[KnownFeedback, I64, Any]:
        """Feedback known by `now` `[B]`, a user's rows in order of the turn that they are about, since when, and their
        contexts.

        The context is zeros where none was given, and None where none ever was.
        """
        users = (self._first[: len(now)] <= now).nonzero()[0]
        if not len(users):
            return _NOTHING, _AT_NO_TIME, None
        known_at = self._columns["known_at"]
        at, slot = np.nonzero(known_at[users] <= now[users, None])
        row = users[at]
        turn, kind = self._columns["turn"][row, slot], self._columns["kind"][row, slot]
        if len(row) > 1:
            order = np.lexsort((kind, turn, row))
            row, slot, turn, kind = row[order], slot[order], turn[order], kind[order]
        since = known_at[row, slot]
        known_at[row, slot] = _NEVER
        self._first[users] = known_at[users].min(axis=1)
        value, skill = self._columns["value"][row, slot], self._columns["skill"][row, slot]
        known = KnownFeedback(row.astype(np.int32), turn, kind, value, skill)
        if self._kind is None:
            return known, since, None
        names = [f.name for f in fields(self._kind)]
        return known, since, self._kind(**{name: self._columns[_CONTEXT + name][row, slot] for name in names})
