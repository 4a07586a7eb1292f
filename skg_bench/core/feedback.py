"""Feedback as rows: what users say of a turn, and what can be seen of it, now or later.

A kind of feedback is a channel with declared levels. `WORTH` says what a level is worth to somebody who learns from it,
from 0 to 1; NaN: nothing can be said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np

from skg_bench.core.grid import F64, I32, I64, Bool

_RATINGS = ("ok", "partial", "miss")
FEEDBACK_KINDS: Mapping[str, tuple[str, ...]] = {
    "rating": _RATINGS,  # what the user says of the answer; or what an arm's signs make of the kinds of a domain
    "agrees": ("other", "same"),  # a judge's verdict: does the LLM's answer say what a stored one says?
    "afterwards": _RATINGS,  # a rating that an arm's signs make of what is said later, and keep apart
    "retracted": _RATINGS,  # an earlier rating of the turn that no longer counts, by an arm's signs
}
"""Levels of each kind that every world has; a code is an index into them, and a domain's own kinds come after them
(core/domain.py). The last two are never said by a user, and in no log."""
RATING, AGREES, AFTERWARDS, RETRACTED = range(len(FEEDBACK_KINDS))
WORTH: Mapping[int, F64] = {RATING: np.array([1.0, 0.5, 0.0]), AGREES: np.array([np.nan, np.nan])}


@dataclass(frozen=True, slots=True)
class Feedback:
    """Feedback on a turn, said or observed, flat over n: of each kind at most one row a user."""

    row: I64  # [n] row of the user
    kind: I32  # [n] index into FEEDBACK_KINDS
    value: I32  # [n] index into the levels of its kind
    delay: I64  # [n] seconds until it is known, 0: with the turn

    def rows(self, which: I64 | Bool) -> "Feedback":
        """Selection of these rows."""
        return Feedback(self.row[which], self.kind[which], self.value[which], self.delay[which])

    def of_kind(self, kind: int, n: int) -> I32:
        """Values of this kind that `n` users give with the turn, -1: none."""
        values = np.full(n, -1, np.int32)
        at = (self.kind == kind) & (self.delay == 0)
        values[self.row[at]] = self.value[at]
        return values


@dataclass(frozen=True, slots=True)
class KnownFeedback:
    """Feedback that became known at this turn, flat over n; a user's rows in order of the turn that they are about."""

    row: I32  # [n] row of the user
    turn: I32  # [n] the turn that it is about: this one or an earlier one, as in `Message.turn`
    kind: I32  # [n] index into FEEDBACK_KINDS
    value: I32  # [n] index into the levels of its kind
    skill: I32  # [n] the skill that answered at that turn (`Reply.skill`), -1: the LLM, or an assistant without skills

    def rows(self, which: I64 | Bool) -> "KnownFeedback":
        """Selection of these rows."""
        return KnownFeedback(self.row[which], self.turn[which], self.kind[which], self.value[which], self.skill[which])

    def ratings(self, before: int) -> "KnownFeedback":
        """The ratings of skills at turns earlier than `before`; none for an assistant without skills."""
        ratings = (self.kind == RATING) & (self.skill >= 0) & (self.turn < before)
        return self if ratings.all() else self.rows(ratings)


_NOTHING = np.zeros(0, np.int32), np.zeros(0, np.int64)
for _column in _NOTHING:
    _column.setflags(write=False)
SILENCE = Feedback(_NOTHING[1], _NOTHING[0], _NOTHING[0], _NOTHING[1])
"""Nobody says anything."""


def feedback_rows(kind: int, value: I32, delay: I64 | None = None) -> Feedback:
    """Rows of one kind from what each user says, `[B]`, -1: nothing; `delay` `[B]`, None: all of it at once."""
    row = (value >= 0).nonzero()[0]
    late = np.zeros(len(row), np.int64) if delay is None else delay[row]
    return Feedback(row, np.full(len(row), kind, np.int32), value[row].astype(np.int32), late)


Rows = TypeVar("Rows", Feedback, KnownFeedback)


def joined_rows(parts: Sequence[Rows]) -> Rows:
    """The rows of one after the other."""
    some = [p for p in parts if len(p.row)]
    if len(some) <= 1:
        return some[0] if some else parts[0]
    return type(parts[0])(*(np.concatenate([getattr(p, f.name) for p in some]) for f in fields(parts[0])))


def feedback(row: I32 | I64, turn: I32 | int, kind: I32 | int, value: I32, skill: I32) -> KnownFeedback:
    """Rows; `row`, `value` and `skill` `[n]`."""
    turns, kinds = (np.full(len(row), x, np.int32) if isinstance(x, int) else x for x in (turn, kind))
    return KnownFeedback(row.astype(np.int32), turns, kinds, value.astype(np.int32), skill)
