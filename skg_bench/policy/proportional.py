"""Control: answers in proportion to what answered before, whatever the message says."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.deciding import Candidates, Memoryless
from skg_bench.core.grid import F64
from skg_bench.core.reach import REACHES_NOTHING, Reaches


@dataclass(frozen=True)
class Proportional(Memoryless):
    """A candidate with weight uses + 1, the fallback with weight 1 + earlier turns of the LLM."""

    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def propensities(self, candidates: Candidates, state: None) -> F64:
        """Weights over their sum."""
        skills = np.where(candidates.skill >= 0, candidates.uses + 1.0, 0.0)
        weight = np.concatenate([candidates.llm_turns[:, None] + 1.0, skills], axis=1)
        share: F64 = weight / weight.sum(axis=1, keepdims=True)
        return share
