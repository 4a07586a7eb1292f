"""The area under the ROC curve against scikit-learn, and its bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.analysis.statistics import ranking
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, Bool

near = pytest.approx


def scored(seed: int, n: int, levels: int) -> tuple[F64, Bool]:
    """Scores with ties (`levels` distinct values) and whether each row is positive; both kinds occur."""
    rng = np.random.default_rng(seed)
    score = rng.integers(0, levels, n) / levels
    positive = rng.random(n) < 0.2 + 0.6 * score
    positive[:2] = (True, False)
    return score, positive


@given(st.integers(0, 10_000), st.integers(2, 400), st.sampled_from([3, 50, 10_000]))
@settings(max_examples=60, deadline=None)
def test_the_area_is_scikit_learns_with_and_without_ties(seed: int, n: int, levels: int) -> None:
    from sklearn.metrics import roc_auc_score  # takes half a second, in each test process that collects this module

    score, positive = scored(seed, n, levels)
    assert ranking.auroc(score, positive) == near(roc_auc_score(positive, score))


def test_the_order_of_rows_changes_nothing() -> None:
    score, positive = scored(1, 500, 7)
    order = np.random.default_rng(2).permutation(500)
    assert ranking.auroc(score, positive) == near(ranking.auroc(score[order], positive[order]), abs=1e-12)


def test_what_is_undefined_is_nan() -> None:
    assert np.isnan(ranking.auroc(np.array([0.1, 0.2]), np.array([True, True])))
    assert np.isnan(ranking.auroc(np.array([0.1, 0.2]), np.array([False, False])))
    assert np.isnan(ranking.auroc(np.zeros(0), np.zeros(0)))


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(UsageError, match="2 scores and 3 outcomes"):
        ranking.auroc(np.zeros(2), np.zeros(3))
    with pytest.raises(UsageError, match="1 of 2 scores are missing"):
        ranking.auroc(np.array([0.1, np.nan]), np.ones(2))
