"""Control: variety and nothing else. Of the listed skills always the one that it chose least often."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.batch import RenewedSkills
from skg_bench.core.deciding import Candidates, Decision
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import F64, I32
from skg_bench.core.growing import wider
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.policy.shared.distributions import best_of, certain


@dataclass(frozen=True, slots=True)
class ChoicesMade:
    """How often each skill of B users was chosen."""

    count: I32  # [B, S]


@dataclass(frozen=True)
class LeastUsed:
    """The listed skill that was chosen least often, of several the one that is oldest.

    Choices are counted by the policy itself, so that it varies what is said also where no curator counts uses.
    """

    reads: ClassVar[Sequence[str]] = ()
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def start(self, n: int) -> ChoicesMade:
        """Memory without choices."""
        return ChoicesMade(np.zeros((n, 8), np.int32))

    def propensities(self, candidates: Candidates, state: ChoicesMade) -> F64:
        """Certainty for that skill; the fallback only if the shortlist is empty."""
        skill, width = candidates.skill, state.count.shape[1]
        listed = skill >= 0
        count = state.count[np.arange(len(skill))[:, None], np.clip(skill, 0, width - 1)] * (skill < width)
        place = best_of(np.where(listed, -count.astype(np.float64), -np.inf), skill)
        return certain(np.where(listed.any(axis=1), place, -1), skill.shape[1])

    def learn(
        self, state: ChoicesMade, decision: Decision, known: KnownFeedback, renewed: RenewedSkills
    ) -> ChoicesMade:
        """One more choice."""
        row = np.flatnonzero(decision.place >= 0)
        skill = decision.candidates.skill[row, decision.place[row]]
        count = wider(state.count, int(skill.max(initial=-1)) + 1, 0)
        count[row, skill] += 1
        return ChoicesMade(count)
