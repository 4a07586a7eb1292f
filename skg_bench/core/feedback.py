"""Feedback as rows: what users say of a turn, and what can be seen of it, now or later.

A kind of feedback is a channel with declared levels. `WORTH` says what a level is worth to somebody who learns from it,
from 0 to 1; NaN: nothing can be said.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from skg_bench.core.grid import F64, I32, I64, Bool

KINDS: Mapping[str, tuple[str, ...]] = {
    "rating": ("ok", "partial", "miss"),  # what the user says of the answer
    "agrees": ("other", "same"),  # whether the LLM's answer says what the nearest skill's would have said
}
"""Levels of each kind; a code is an index into them."""
RATING, AGREES = range(len(KINDS))
WORTH: Mapping[int, F64] = {RATING: np.array([1.0, 0.5, 0.0]), AGREES: np.array([np.nan, np.nan])}


@dataclass(frozen=True, slots=True)
class KnownFeedback:
    """Feedback that became known at this turn, flat over n; a user's rows in order of the turn that they are about."""

    row: I32  # [n] row of the user
    turn: I32  # [n] the turn that it is about: this one or an earlier one
    kind: I32  # [n] index into KINDS
    value: I32  # [n] index into the levels of its kind
    skill: I32  # [n] the skill that answered at that turn, -1: the LLM

    def rows(self, which: I64 | Bool) -> "KnownFeedback":
        """These rows only."""
        return KnownFeedback(*(getattr(self, f.name)[which] for f in fields(self)))

    def ratings(self, before: int) -> "KnownFeedback":
        """The ratings of skills at turns earlier than `before`."""
        ratings = (self.kind == RATING) & (self.skill >= 0) & (self.turn < before)
        return self if ratings.all() else self.rows(ratings)


def joined(parts: "list[KnownFeedback]") -> KnownFeedback:
    """The rows of one after the other."""
    some = [p for p in parts if len(p.row)]
    if len(some) <= 1:
        return some[0] if some else parts[0]
    return KnownFeedback(*(np.concatenate([getattr(p, f.name) for p in some]) for f in fields(KnownFeedback)))


def feedback(row: I32 | I64, turn: I32 | int, kind: int, value: I32, skill: I32) -> KnownFeedback:
    """Rows of one kind; `row`, `value` and `skill` `[n]`."""
    n = len(row)
    turns = np.full(n, turn, np.int32) if isinstance(turn, int) else turn
    return KnownFeedback(row.astype(np.int32), turns, np.full(n, kind, np.int32), value.astype(np.int32), skill)
