"""Thompson sampling: who answers best is drawn from what ratings say so far, so that who is little known gets tried."""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.draws import Purpose, fold, uniform
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I32, I64, Bool
from skg_bench.core.types import Candidates, Decision, Draws

LEVELS = 128  # of a rate of success; against the continuous law, propensities move by less than 0.01
_RATE = (np.arange(LEVELS) + 0.5) / LEVELS
_OK, _MISS = np.log(_RATE)[:, None, None], np.log1p(-_RATE)[:, None, None]


@dataclass(frozen=True)
class Thompson:
    """Of the candidates at `threshold` or above and the LLM, who has the largest rate of success when each is drawn.

    A skill's rate is drawn from the Beta posterior of its rated uses (a partial counts half) under the prior
    (`prior_ok`, `prior_miss`); the LLM's from Beta(`llm_ok`, `llm_miss`), a belief that no rating changes, as policies
    are not shown how the LLM's answers were rated. Thompson 1933; Chapelle and Li 2011.
    """

    threshold: float
    prior_ok: float
    prior_miss: float
    llm_ok: float
    llm_miss: float

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise UsageError(f"policy.threshold={self.threshold} must lie in [0, 1], like the combined score")
        for name in ("prior_ok", "prior_miss", "llm_ok", "llm_miss"):
            if not 0 < getattr(self, name) <= 1e6:
                raise UsageError(f"policy.{name}={getattr(self, name)} must be above 0, and at most a million")

    def choose(self, candidates: Candidates, draws: Draws) -> Decision:
        """One uniform per action, keyed by the skill's id; of equal rates the LLM wins, then the lower id.

        Rates are drawn from posteriors on LEVELS levels, in whole parts; the propensity sums over these levels, and is
        exact for what is drawn.
        """
        b = len(candidates.skill)
        decision = Decision(np.full(b, -1, np.int32), np.ones(b), np.zeros(b, np.bool_))
        some = np.flatnonzero((candidates.combined >= self.threshold).any(axis=1))  # the others have nothing to draw
        if not len(some):
            return decision
        llm = np.ones((len(some), 1))
        item = np.concatenate([-llm, candidates.skill[some]], axis=1).astype(np.int32)
        there = np.concatenate([llm > 0, candidates.combined[some] >= self.threshold], axis=1)
        ok, rated = candidates.ok[some], candidates.rated[some]
        cumulative = _cumulative(
            np.concatenate([llm * self.llm_ok, self.prior_ok + ok], axis=1),
            np.concatenate([llm * self.llm_miss, self.prior_miss + rated - ok], axis=1),
        )
        u = uniform(fold(fold(fold(draws.event[some], int(Purpose.POLICY_ITEM))[:, None], item), 0))
        level = (cumulative <= u * cumulative[-1]).sum(axis=0)
        key = np.where(there, (level.astype(np.int64) << 32) - item, np.iinfo(np.int64).min)
        action = key.argmax(axis=1)
        decision.place[some] = action - 1
        decision.propensity[some] = _propensity(cumulative / cumulative[-1], there, item, action)
        decision.explored[some] = True
        return decision


def _cumulative(ok: F64, miss: F64) -> F64:
    """Beta posteriors `[n, A]` as cumulative sums of whole parts over the levels, `[LEVELS, n, A]`: the same bits
    wherever exp is right to a billionth, as sums below 2**40 are exact.
    """
    log = (ok - 1.0) * _OK + (miss - 1.0) * _MISS
    parts: F64 = np.rint(np.exp(log - log.max(axis=0)) * 2.0**32).cumsum(axis=0)
    return parts


def _propensity(below: F64, there: Bool, item: I32, action: I64) -> F64:
    """Probability `[n]` that `action` wins: the sum over its levels of the chance that all others stay below."""
    n, n_actions = item.shape
    rows = np.arange(n)
    strictly = np.concatenate([np.zeros((1, n, n_actions)), below[:-1]])
    win = below[:, rows, action] - strictly[:, rows, action]
    own = item[rows, action]
    for a in range(n_actions):
        beaten = np.where(item[:, a] > own, below[:, :, a], strictly[:, :, a])  # it loses a tie, or must be below
        win = np.where(there[:, a] & (action != a), win * beaten, win)
    total: F64 = np.minimum(win.cumsum(axis=0)[-1], 1.0)
    return total
