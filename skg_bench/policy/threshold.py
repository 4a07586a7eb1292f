"""The SKG paper's rule: the highest combined score wins; none at the threshold or above, and the LLM answers."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.deciding import Candidates, Memoryless
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.policy.shared.distributions import best, certain


@dataclass(frozen=True)
class Threshold(Memoryless):
    """Deterministic choice at `threshold`."""

    threshold: float
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise UsageError(f"policy.threshold={self.threshold} must lie in [0, 1], like the combined score")

    def propensities(self, candidates: Candidates, state: None) -> F64:
        """The best candidate, if it reaches the threshold."""
        reached = candidates.combined.max(axis=1) >= self.threshold
        return certain(np.where(reached, best(candidates), -1), candidates.skill.shape[1])
