"""A weight vector for each user, fitted on that user's rated turns (SKG paper, sections 2.2 and 3, step 4).

One Newton step from zero of L2-penalised logistic regression on the served skills: ``w = (X'X / 4 + l2 I)^-1 X'(y -
1/2)``, the one-step estimator (Bickel, JASA 1975). Features are multiples of 2**-16, so X'X and X'y are exact sums, in
any order; they are all that is kept of the past, which makes a refit independent of the number of turns. The system is
solved by elimination in elementwise operations, so that its bits do not depend on the BLAS.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I64, WEIGHT_UNIT, sigmoid, solve
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.types import Scorer, TrainingRows
from skg_bench.reranker.shared.feature_check import check_finite


@dataclass(frozen=True)
class LinearScorer:
    """Weights and sufficient statistics of B users."""

    weights: F64  # [B, F] multiples of 2**-20
    gram: F64  # [B, F, F] sums of x x'
    moment: F64  # [B, F] sums of x (y - 1/2); the probability of the offset in place of 1/2, where there is one

    def score(self, features: F64) -> F64:
        """Log-odds of success, `[b, K]`, for features `[b, K, F]` of the first b users."""
        # multiples of 2**-36 below 2**17: the sum is exact in whatever order it is taken
        logits: F64 = np.einsum("bkf,bf->bk", features, self.weights[: len(features)])
        return logits


@dataclass(frozen=True)
class Linear:
    """Scores by a weighted sum of features, with weights for each user fitted by logistic regression on ratings.

    `l2` is the strength of the penalty, in units of rated turns.
    """

    l2: float
    window: ClassVar[int] = 0
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if not self.l2 > 0:
            raise UsageError(f"reranker.l2={self.l2} must be above 0")

    def start(self, n_users: int, features: Sequence[str]) -> Scorer | None:
        """Zero weights: every candidate scores 0.5."""
        n = len(features)
        return LinearScorer(np.zeros((n_users, n)), np.zeros((n_users, n, n)), np.zeros((n_users, n)))

    def fit(self, scorer: Scorer, rows: I64, training: TrainingRows) -> Scorer:
        """A new scorer in which users `rows` have also learned from `training`.

        Raises UsageError for features that are not finite.
        """
        if not isinstance(scorer, LinearScorer):
            raise TypeError(f"reranker=linear continues a LinearScorer, not a {type(scorer).__name__}")
        gram, moment, weights = scorer.gram.copy(), scorer.moment.copy(), scorer.weights.copy()
        check_finite(training.features)
        served = np.arange(len(training.place)), training.place
        x, at = training.features[served], rows[training.row]
        before = 0.5 if training.offset is None else sigmoid(training.offset[served])
        np.add.at(gram, at, x[:, :, None] * x[:, None, :])
        np.add.at(moment, at, x * (training.label - before)[:, None])
        system = gram[rows] * 0.25
        system[:, np.arange(x.shape[1]), np.arange(x.shape[1])] += self.l2
        weights[rows] = np.rint(solve(system, moment[rows]) / WEIGHT_UNIT) * WEIGHT_UNIT
        return LinearScorer(weights, gram, moment)
