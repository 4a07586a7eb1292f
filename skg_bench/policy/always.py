"""Control: the best skill answers everything, once there is one."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.deciding import Candidates, Memoryless
from skg_bench.core.grid import F64
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.policy.shared.distributions import best, certain


@dataclass(frozen=True)
class Always(Memoryless):
    """The best candidate, whatever its score."""

    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def propensities(self, candidates: Candidates, state: None) -> F64:
        """The best candidate; the fallback only if the shortlist is empty."""
        some = (candidates.skill >= 0).any(axis=1)
        return certain(np.where(some, best(candidates), -1), candidates.skill.shape[1])
