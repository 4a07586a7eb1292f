"""Control: answers in proportion to what answered before, whatever the message says."""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.draws import Purpose, fold, gumbel, uniform
from skg_bench.core.types import Candidates, Decision, Draws


@dataclass(frozen=True)
class Proportional:
    """A candidate with weight uses + 1, the fallback with weight 1 + earlier turns of the LLM."""

    def choose(self, candidates: Candidates, draws: Draws) -> Decision:
        """One Gumbel draw per action, keyed by the skill's id and not by its place."""
        weight = np.where(candidates.skill >= 0, candidates.uses + 1.0, 0.0)
        weight = np.concatenate([candidates.llm_turns[:, None] + 1.0, weight], axis=1)
        item = np.concatenate([np.full((len(weight), 1), -1, np.int32), candidates.skill], axis=1)
        base = fold(draws.event, int(Purpose.POLICY_ITEM))
        noise = gumbel(uniform(fold(fold(base[:, None], item), 0)))
        with np.errstate(divide="ignore"):
            action = np.argmax(np.log(weight) + noise, axis=1)
        propensity = weight[np.arange(len(weight)), action] / weight.sum(axis=1)
        return Decision((action - 1).astype(np.int32), propensity, np.ones(len(weight), np.bool_))
