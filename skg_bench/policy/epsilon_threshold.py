"""The threshold rule, with a share of random choices so that a log supports off-policy estimates."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.deciding import Candidates, Memoryless
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.policy.shared.distributions import best, certain, uniform_choice


@dataclass(frozen=True)
class EpsilonThreshold(Memoryless):
    """Uniform over the shortlist and the fallback with probability `epsilon`, else the threshold rule."""

    threshold: float
    epsilon: float
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        for name in ("threshold", "epsilon"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"policy.{name}={getattr(self, name)} must lie in [0, 1]")

    def propensities(self, candidates: Candidates, state: None) -> F64:
        """The threshold rule, mixed with the uniform distribution."""
        reached = candidates.combined.max(axis=1) >= self.threshold
        rule = certain(np.where(reached, best(candidates), -1), candidates.skill.shape[1])
        return self.epsilon * uniform_choice(candidates) + (1.0 - self.epsilon) * rule
