"""Control: the LLM answers everything."""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.deciding import Candidates, Memoryless
from skg_bench.core.distributions import certain
from skg_bench.core.grid import F64


@dataclass(frozen=True)
class Never(Memoryless):
    """Always the fallback."""

    def propensities(self, candidates: Candidates, state: None) -> F64:
        """The fallback."""
        b, k = candidates.skill.shape
        return certain(np.full(b, -1, np.int32), k)
