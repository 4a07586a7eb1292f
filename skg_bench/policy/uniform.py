"""Control: a random choice among the shortlist and the fallback."""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.types import Candidates, Decision, Draws


@dataclass(frozen=True)
class Uniform:
    """Each candidate and the fallback with the same probability."""

    def choose(self, candidates: Candidates, draws: Draws) -> Decision:
        """One uniform, cut into equal parts."""
        n_actions = (candidates.skill >= 0).sum(axis=1) + 1
        place = np.minimum((draws.policy * n_actions).astype(np.int64), n_actions - 1) - 1
        return Decision(place.astype(np.int32), 1.0 / n_actions, np.ones(len(place), np.bool_))
