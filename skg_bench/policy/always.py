"""Control: the best skill answers everything, once there is one."""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.best_candidate import best
from skg_bench.core.types import Candidates, Decision, Draws


@dataclass(frozen=True)
class Always:
    """The best candidate, whatever its score."""

    def choose(self, candidates: Candidates, draws: Draws) -> Decision:
        """The best candidate; the fallback only if the shortlist is empty."""
        b = len(candidates.skill)
        some = (candidates.skill >= 0).any(axis=1)
        return Decision(np.where(some, best(candidates), -1).astype(np.int32), np.ones(b), np.zeros(b, np.bool_))
