"""A threshold for each skill, learned online, with a bound on errors *per request*: after vCache (Schroeder et al.,
arXiv 2502.03771, sections 4.1 to 4.3).

Whenever the LLM answers, its answer is compared with the stored one of the nearest skill, which gives that skill an
observation: similarity s, and whether both said the same. The chance that they do is taken to be logistic,

    L(s; t, g) = 1 / (1 + exp(-g (s - t))),

with a threshold t and a steepness g of the skill's own. If a is a lower bound of that chance for the message at hand,
the LLM is asked with probability

    tau = max(0, 1 - delta / (1 - a)),            so that (1 - tau) (1 - a) <= delta:

the skill answers, and is wrong, with probability delta at most.

**The bound.** The paper takes the least tau over all confidences 1 - e of a band of t around its maximum-likelihood
estimate, a = max_e (1 - e) L(s; t_e, g). Here (t, g) has a posterior on a grid under a flat prior, and
a = max_x x P(L >= x), the same form, which by Markov's inequality is never above the posterior mean of L. It needs no
variances for skills whose observations a threshold separates (the published code has a table of simulated ones for
these), and with counts and snapped logarithms it is the same bits everywhere.

**What the bound assumes.** Messages that have the same nearest skill are alike (drawn independently from one law that
does not change): an answer that gets stale breaks it. The logistic family holds. What the LLM says counts as the
truth: where both are wrong in the same way nobody notices, where the LLM alone is wrong an observation is lost.
Comparing makes no mistakes; here it does, and has a price (`comparison`). The bound is on errors beyond the LLM's own.

**The ceiling of warm-up.** A skill answers nothing before `least` comparisons, so requests whose nearest skill has been
nearest in fewer of the LLM's turns cannot be hits at all, however sure one could be. A renewed answer begins anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from skg_bench.core.batch import RenewedSkills
from skg_bench.core.deciding import Candidates, Decision
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import AGREES, KnownFeedback
from skg_bench.core.grid import F64, I32, I64, Bool, snap
from skg_bench.core.growing import wider
from skg_bench.core.reach import REACHES_NOTHING, Reaches

BINS = 128  # of similarity and of the threshold: steps of 1/128
STEEPNESSES = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)  # from hardly a threshold to a step


@dataclass(frozen=True, slots=True)
class ShadowLabels:
    """Comparisons of the LLM's answers with the nearest skill's stored ones, at most one a turn, for B users."""

    skill: I32  # [B, T] the nearest skill, -1: nothing was compared, or its answer has been replaced since
    similarity: F64  # [B, T] of that skill to the message
    same: Bool  # [B, T] both answers said the same


@dataclass(frozen=True)
class VCache:
    """The nearest skill answers, except with the probability tau that keeps errors per request below `delta`."""

    delta: float
    least: int
    reads: ClassVar[Sequence[str]] = ("agrees",)
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise UsageError(
                f"policy.delta={self.delta} must lie inside (0, 1): the share of requests that may go wrong"
            )
        if self.least < 1:
            raise UsageError(f"policy.least={self.least} must be at least 1: a skill is compared before it answers")

    def start(self, n: int) -> ShadowLabels:
        """Memory without comparisons."""
        return ShadowLabels(np.full((n, 8), -1, np.int32), np.zeros((n, 8)), np.zeros((n, 8), np.bool_))

    def propensities(self, candidates: Candidates, state: ShadowLabels) -> F64:
        """The nearest skill with the probability that the bound leaves it."""
        b, k = candidates.skill.shape
        nearest = candidates.skill[:, 0]
        compared = (state.skill == nearest[:, None]) & (nearest >= 0)[:, None]
        asking = np.ones(b)
        enough = np.flatnonzero(compared.sum(axis=1) >= self.least)
        if len(enough):
            labels = state.similarity[enough], state.same[enough], compared[enough]
            bound = lower_bound(candidates.similarity[enough, 0], *labels)
            asking[enough] = np.maximum(0.0, 1.0 - self.delta / np.maximum(1.0 - bound, self.delta))
        share = np.zeros((b, 1 + k))
        share[:, 0], share[:, 1] = asking, 1.0 - asking
        return share

    def learn(
        self, state: ShadowLabels, decision: Decision, known: KnownFeedback, renewed: RenewedSkills
    ) -> ShadowLabels:
        """Adds the comparisons of this turn; those with answers that were replaced are forgotten."""
        t = decision.turn
        state = ShadowLabels(
            wider(state.skill, t + 1, -1), wider(state.similarity, t + 1, 0.0), wider(state.same, t + 1, False)
        )
        compared = known.rows((known.kind == AGREES) & (known.turn == t))
        state.skill[compared.row, t] = decision.candidates.skill[compared.row, 0]
        state.similarity[compared.row, t] = decision.candidates.similarity[compared.row, 0]
        state.same[compared.row, t] = compared.value == 1
        row, skill = renewed.row, renewed.skill
        which, turn = np.nonzero(state.skill[row] == skill[:, None])
        state.skill[row[which], turn] = -1
        return state


def lower_bound(similarity: F64, earlier: F64, same: Bool, compared: Bool) -> F64:
    """The largest x P(L >= x) of each row, `[n]` in [0, 1], a multiple of 2**-16: a bound of the chance that the stored
    answer of the nearest skill is right now.

    `similarity` `[n]` of the skill now; `earlier` and `same` `[n, T]`, its similarity at earlier turns and whether both
    answers said the same, where `compared`.
    """
    height, order, log_same, log_other = _grid()
    row, turn = np.nonzero(compared)
    step, alike = _step(earlier[row, turn]), same[row, turn]
    counts = np.zeros((2, len(similarity), BINS + 1))
    np.add.at(counts, (alike.astype(np.int64), row, step), 1.0)
    log = counts[1] @ log_same + counts[0] @ log_other  # [n, C] whole multiples of 2**-16: exact in any order
    weight = np.rint(np.exp(log - log.max(axis=1, keepdims=True)) * 2.0**32)
    now = _step(similarity)
    above = np.take_along_axis(weight, order[now], axis=1).cumsum(axis=1)  # whole numbers below 2**43
    return snap((height[now] * (above / above[:, -1:])).max(axis=1))


def _step(similarity: F64) -> I64:
    steps: I64 = np.rint(similarity * BINS).astype(np.int64)
    return steps


@lru_cache(maxsize=1)
def _grid() -> tuple[F64, I64, F64, F64]:
    """Grid over the cells (threshold, steepness), for each similarity: L from high to low and the cells in that order;
    log L and log (1 - L) in the cells' own order; `[BINS + 1, C]`, on the 2**-16 grid.
    """
    steps: F64 = np.arange(BINS + 1) / BINS
    z = ((steps[:, None] - steps)[:, :, None] * np.array(STEEPNESSES)).reshape(BINS + 1, -1)
    likelihood = snap(1.0 / (1.0 + np.exp(-z)))
    order = np.argsort(-likelihood, axis=1, kind="stable")
    height = np.take_along_axis(likelihood, order, axis=1)
    return height, order, snap(-np.logaddexp(0.0, -z)), snap(-np.logaddexp(0.0, z))
