"""Known ratings, with the shortlists that the rated skills were chosen from: what a scorer learns from."""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.feedback import RATING, WORTH
from skg_bench.core.grid import F64, I32, I64, U64
from skg_bench.core.growing import Slots, doubled, put
from skg_bench.core.types import TrainingRows


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """The shortlists that served skills were chosen from, n turns."""

    features: F64  # [n, K, F]
    candidates: I32  # [n] skills of the shortlist
    place: I32  # [n] the one that was served
    event: U64  # [n] key of the event

    def rows(self, rows: I64) -> "DecisionContext":
        """Ratings of these turns only."""
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
        self._columns: Slots = {
            "features": np.zeros((n_users, 4, 0, 0)),  # as long as shortlists are, once the first has come
            "candidates": np.zeros((n_users, 4), np.int32),
            "place": np.zeros((n_users, 4), np.int32),
            "event": np.zeros((n_users, 4), np.uint64),
            "label": np.zeros((n_users, 4)),
        }

    def add(self, row: I64, rating: I32, context: DecisionContext | None) -> None:
        """Ratings `[n]` of users `row` `[n]`, each at most once; None: there is no scorer that would learn."""
        if context is None or not len(row):
            return
        slot = self._n[row] % self._ring if self._ring else self._n[row]
        if slot.max() >= self._columns["label"].shape[1]:
            self._columns = {name: doubled(column) for name, column in self._columns.items()}
        shown = {name: getattr(context, name) for name in DecisionContext.__slots__}
        put(self._columns, row, slot, {**shown, "label": WORTH[RATING][rating]})
        self._n[row] += 1
        self._new[row] = True

    def add_late(self, row: I32, rating: I32, context: DecisionContext) -> None:
        """Ratings `[n]` of users `row` `[n]`, ascending, in the order in which each user's became known."""
        nth = np.arange(len(row)) - np.searchsorted(row, row)
        for n in range(int(nth.max(initial=-1)) + 1):
            part = np.flatnonzero(nth == n)
            self.add(row[part].astype(np.int64), rating[part], context.rows(part))

    def take(self, rows: I64) -> tuple[I64, TrainingRows]:
        """Takes the users of `rows` who have new ratings, and what they learn from; none of it is new any longer."""
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
        """Starts over for a recipe that has seen none of them; all must have been kept."""
        self._window, self._seen, self._new = window, np.zeros_like(self._seen), self._n > 0
