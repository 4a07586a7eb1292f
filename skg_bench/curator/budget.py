"""A skillbook of limited size: a capture beyond it archives a skill, by the rule of a cache."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from skg_bench.core.batch import ADD, REMOVE, UPDATE, Batch, blank, joined, stores
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.types import Curator, Observation, Skillbooks
from skg_bench.core.world import Reaction

Evict = Literal["lru", "lfu", "ttl"]


@dataclass(frozen=True)
class Budget:
    """`curator`, with at most `capacity` active skills; beyond that some are archived.

    `evict`: `lru`, the one used or captured longest ago; `lfu`, the least used, of these the least recently used;
    `ttl`, the one with the oldest answer, whose time to live ends first. Ties go by id. What this very turn used or
    captured stays, even if that is more than the capacity.
    """

    curator: Curator[Any]
    capacity: int
    evict: Evict
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if self.capacity < 1:
            raise UsageError(f"curator.capacity={self.capacity} must be at least 1")
        if self.evict not in get_args(Evict):
            raise UsageError(f"curator.evict={self.evict!r}, valid are {', '.join(get_args(Evict))}")
        if self.curator.sees_truth:
            raise UsageError("curator=budget cannot wrap a curator that sees the truth")

    @cached_property
    def reasons(self) -> Sequence[str]:
        """Reasons of the curator inside, and one more."""
        return (*self.curator.reasons, "evicted")

    def start(self, n: int) -> Any:
        """The memory of the curator inside."""
        return self.curator.start(n)

    def offers(self, seen: Observation, state: Any) -> Bool:
        """Whom the curator inside asks."""
        return self.curator.offers(seen, state)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: Any
    ) -> tuple[Any, Batch]:
        """Operations of the curator inside, and removals that make room for them."""
        state, batch = self.curator.curate(seen, reaction, known, books, state)
        stays = books.active.copy()  # what is active after the batch, new skills apart
        free = books.active.copy()  # of these, what may go
        renewed, gone = (batch.op == UPDATE) & stores(batch), batch.op == REMOVE
        stays[batch.row[renewed], batch.skill[renewed]] = True
        free[batch.row[renewed], batch.skill[renewed]] = False
        hit = seen.hit.nonzero()[0]
        free[hit, seen.skill[hit]] = False
        for which in (stays, free):
            which[batch.row[gone], batch.skill[gone]] = False
        added = np.bincount(batch.row[batch.op == ADD], minlength=len(stays))
        excess = stays.sum(axis=1) + added - self.capacity
        rows = (excess > 0).nonzero()[0]
        if not len(rows):
            return state, batch
        keys = (*self._keys(books, rows), ~free[rows])  # the last one counts most
        order = np.lexsort(keys, axis=1)[:, : int(excess[rows].max())]
        goes = np.take_along_axis(free[rows], order, axis=1) & (np.arange(order.shape[1]) < excess[rows, None])
        at, position = np.nonzero(goes)
        end = blank(len(at))
        end.row[:], end.op[:], end.skill[:] = rows[at], REMOVE, order[at, position]
        end.reason[:] = len(self.reasons) - 1
        return state, joined(batch, end)

    def _keys(self, books: Skillbooks, rows: I64) -> tuple[I32 | I64, ...]:
        """Keys by which skills are evicted, `[n, S]` each: the smallest go first, and the last key counts most."""
        if self.evict == "ttl":
            return (books.born[rows],)
        return (books.last_used[rows], books.uses[rows]) if self.evict == "lfu" else (books.last_used[rows],)
