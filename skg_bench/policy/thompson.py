"""Thompson sampling: draws a skill from the posteriors of ratings, so that skills with few ratings get tried."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.deciding import Candidates, Memoryless
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, Bool
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.policy.shared.distributions import certain

RATE_LEVELS = 128  # of a rate of success; against the continuous law, propensities move by less than 0.01
_RATE = (np.arange(RATE_LEVELS) + 0.5) / RATE_LEVELS
_OK, _MISS = np.log(_RATE)[:, None, None], np.log1p(-_RATE)[:, None, None]


@dataclass(frozen=True)
class Thompson(Memoryless):
    """The candidate at `threshold` or above, or the LLM, with the largest rate of success when each is drawn.

    A skill's rate is drawn from the Beta posterior of its rated uses (a partial counts half) under the prior
    (`prior_ok`, `prior_miss`); the LLM's from Beta(`llm_ok`, `llm_miss`), a belief that no rating changes, as policies
    are not shown how the LLM's answers were rated. Thompson 1933; Chapelle and Li 2011.
    """

    threshold: float
    prior_ok: float
    prior_miss: float
    llm_ok: float
    llm_miss: float
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise UsageError(f"policy.threshold={self.threshold} must lie in [0, 1], like the combined score")
        for name in ("prior_ok", "prior_miss", "llm_ok", "llm_miss"):
            if not 0 < getattr(self, name) <= 1e6:
                raise UsageError(f"policy.{name}={getattr(self, name)} must be above 0, and at most a million")

    def propensities(self, candidates: Candidates, state: None) -> F64:
        """Probabilities to have the largest rate, exact for rates on RATE_LEVELS levels; of equal rates the LLM wins,
        then the lower id.
        """
        b, k = candidates.skill.shape
        share = certain(np.full(b, -1, np.int32), k)
        some = np.flatnonzero((candidates.combined >= self.threshold).any(axis=1))  # the others leave nothing to chance
        if not len(some):
            return share
        llm = np.ones((len(some), 1))
        item = np.concatenate([-llm, candidates.skill[some]], axis=1)
        listed = np.concatenate([llm > 0, candidates.combined[some] >= self.threshold], axis=1)
        ok, rated = candidates.ok[some], candidates.rated[some]
        cumulative = _cumulative(
            np.concatenate([llm * self.llm_ok, self.prior_ok + ok], axis=1),
            np.concatenate([llm * self.llm_miss, self.prior_miss + rated - ok], axis=1),
        )
        share[some] = _winning(cumulative / cumulative[-1], listed, np.where(listed, item, np.inf))
        return share


def _cumulative(ok: F64, miss: F64) -> F64:
    """Beta posteriors `[n, A]` as cumulative sums of whole parts over the levels, `[RATE_LEVELS, n, A]`: the same bits
    wherever exp is right to a billionth, as sums below 2**40 are exact.
    """
    log = (ok - 1.0) * _OK + (miss - 1.0) * _MISS
    parts: F64 = np.rint(np.exp(log - log.max(axis=0)) * 2.0**32).cumsum(axis=0)
    return parts


def _winning(at_most: F64, listed: Bool, item: F64) -> F64:
    """Probability `[n, A]` that each action has the largest level, given the distribution functions `at_most`
    `[RATE_LEVELS, n, A]` of the levels; of equal levels the lower `item` wins.

    The sum over an action's levels of the chance that those with lower items stay strictly below and the others at most
    equal: prefix and suffix products over the actions in order of item.
    """
    order = np.argsort(item, axis=1, kind="stable")[None]
    here = np.take_along_axis(listed[None], order, axis=2)
    equal = np.where(here, np.take_along_axis(at_most, order, axis=2), 1.0)
    below = np.concatenate([np.zeros((1, *listed.shape)), at_most[:-1]])
    below = np.where(here, np.take_along_axis(below, order, axis=2), 1.0)
    ones = np.ones((len(at_most), len(listed), 1))
    lower = np.concatenate([ones, below[:, :, :-1]], axis=2).cumprod(axis=2)
    higher = np.concatenate([ones, equal[:, :, :0:-1]], axis=2).cumprod(axis=2)[:, :, ::-1]
    win = ((equal - below) * lower * higher).cumsum(axis=0)[-1]
    share = np.empty(listed.shape)
    np.put_along_axis(share, order[0], np.where(here[0], win, 0.0), axis=1)
    return share
