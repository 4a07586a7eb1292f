"""Control: the LLM answers everything."""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.types import Candidates, Decision, Draws


@dataclass(frozen=True)
class Never:
    """Always the fallback."""

    def choose(self, candidates: Candidates, draws: Draws) -> Decision:
        """The fallback."""
        b = len(candidates.skill)
        return Decision(np.full(b, -1, np.int32), np.ones(b), np.zeros(b, np.bool_))
