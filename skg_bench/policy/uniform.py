"""Control: a random choice among the shortlist and the fallback."""

from dataclasses import dataclass
from typing import ClassVar

from skg_bench.core.deciding import Candidates, Memoryless
from skg_bench.core.grid import F64
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.policy.shared.distributions import uniform_choice


@dataclass(frozen=True)
class Uniform(Memoryless):
    """Each candidate and the fallback with the same probability."""

    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def propensities(self, candidates: Candidates, state: None) -> F64:
        """Equal parts."""
        return uniform_choice(candidates)
