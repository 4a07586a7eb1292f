"""A rule to compare readers of the prompt with: of the skills learned in such a place, or of all, the most helpful."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.deciding import Candidates, Memoryless
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, snap
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.policy.shared.distributions import best_of, certain


@dataclass(frozen=True)
class BetaMean(Memoryless):
    """The candidate with the largest Beta mean, of those learned on a similar trigger or else of all.

    A trigger is similar from a similarity of `near` on; of equal means the lower id is taken, and the fallback where no
    mean reaches `least`. The mean is that of the posterior of helpful and harmful uses under the prior (`prior_ok`,
    `prior_miss`); partial uses count neither way, as in the rating that `policy=chooser` reads.
    """

    near: float
    least: float
    prior_ok: float
    prior_miss: float
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if not 0 <= self.near <= 1:
            raise UsageError(f"policy.near={self.near} must be a cosine in [0, 1]; 0 counts every skill as near")
        if not 0 <= self.least <= 1:
            raise UsageError(
                f"policy.least={self.least} must be a mean in [0, 1]; 0 takes the best skill whatever it is"
            )
        for name in ("prior_ok", "prior_miss"):
            if not 0 < getattr(self, name) <= 1e6:
                raise UsageError(f"policy.{name}={getattr(self, name)} must be above 0, and at most a million")

    def propensities(self, candidates: Candidates, state: None) -> F64:
        """All on one: nothing is left to chance."""
        listed = candidates.skill >= 0
        near = listed & (candidates.similarity >= self.near)
        pool = np.where(near.any(axis=1, keepdims=True), near, listed)
        helpful = 2.0 * candidates.ok - candidates.rated + candidates.miss  # `ok` counts partial ones half
        mean = (helpful + self.prior_ok) / (helpful + candidates.miss + self.prior_ok + self.prior_miss)
        mean = np.where(pool, mean, -1.0)
        place = np.where(mean.max(axis=1) >= self.least, best_of(snap(mean), candidates.skill), -1)
        return certain(place, candidates.skill.shape[1])
