"""Which weights of the three signals are best is learned online (SKG paper, section 7: "bandit algorithms to refine
w1, w2, w3 in real time"), by EXP4 (Auer, Cesa-Bianchi, Freund and Schapire, SIAM J. Computing 2002, section 7).

Each weighting (similarity, preference, score) is an adviser: it names the skill with its largest combined score, or the
LLM below `threshold`. One of them is drawn and followed. What a rating says of the served skill is credited to all who
named it, over the probability that it was served. That probability is the sum over all who named it, so it is exact.

A gain is counted against the LLM: rating - `llm_ok` for a skill, 0 for the LLM, whose ratings arms do not learn from.
"""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.types import Candidates, Decision, Draws


@dataclass(frozen=True)
class Exp4:
    """A weighting in proportion to exp(`rate` x its estimated gain), or any, in `explore` of the turns."""

    threshold: float
    weights: tuple[tuple[float, ...], ...]
    rate: float
    explore: float
    llm_ok: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", tuple(tuple(w) for w in self.weights))
        for name in ("threshold", "llm_ok"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"policy.{name}={getattr(self, name)} must lie in [0, 1]")
        if not 0 < self.explore <= 1:
            raise UsageError(f"policy.explore={self.explore} must lie in (0, 1]: no weighting may become impossible")
        if not 0 <= self.rate <= 10:
            raise UsageError(f"policy.rate={self.rate} must lie in [0, 10]; 0 learns nothing")
        wrong = [w for w in self.weights if len(w) != 3 or not all(x >= 0 for x in w) or not w[0] + w[1] > 0]
        if wrong or not self.weights:
            raise UsageError(
                f"policy.weights={wrong or '[]'}: a weighting is [similarity, preference, score], none negative, and "
                "one of the first two above 0, as the score may be absent"
            )

    def choose(self, candidates: Candidates, draws: Draws) -> Decision:
        """What the drawn weighting would do; one uniform a turn."""
        trials = candidates.trials
        if trials is None:
            raise ValueError("policy=exp4 needs trials")
        b, m = trials.place.shape
        gain = self.rate * (trials.gained - self.llm_ok * trials.tried)
        # whole parts, so that the same bits come out wherever exp is right to a billionth
        parts = np.rint(np.exp(gain - gain.max(axis=1, keepdims=True)) * 2.0**32)
        share = (1.0 - self.explore) * parts / parts.cumsum(axis=1)[:, -1:] + self.explore / m
        cumulative = share.cumsum(axis=1)
        drawn = np.minimum((cumulative <= (draws.policy * cumulative[:, -1])[:, None]).sum(axis=1), m - 1)
        place = trials.place[np.arange(b), drawn]
        agreeing = np.where(trials.place == place[:, None], share, 0.0).cumsum(axis=1)[:, -1]
        unanimous = (trials.place == place[:, None]).all(axis=1)
        propensity = np.where(unanimous, 1.0, agreeing / cumulative[:, -1])
        return Decision(place, propensity, ~unanimous)
