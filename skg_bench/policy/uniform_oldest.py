"""A random choice among the oldest skills of a book, such as its seeds, which all curators have in common."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from skg_bench.core.deciding import Candidates, Memoryless
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.policy.shared.distributions import uniform_choice


@dataclass(frozen=True)
class UniformOldest(Memoryless):
    """The fallback, and each candidate among the book's first `skills` skills, with the same probability.

    All curators see the same turns if they leave these skills as they are, and if the router lists them.
    """

    skills: int
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if self.skills < 1:
            raise UsageError(f"policy.skills={self.skills} must be at least 1")

    def propensities(self, candidates: Candidates, state: None) -> F64:
        """Equal parts among the oldest, nothing for others."""
        oldest = np.where(candidates.skill < self.skills, candidates.skill, -1)
        return uniform_choice(replace(candidates, skill=oldest))
