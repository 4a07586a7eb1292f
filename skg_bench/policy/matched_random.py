"""Control: as many hits as some other policy has, at random moments."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.deciding import Candidates, Memoryless
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.policy.shared.distributions import best, certain


@dataclass(frozen=True)
class MatchedRandom(Memoryless):
    """Coin: with probability `rate` the best candidate answers, whatever its score, else the LLM.

    With the hit rate of another arm as `rate`, the difference to that arm is what its choice of the moment is worth.
    """

    rate: float
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1:
            raise UsageError(f"policy.rate={self.rate} must lie in [0, 1]")

    def propensities(self, candidates: Candidates, state: None) -> F64:
        """The best candidate at `rate`; an empty shortlist leaves the fallback."""
        b, k = candidates.skill.shape
        some = (candidates.skill >= 0).any(axis=1)
        hit = certain(np.where(some, best(candidates), -1), k)
        share: F64 = self.rate * hit + (1.0 - self.rate) * certain(np.full(b, -1, np.int32), k)
        return share
