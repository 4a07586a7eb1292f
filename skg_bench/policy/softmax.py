"""Random choices that prefer what scores high: a log of them supports off-policy estimates of any other policy."""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.draws import Purpose, fold, gumbel, uniform
from skg_bench.core.errors import UsageError
from skg_bench.core.types import Candidates, Decision, Draws


@dataclass(frozen=True)
class Softmax:
    """A candidate in proportion to exp(score / temperature), the fallback as one whose score is `threshold`.

    As only one action is taken, it is the first of a Plackett-Luce ranking as well. At a low temperature it is the
    threshold rule.
    """

    threshold: float
    temperature: float

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise UsageError(f"policy.threshold={self.threshold} must lie in [0, 1], like the combined score")
        if not 0.001 <= self.temperature < float("inf"):
            raise UsageError(
                f"policy.temperature={self.temperature} must be finite and at least 0.001, in units of the combined "
                "score; policy=threshold is the rule without chance"
            )

    def choose(self, candidates: Candidates, draws: Draws) -> Decision:
        """One Gumbel draw per action, keyed by the skill's id and not by its place.

        The propensity is rounded to float32: numpy's exp differs in the last place between CPU types.
        """
        b = len(candidates.skill)
        score = np.concatenate([np.full((b, 1), self.threshold), candidates.combined], axis=1)
        item = np.concatenate([np.full((b, 1), -1, np.int32), candidates.skill], axis=1)
        there = np.concatenate([np.ones((b, 1), np.bool_), candidates.skill >= 0], axis=1)
        logit = np.where(there, score / self.temperature, -np.inf)
        noise = gumbel(uniform(fold(fold(fold(draws.event, int(Purpose.POLICY_ITEM))[:, None], item), 0)))
        action = np.argmax(logit + noise, axis=1)
        weight = np.exp(logit - logit.max(axis=1, keepdims=True))
        total = weight.cumsum(axis=1)[:, -1]  # from left to right: the same bits for any number of users
        propensity = (weight[np.arange(b), action] / total).astype(np.float32).astype(np.float64)
        return Decision((action - 1).astype(np.int32), propensity, np.ones(b, np.bool_))
