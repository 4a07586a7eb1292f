"""The threshold rule, with a share of random choices so that a log supports off-policy estimates."""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.best_candidate import best
from skg_bench.core.errors import UsageError
from skg_bench.core.types import Candidates, Decision, Draws


@dataclass(frozen=True)
class EpsilonThreshold:
    """With probability `epsilon` uniform over the shortlist and the fallback, else the threshold rule."""

    threshold: float
    epsilon: float

    def __post_init__(self) -> None:
        for name in ("threshold", "epsilon"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"policy.{name}={getattr(self, name)} must lie in [0, 1]")

    def choose(self, candidates: Candidates, draws: Draws) -> Decision:
        """One uniform decides whether to explore and, rescaled, what."""
        rule = best(candidates)
        reached = candidates.combined[np.arange(len(rule)), rule] >= self.threshold
        rule = np.where(reached, rule, -1)
        n_actions = (candidates.skill >= 0).sum(axis=1) + 1  # candidates come first, so places count up from 0
        explore = draws.policy < self.epsilon
        part = np.where(explore, draws.policy, 0.0) / max(self.epsilon, 1e-300)  # in [0, 1), whatever epsilon is
        drawn = np.minimum((part * n_actions).astype(np.int64), n_actions - 1) - 1
        place = np.where(explore, drawn, rule).astype(np.int32)
        propensity = self.epsilon / n_actions + (1.0 - self.epsilon) * (place == rule)
        return Decision(place, propensity, explore)
