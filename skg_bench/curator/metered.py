"""A curator with a cap on the tokens that it spends on each user, so that methods are compared at equal budgets."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skg_bench.asking.asking import components_within
from skg_bench.core.abilities import AsksModel
from skg_bench.core.batch import TAG, Batch, blank, joined
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.learning_jobs import Jobs
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.types import Curator, Observation, Skillbooks
from skg_bench.core.world import Reaction

_USED = "used"


@dataclass(frozen=True, slots=True)
class Metering:
    """Memory of the wrapped curator, and tokens of B users."""

    inside: Any
    block: I32  # [B] number of the block of turns in which `spent` was spent
    spent: I64  # [B] tokens read and written in it


@dataclass(frozen=True)
class MeteredCurator:
    """`curator`, which learns nothing more from a user in a block of `turns` turns once its jobs have taken `tokens`.

    The tokens of a job are known at its end, so the last jobs of a block may exceed the cap. Turns above the cap are
    never learned from. Uses of skills are counted at all turns.
    """

    curator: Curator[Any]
    tokens: int
    turns: int
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        for name in ("tokens", "turns"):
            if getattr(self, name) < 1:
                raise UsageError(f"curator.{name}={getattr(self, name)} must be at least 1")
        if self.curator.sees_truth:
            raise UsageError("curator=metered cannot wrap a curator that sees the truth")
        inside = components_within(self.curator)
        learns = any(isinstance(part, AsksModel) and part.asks_model for part in inside)
        if not learns or _USED not in self.curator.reasons:
            raise UsageError(
                f"curator=metered cannot wrap {type(self.curator).__name__}, which would learn on above the cap; take "
                "a curator whose learning asks a model, such as reflecting"
            )

    @property
    def reasons(self) -> Sequence[str]:
        """Reasons of the wrapped curator."""
        return self.curator.reasons

    def start(self, n: int) -> Metering:
        """State of users before any job."""
        return Metering(self.curator.start(n), np.zeros(n, np.int32), np.zeros(n, np.int64))

    def offers(self, seen: Observation, state: Metering) -> Bool:
        """Offers of the wrapped curator to users below the cap."""
        return self.curator.offers(seen, state.inside) & self._below(seen, state)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: Metering
    ) -> tuple[Metering, Batch]:
        """Operations of the wrapped curator for users below the cap, and uses of all users."""
        spent, below = self._spent(seen, state), self._below(seen, state)

        def report(jobs: Jobs) -> None:
            np.add.at(spent, jobs.row, jobs.tokens_in.astype(np.int64) + jobs.tokens_out)
            seen.context.report(jobs)

        context = replace(seen.context, asks=seen.context.asks & below, report=report)
        inside, batch = self.curator.curate(replace(seen, context=context), reaction, known, books, state.inside)
        block = np.full(len(spent), seen.turn // self.turns, np.int32)
        row = np.flatnonzero(seen.hit & seen.context.asks & ~below)
        return Metering(inside, block, spent), joined(self._uses(row, seen), batch) if len(row) else batch

    def _spent(self, seen: Observation, state: Metering) -> I64:
        """Tokens spent so far in the block of this turn, `[B]`."""
        return np.where(state.block == seen.turn // self.turns, state.spent, 0)

    def _below(self, seen: Observation, state: Metering) -> Bool:
        below: Bool = self._spent(seen, state) < self.tokens
        return below

    def _uses(self, row: I64, seen: Observation) -> Batch:
        """A use of each skill that was served to these users."""
        batch = blank(len(row))
        batch.row[:], batch.op[:], batch.skill[:], batch.uses[:] = row, TAG, seen.skill[row], 1
        batch.reason[:], batch.about[:] = self.reasons.index(_USED), seen.turn
        return batch
