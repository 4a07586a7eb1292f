"""Control: as many hits as some other policy has, at random moments."""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.best_candidate import best
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import Bool
from skg_bench.core.types import Candidates, Decision, Draws


@dataclass(frozen=True)
class MatchedRandom:
    """With probability `rate` the best candidate answers, whatever its score, else the LLM.

    With the hit rate of another arm as `rate`, the difference to that arm is what its choice of the moment is worth.
    """

    rate: float

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1:
            raise UsageError(f"policy.rate={self.rate} must lie in [0, 1]")

    def choose(self, candidates: Candidates, draws: Draws) -> Decision:
        """One uniform decides; an empty shortlist leaves the fallback."""
        some: Bool = candidates.skill.max(axis=1) >= 0
        hit = some & (draws.policy < self.rate)
        propensity = np.where(hit, self.rate, np.where(some, 1.0 - self.rate, 1.0))
        return Decision(np.where(hit, best(candidates), -1).astype(np.int32), propensity, some)
