"""LambdaRank on boosted trees for each user (Burges, MSR-TR-2010-82), fitted by LightGBM; K28.

Groups are turns: the candidates of a shortlist and, as one more, the fallback with all features 0. The served skill has
its rating (ok 2, partial 1, miss 0). All others stand between, at 1: as a message is about one skill, an ok says that
the served one was better than any of them, a miss that it was no better than any, and a partial neither. A score is the
difference to the fallback's, so it is comparable between turns.

A refit goes on with `more` trees over the user's last `window` rated turns, beginning at the scores that the user's
trees give now; one that would have above `most` trees begins afresh, with `trees`. Trees are kept as arrays, and their
leaves are multiples of 2**-20, so that scores are exact sums. LightGBM does not promise the same trees on every kind
of processor.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from skg_bench.core.errors import UsageError, install_hint
from skg_bench.core.grid import F64, I32, I64, WEIGHT_UNIT
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.types import Scorer, TrainingRows
from skg_bench.reranker.shared.feature_check import check_finite

_DEPTH = 3
_SPLITS, _LEAVES = 2**_DEPTH - 1, 2**_DEPTH
_NEVER = 2.0  # a threshold above every feature: all go left
_PARAMETERS = {
    "objective": "lambdarank", "label_gain": [0, 1, 3], "max_depth": _DEPTH, "num_leaves": _LEAVES, "max_bin": 63,
    "deterministic": True, "num_threads": 1, "force_col_wise": True, "seed": 0, "use_missing": False,
    "feature_pre_filter": False, "verbose": -1,
}  # fmt: skip


@dataclass(frozen=True)
class TreeScorer:
    """The trees of B users, each a complete tree of depth 3, nodes in breadth-first order."""

    trees: I32  # [B] how many a user has; those beyond add 0
    feature: I32  # [B, T, 7] column to look at
    threshold: F64  # [B, T, 7] who is above goes right
    leaf: F64  # [B, T, 8] multiples of 2**-20; the fallback's path adds 0

    def score(self, features: F64) -> F64:
        """Sums over the trees, `[b, K]`, for features `[b, K, F]` of the first b users."""
        (b, k, f), t = features.shape, int(self.trees[: len(features)].max(initial=0))
        flat = np.ascontiguousarray(features).reshape(-1)
        row = np.arange(b * k).reshape(b, k, 1) * f
        tree = (np.arange(b)[:, None] * self.leaf.shape[1] + np.arange(t))[:, None]  # [b, 1, T]
        node = np.zeros((b, k, t), np.int64)
        for _ in range(_DEPTH):
            at = tree * _SPLITS + node
            node = 2 * node + 1 + (flat.take(row + self.feature.take(at)) > self.threshold.take(at))
        logits: F64 = self.leaf.take(tree * _LEAVES + node - _SPLITS).sum(axis=2)
        return logits


@dataclass(frozen=True)
class LambdaRank:
    """Scores by small decision trees, fitted for each user with LightGBM to put what the user rated well first."""

    trees: int
    more: int
    most: int
    rate: float
    min_rows: int
    l2: float
    window: int
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        for name in ("trees", "more", "min_rows", "window"):
            if getattr(self, name) < 1:
                raise UsageError(f"reranker.{name}={getattr(self, name)} must be at least 1")
        if self.most < self.trees:
            raise UsageError(f"reranker.most={self.most} must be at least reranker.trees={self.trees}")
        if not 0 < self.rate <= 1:
            raise UsageError(f"reranker.rate={self.rate} must be above 0 and at most 1")
        if not 0 <= self.l2 < 1e6:
            raise UsageError(f"reranker.l2={self.l2} must not be negative")
        if find_spec("lightgbm") is None:
            raise UsageError(f"reranker=lambdarank needs lightgbm: {install_hint('lightgbm')}")

    def start(self, n_users: int, features: Sequence[str]) -> Scorer | None:
        """No trees: every candidate scores 0.5."""
        shape = (n_users, self.most)
        feature, threshold = np.zeros((*shape, _SPLITS), np.int32), np.full((*shape, _SPLITS), _NEVER)
        return TreeScorer(np.zeros(n_users, np.int32), feature, threshold, np.zeros((*shape, _LEAVES)))

    def fit(self, scorer: Scorer, rows: I64, training: TrainingRows) -> Scorer:
        """A new scorer in which users `rows` have gone on to learn from `training`.

        Raises UsageError for features that are not finite.
        """
        if not isinstance(scorer, TreeScorer):
            raise TypeError(f"reranker=lambdarank continues a TreeScorer, not a {type(scorer).__name__}")
        check_finite(training.features)
        new = TreeScorer(scorer.trees.copy(), scorer.feature.copy(), scorer.threshold.copy(), scorer.leaf.copy())
        for r, row in enumerate(rows.tolist()):
            had = int(new.trees[row]) if 0 < new.trees[row] <= self.most - self.more else 0
            span = slice(row, row + 1)
            mine = TreeScorer(np.array([had], np.int32), new.feature[span], new.threshold[span], new.leaf[span])
            feature, threshold, leaf = self._grow(
                training.rows(training.row == r), mine, self.more if had else self.trees
            )
            added = slice(had, had + len(leaf))
            new.trees[row] = added.stop
            new.leaf[row, added.stop :] = 0.0  # of those before, if these are the first
            new.feature[row, added], new.threshold[row, added], new.leaf[row, added] = feature, threshold, leaf
        return new

    def _grow(self, training: TrainingRows, mine: TreeScorer, count: int) -> tuple[I32, F64, F64]:
        """`count` new trees of one user, who has `mine`, as arrays `[count, 7 or 8]`."""
        import lightgbm

        n, k, f = training.features.shape
        x, score = np.zeros((n, k + 1, f)), np.zeros((n, k + 1))
        x[:, :k] = training.features
        score[:, :k] = mine.score(training.features.reshape(1, n * k, f)).reshape(n, k)
        if training.offset is not None:
            score[:, :k] += training.offset
        label = np.ones((n, k + 1))
        label[np.arange(n), training.place] = 2.0 * training.label
        kept = np.ones((n, k + 1), np.bool_)
        kept[:, :k] = np.arange(k) < training.candidates[:, None]
        parameters = _PARAMETERS | {"learning_rate": self.rate, "min_data_in_leaf": self.min_rows, "lambda_l2": self.l2}
        data = lightgbm.Dataset(
            x[kept], label[kept], group=training.candidates + 1, init_score=score[kept], params=parameters
        )
        booster = lightgbm.Booster(parameters, data)
        for _ in range(count):
            booster.update()
        return _arrays(booster.model_to_string())


def _arrays(model: str) -> tuple[I32, F64, F64]:
    """LightGBM's text as complete trees: features, thresholds, leaves."""
    texts = model.split("\nTree=")[1:]
    feature, threshold = np.zeros((len(texts), _SPLITS), np.int32), np.full((len(texts), _SPLITS), _NEVER)
    leaf = np.zeros((len(texts), _LEAVES))
    for t, text in enumerate(texts):
        tree = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        column: dict[str, Any] = {name: tree.get(name, "").split() for name in _COLUMNS}
        _place(column, 0 if column["split_feature"] else -1, 0, (feature[t], threshold[t], leaf[t]))
    leaf = np.rint(leaf / WEIGHT_UNIT) * WEIGHT_UNIT
    return feature, threshold, leaf - leaf[:, :1]


_COLUMNS = ("split_feature", "threshold", "left_child", "right_child", "leaf_value")


def _place(tree: dict[str, list[str]], node: int, at: int, complete: tuple[I32, F64, F64]) -> None:
    """Put a node (leaves are -1, -2, ...) at place `at` of a complete tree: features, thresholds, leaves."""
    feature, threshold, leaf = complete
    if at >= _SPLITS:
        leaf[at - _SPLITS] = float(tree["leaf_value"][-node - 1])
        return
    left = right = node
    if node >= 0:
        feature[at], threshold[at] = int(tree["split_feature"][node]), float(tree["threshold"][node])
        left, right = int(tree["left_child"][node]), int(tree["right_child"][node])
    _place(tree, left, 2 * at + 1, complete)
    _place(tree, right, 2 * at + 2, complete)
