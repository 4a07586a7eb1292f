"""Random choices that prefer what scores high: a log of them supports off-policy estimates of any other policy."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.deciding import Candidates, Memoryless
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64
from skg_bench.core.reach import REACHES_NOTHING, Reaches


@dataclass(frozen=True)
class Softmax(Memoryless):
    """A candidate in proportion to exp(score / temperature), the fallback as one whose score is `threshold`.

    As only one action is taken, it is the first of a Plackett-Luce ranking as well. At a low temperature it is the
    threshold rule.
    """

    threshold: float
    temperature: float
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise UsageError(f"policy.threshold={self.threshold} must lie in [0, 1], like the combined score")
        if not 0.001 <= self.temperature < float("inf"):
            raise UsageError(
                f"policy.temperature={self.temperature} must be finite and at least 0.001, in units of the combined "
                "score; policy=threshold is the rule without chance"
            )

    def propensities(self, candidates: Candidates, state: None) -> F64:
        """Shares of exp(score / temperature)."""
        b = len(candidates.skill)
        score = np.concatenate([np.full((b, 1), self.threshold), candidates.combined], axis=1)
        listed = np.concatenate([np.ones((b, 1), np.bool_), candidates.skill >= 0], axis=1)
        logit = np.where(listed, score / self.temperature, -np.inf)
        weight = np.exp(logit - logit.max(axis=1, keepdims=True))
        share: F64 = weight / weight.cumsum(axis=1)[:, -1:]  # from left to right: the same bits for any number of users
        return share
