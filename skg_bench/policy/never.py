"""Control: the LLM answers everything."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.deciding import Candidates, Memoryless
from skg_bench.core.grid import F64
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.policy.shared.distributions import certain


@dataclass(frozen=True)
class Never(Memoryless):
    """Always the fallback."""

    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def propensities(self, candidates: Candidates, state: None) -> F64:
        """The fallback."""
        b, k = candidates.skill.shape
        return certain(np.full(b, -1, np.int32), k)
