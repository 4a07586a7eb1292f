"""Placebo: the recipe inside is told of each rated turn what the user said of another one.

The rating is that of a random rated turn of the same user among those known before; the first keeps its own. So turns,
features and times of refits stay, and so does how satisfied a user is on the whole, but what pleased them is gone. It
is not one permutation of a whole history, as that would need ratings of the future, or would have to take back what
was taught.

One `draw` against another is nothing by construction: both do the same with their own keyed uniforms, so that the
expected difference is 0 for every metric. Against `reranker=identity` it is not: a recipe that hears ratings at random
still learns how satisfied the user is, and that moves every score with respect to the threshold.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from skg_bench.core.batch import nth
from skg_bench.core.draws import Purpose, fold, uniform
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I64
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.types import Reranker, Scorer, TrainingRows


@dataclass(frozen=True)
class PermutedScorer:
    """Scorer of the recipe inside, and the ratings that others may be given."""

    scorer: Scorer
    label: F64  # [B, N] ratings of each user in the order in which they became known
    n: I64  # [B] how many there are

    def score(self, features: F64) -> F64:
        """As the scorer inside does."""
        return self.scorer.score(features)


@dataclass(frozen=True)
class Permuted:
    """`reranker`, given ratings of other turns; `draw`: which of many such choices."""

    reranker: Reranker
    draw: int
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if self.draw < 0:
            raise UsageError(f"reranker.draw={self.draw} must not be negative")

    @property
    def window(self) -> int:
        """Window of the recipe inside."""
        return self.reranker.window

    def start(self, n_users: int, features: Sequence[str]) -> Scorer | None:
        """Scorer that the recipe inside starts with."""
        scorer = self.reranker.start(n_users, features)
        return None if scorer is None else PermutedScorer(scorer, np.zeros((n_users, 0)), np.zeros(n_users, np.int64))

    def fit(self, scorer: Scorer, rows: I64, training: TrainingRows) -> Scorer:
        """Scorer that the recipe inside makes of these turns with ratings of others."""
        if not isinstance(scorer, PermutedScorer):
            raise TypeError(f"reranker=permuted continues a PermutedScorer, not a {type(scorer).__name__}")
        before = scorer.n[rows] * (self.window == 0)  # with a window the turns before come along each time
        user, index = rows[training.row], before[training.row] + nth(training.row)
        label, n = scorer.label, scorer.n.copy()
        n[rows] = before + np.bincount(training.row, minlength=len(rows))
        label = np.pad(label, ((0, 0), (0, max(int(n.max()) - label.shape[1], 0))))
        label[user, index] = training.label
        u = uniform(fold(fold(fold(training.event, int(Purpose.PERMUTED)), self.draw), 0))
        other = np.minimum((u * index).astype(np.int64), np.maximum(index - 1, 0))
        fitted = self.reranker.fit(scorer.scorer, rows, replace(training, label=label[user, other]))
        return PermutedScorer(fitted, label, n)
