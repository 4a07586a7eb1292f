"""Archives skills that seem to hurt: whose lift, as it is known so far from what users say, is below 0 for certain.

The lift of a skill is how well its user rates it, beyond how well the user rates all else: other skills, and what was
served without one, where that is rated. Only feedback is read. It counts for the skill that was served, whatever the
curator inside makes of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from skg_bench.core.batch import ADD, REMOVE, UPDATE, Batch, blank, joined, stores
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING, RETRACTED, WORTH, KnownFeedback
from skg_bench.core.grid import F64, Bool
from skg_bench.core.growing import wider
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.types import Curator, Observation, Skillbooks
from skg_bench.core.world import Reaction


@dataclass(frozen=True, slots=True)
class RatingsHeard:
    """The memory of such a curator."""

    curator: Any  # memory of the curator inside
    worth: F64  # [B, 1 + S] sum of the worths of ratings (1, 1/2 or 0), of turns without a skill and of each skill
    n: F64  # [B, 1 + S] how many these are


@dataclass(frozen=True)
class LiftLimit:
    """`curator`, and skills are archived whose lift has an upper limit below 0.

    The limit is that of a difference of two shares, `deviations` standard deviations above it, with Laplace's shares
    (a good and a bad rating more than there are). `least`: ratings of a skill, and of all else, that are needed. An
    answer that is renewed begins anew.
    """

    curator: Curator[Any]
    deviations: float
    least: int
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if not 0 <= self.deviations < float("inf"):
            raise UsageError(f"curator.deviations={self.deviations} must be finite and not negative")
        if self.least < 1:
            raise UsageError(f"curator.least={self.least} must be at least 1")
        if self.curator.sees_truth:
            raise UsageError("curator=lift cannot wrap a curator that sees the truth")

    @cached_property
    def reasons(self) -> Sequence[str]:
        """Reasons of the curator inside, and one more."""
        return (*self.curator.reasons, "hurts")

    def start(self, n: int) -> RatingsHeard:
        """The memory of the curator inside, and no ratings."""
        return RatingsHeard(self.curator.start(n), np.zeros((n, 1)), np.zeros((n, 1)))

    def offers(self, seen: Observation, state: RatingsHeard) -> Bool:
        """Whom the curator inside asks."""
        return self.curator.offers(seen, state.curator)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: RatingsHeard
    ) -> tuple[RatingsHeard, Batch]:
        """Operations of the curator inside, and removals of what hurts."""
        inside, batch = self.curator.curate(seen, reaction, known, books, state.curator)
        state = _heard(replace(state, curator=inside), known, books)
        b, s = books.active.shape
        touched = (np.isin(batch.op, (UPDATE, REMOVE)) & (batch.skill >= 0)).nonzero()[0]
        anew = (stores(batch) & (batch.op != ADD) & (batch.source >= 0)).nonzero()[0]
        for column in (state.worth, state.n):
            column[batch.row[anew], 1 + batch.skill[anew]] = 0.0
        gone = books.active & (self._limit(state, b, s) < 0)
        gone[batch.row[touched], batch.skill[touched]] = False
        row, skill = np.nonzero(gone)
        if not len(row):
            return state, batch
        end = blank(len(row))
        end.row[:], end.op[:], end.skill[:], end.reason[:] = row, REMOVE, skill, len(self.reasons) - 1
        return state, joined(batch, end)

    def _limit(self, state: RatingsHeard, b: int, s: int) -> F64:
        """Upper limit of each skill's lift, `[b, s]`; infinite where too little was said."""
        worth, n = state.worth[:b, : 1 + s], state.n[:b, : 1 + s]
        (mine, variance, many), (rest, variance_of_rest, others) = (
            _share(*sums) for sums in ((worth, n), (worth.sum(axis=1)[:, None] - worth, n.sum(axis=1)[:, None] - n))
        )
        limit = mine - rest + self.deviations * np.sqrt(variance + variance_of_rest)
        return np.where((many >= self.least) & (others >= self.least), limit, np.inf)[:, 1:]


def _share(worth: F64, n: F64) -> tuple[F64, F64, F64]:
    """Laplace's share, its variance, and the number of ratings."""
    share = (worth + 1.0) / (n + 2.0)
    return share, share * (1.0 - share) / (n + 2.0), n


def _heard(state: RatingsHeard, known: KnownFeedback, books: Skillbooks) -> RatingsHeard:
    """Memory with the ratings that became known, and without those that no longer count."""
    width = 1 + books.active.shape[1]
    worth, n = wider(state.worth, width, 0.0), wider(state.n, width, 0.0)
    for kind, sign in ((RATING, 1.0), (RETRACTED, -1.0)):
        at = (known.kind == kind).nonzero()[0]
        place = known.row[at], 1 + known.skill[at]
        np.add.at(worth, place, sign * WORTH[RATING][known.value[at]])
        np.add.at(n, place, sign)
    return replace(state, worth=worth, n=n)
