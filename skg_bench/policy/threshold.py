"""The SKG paper's rule: the highest combined score wins; none at the threshold or above, and the LLM answers."""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.best_candidate import best
from skg_bench.core.errors import UsageError
from skg_bench.core.types import Candidates, Decision, Draws


@dataclass(frozen=True)
class Threshold:
    """Deterministic choice at `threshold`."""

    threshold: float

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise UsageError(f"policy.threshold={self.threshold} must lie in [0, 1], like the combined score")

    def choose(self, candidates: Candidates, draws: Draws) -> Decision:
        """The best candidate, if it reaches the threshold."""
        place = best(candidates)
        reached = candidates.combined.max(axis=1) >= self.threshold
        b = len(place)
        return Decision(np.where(reached, place, -1).astype(np.int32), np.ones(b), np.zeros(b, np.bool_))
