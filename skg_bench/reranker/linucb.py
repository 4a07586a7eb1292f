"""LinUCB: the best guess of a candidate's rating, and on top what is not known about it yet.

For features x of a candidate, with A = l2 I + sum of x x' and b = sum of x (y - 1/2) over a user's rated turns,

    u(x) = b' A^-1 x + alpha sqrt(x' A^-1 x)

(Li, Chu, Langford and Schapire, WWW 2010, algorithm 1, with one model for all candidates as in Chu, Li, Reyzin and
Schapire, AISTATS 2011). Ratings are centred at 1/2, so that 0 is neither good nor bad. The choice of the largest u is
the policy's, which takes the largest combined score: to let u alone decide, give `score` all the weight of the signals.
A rating counts from when it is known; the LLM's answers are no action that is learned about, it answers where nothing
reaches the policy's threshold. Nothing is drawn: the propensity of a choice is 1, and equal scores go to the lower id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I64, WEIGHT_UNIT, sigmoid, snap, solve
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.types import Scorer, TrainingRows
from skg_bench.reranker.shared.feature_check import check_finite

STEEPNESS = 4.0  # logits per unit of u: near u = 0 a unit of u is a unit of probability


@dataclass(frozen=True)
class LinUCBScorer:
    """Sums of B users' ratings so far."""

    weights: F64  # [B, F] A^-1 b, multiples of 2**-20
    spread: F64  # [B, F, F] alpha^2 A^-1, multiples of 2**-20
    gram: F64  # [B, F, F] sums of x x'
    moment: F64  # [B, F] sums of x (y - 1/2)

    def score(self, features: F64) -> F64:
        """4 u, `[b, K]`, for features `[b, K, F]` of the first b users."""
        b = len(features)
        # multiples of 2**-36 below 2**17, snapped, then again: all sums are exact, in whatever order they are taken
        along = np.einsum("bkf,bfg->bkg", features, self.spread[:b])
        along = np.rint(along / WEIGHT_UNIT) * WEIGHT_UNIT
        variance = np.maximum(np.einsum("bkg,bkg->bk", along, features), 0.0)
        guess = np.einsum("bkf,bf->bk", features, self.weights[:b])
        return STEEPNESS * snap(guess + np.sqrt(variance))


@dataclass(frozen=True)
class LinUCB:
    """Scores by the expected rating, with a bonus for skills about which little is known yet.

    `alpha` is the width of the bonus in standard errors, `l2` the prior in units of rated turns. It learns at refits:
    `refit_every=1` makes it learn from every rating as soon as that is known.
    """

    alpha: float
    l2: float
    window: ClassVar[int] = 0
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if not 0.01 <= self.l2 < float("inf"):
            raise UsageError(f"reranker.l2={self.l2} must be finite and at least 0.01")
        most = (1000.0 * self.l2) ** 0.5  # beyond, sums would not be exact
        if not 0 <= self.alpha <= most:
            raise UsageError(f"reranker.alpha={self.alpha} must lie in [0, {most:g}]; 0 explores nothing")

    def start(self, n_users: int, features: Sequence[str]) -> Scorer | None:
        """Scorer without ratings: candidates differ in how unknown they are."""
        n = len(features)
        gram, moment = np.zeros((n_users, n, n)), np.zeros((n_users, n))
        return LinUCBScorer(*self._solved(gram, moment), gram, moment)

    def fit(self, scorer: Scorer, rows: I64, training: TrainingRows) -> Scorer:
        """A new scorer in which users `rows` have also learned from `training`.

        Raises UsageError for features that are not finite.
        """
        if not isinstance(scorer, LinUCBScorer):
            raise TypeError(f"reranker=linucb continues a LinUCBScorer, not a {type(scorer).__name__}")
        check_finite(training.features)
        weights, spread, gram, moment = (a.copy() for a in (scorer.weights, scorer.spread, scorer.gram, scorer.moment))
        served = np.arange(len(training.place)), training.place
        x, at = training.features[served], rows[training.row]
        before = 0.5 if training.offset is None else sigmoid(training.offset[served])
        np.add.at(gram, at, x[:, :, None] * x[:, None, :])
        np.add.at(moment, at, x * (training.label - before)[:, None])
        weights[rows], spread[rows] = self._solved(gram[rows], moment[rows])
        return LinUCBScorer(weights, spread, gram, moment)

    def _solved(self, gram: F64, moment: F64) -> tuple[F64, F64]:
        """Weights `[R, F]` and spread `[R, F, F]`: exact sums, solved in elementwise operations, on the grid."""
        r, f = moment.shape
        system = gram.copy()
        system[:, np.arange(f), np.arange(f)] += self.l2
        sides = np.concatenate([moment[:, None], np.broadcast_to(np.eye(f), (r, f, f))], axis=1)  # [R, 1 + F, F]
        solution = solve(np.repeat(system, 1 + f, axis=0), sides.reshape(-1, f)).reshape(r, 1 + f, f)
        solution[:, 1:] *= self.alpha**2
        solution = np.rint(solution / WEIGHT_UNIT) * WEIGHT_UNIT
        return np.ascontiguousarray(solution[:, 0]), np.ascontiguousarray(solution[:, 1:])
