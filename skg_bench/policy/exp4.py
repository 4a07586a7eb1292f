"""Weights of the three signals, learned online (SKG paper, section 7: "bandit algorithms to refine
w1, w2, w3 in real time"), by EXP4 (Auer, Cesa-Bianchi, Freund and Schapire, SIAM J. Computing 2002, section 7).

Each weighting (similarity, preference, score) is an expert: it names the skill with its largest combined score, or the
LLM below `threshold`. One of them is drawn and followed. What a rating says of the served skill is credited to all who
named it, over the probability that it was served. That probability is the sum over all who named it, so it is exact.

A gain is counted against the LLM: rating - `llm_ok` for a skill, 0 for the LLM, whose ratings arms do not learn from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.batch import RenewedSkills
from skg_bench.core.deciding import Candidates, Decision, combine
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING, WORTH, KnownFeedback
from skg_bench.core.grid import F64, I32, Bool
from skg_bench.core.growing import wider
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.policy.shared.distributions import best_of


@dataclass(frozen=True, slots=True)
class Experts:
    """Choices of M weightings, and how these were rated, for B users."""

    gained: F64  # [B, M] over rated choices that it named: sum of rating (ok 1, partial 0.5) / propensity
    tried: F64  # [B, M] over the same: sum of 1 / propensity
    backed: Bool  # [B, T, M] it named what was chosen at that turn
    propensity: F64  # [B, T] of that choice


@dataclass(frozen=True)
class Exp4:
    """A weighting in proportion to exp(`rate` x its estimated gain), or any, in `explore` of the turns."""

    threshold: float
    weights: tuple[tuple[float, float, float], ...]
    rate: float
    explore: float
    llm_ok: float
    reads: ClassVar[Sequence[str]] = ("rating",)
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", tuple(tuple(w) for w in self.weights))
        for name in ("threshold", "llm_ok"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"policy.{name}={getattr(self, name)} must lie in [0, 1]")
        if not 0 < self.explore <= 1:
            raise UsageError(f"policy.explore={self.explore} must lie in (0, 1]: no weighting may become impossible")
        if not 0 <= self.rate <= 10:
            raise UsageError(f"policy.rate={self.rate} must lie in [0, 10]; 0 learns nothing")
        given: Sequence[Sequence[float]] = self.weights  # from a yaml, of any length
        wrong = [w for w in given if len(w) != 3 or not all(x >= 0 for x in w) or not w[0] + w[1] > 0]
        if wrong or not self.weights:
            raise UsageError(
                f"policy.weights={wrong or '[]'}: a weighting is [similarity, preference, score], none negative, and "
                "one of the first two above 0, as the score may be absent"
            )

    def start(self, n: int) -> Experts:
        """Memory in which all weightings are equal."""
        m = len(self.weights)
        return Experts(np.zeros((n, m)), np.zeros((n, m)), np.zeros((n, 8, m), np.bool_), np.ones((n, 8)))

    def propensities(self, candidates: Candidates, state: Experts) -> F64:
        """The shares of the weightings, each added to what it names."""
        b, k = candidates.skill.shape
        gain = self.rate * (state.gained - self.llm_ok * state.tried)
        # whole parts, so that the same bits come out wherever exp is right to a billionth
        parts = np.rint(np.exp(gain - gain.max(axis=1, keepdims=True)) * 2.0**32)
        share = (1.0 - self.explore) * parts / parts.cumsum(axis=1)[:, -1:] + self.explore / len(self.weights)
        total = np.zeros((b, 1 + k))
        for place, part in zip(self._named(candidates).T, share.T, strict=True):
            total[np.arange(b), place + 1] += part
        mixed: F64 = total / share.cumsum(axis=1)[:, -1:]  # in the same order: where all name the same, exactly 1
        return mixed

    def learn(self, state: Experts, decision: Decision, known: KnownFeedback, renewed: RenewedSkills) -> Experts:
        """Credits ratings to those who named what was chosen."""
        t = decision.turn
        backed, propensity = wider(state.backed, t + 1, False), wider(state.propensity, t + 1, 1.0)
        backed[:, t] = self._named(decision.candidates) == decision.place[:, None]
        propensity[:, t] = decision.propensity
        rated = known.rows((known.kind == RATING) & (known.skill >= 0))
        credit = backed[rated.row, rated.turn] / propensity[rated.row, rated.turn, None]
        np.add.at(state.tried, rated.row, credit)
        np.add.at(state.gained, rated.row, credit * WORTH[RATING][rated.value][:, None])
        return Experts(state.gained, state.tried, backed, propensity)

    def _named(self, candidates: Candidates) -> I32:
        """Choice of each weighting, `[B, M]` places; -1: the LLM."""
        weights = np.array(self.weights).T[:, :, None, None]  # [3, M, 1, 1]
        combined = combine(weights, candidates.similarity, candidates.preference, candidates.score)  # [M, B, K]
        combined[:, candidates.skill < 0] = -1.0
        best = best_of(combined, candidates.skill)
        places: I32 = np.where(combined.max(axis=2) >= self.threshold, best, -1).astype(np.int32).T
        return places
