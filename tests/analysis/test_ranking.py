"""Ranking and calibration against scikit-learn, and against their definitions written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as oracle
from sklearn.calibration import calibration_curve

from skg_bench.analysis import ranking
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
def test_areas_are_scikit_learns_with_and_without_ties(seed: int, n: int, levels: int) -> None:
    score, positive = scored(seed, n, levels)
    assert ranking.auroc(score, positive) == near(oracle.roc_auc_score(positive, score))
    assert ranking.aupr(score, positive) == near(oracle.average_precision_score(positive, score))
    assert ranking.brier(score, positive) == near(oracle.brier_score_loss(positive, score))


@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 12), st.integers(1, 15))
@settings(max_examples=60, deadline=None)
def test_ndcg_is_scikit_learns(seed: int, n: int, width: int, k: int) -> None:
    gain = np.random.default_rng(seed).integers(0, 4, (n, width + 1)).astype(float)
    order = np.tile(-np.arange(width + 1.0), (n, 1))  # sklearn ranks by score: the row's own order
    assert ranking.ndcg(gain, k) == near(oracle.ndcg_score(gain, order, k=k))


@given(st.integers(0, 10_000), st.integers(1, 20), st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_calibration_error_uses_scikit_learns_bins(seed: int, bins: int, each: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.random(bins * each)
    y = rng.random(len(p)) < p**2
    share, mean = calibration_curve(y, p, n_bins=bins, strategy="quantile")
    assert ranking.ece(p, y, bins, equal="mass") == near(float(np.abs(share - mean).mean()), abs=1e-12)
    share, mean = calibration_curve(y, p, n_bins=bins, strategy="uniform")
    sizes = np.bincount(np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], p))
    assert ranking.ece(p, y, bins) == near(float((np.abs(share - mean) * sizes[sizes > 0]).sum() / len(p)), abs=1e-12)


def test_equal_probabilities_share_a_bin() -> None:
    p, y = np.repeat([0.2, 0.6], [30, 10]), np.tile([1.0, 0.0, 0.0, 1.0], 10)
    expected = (abs(p[:30].sum() - y[:30].sum()) + abs(p[30:].sum() - y[30:].sum())) / 40
    assert ranking.ece(p, y, 7, equal="mass") == ranking.ece(p, y, 7) == near(expected)


@given(st.integers(0, 10_000), st.integers(1, 60), st.sampled_from([3, 1000]))
@settings(max_examples=60, deadline=None)
def test_risk_and_precision_at_every_threshold_are_what_one_counts(seed: int, n: int, levels: int) -> None:
    score, right = scored(seed, n + 1, levels)
    coverage, risk = ranking.risk_coverage(score, ~right)
    area = precise = 0.0
    for at, threshold in enumerate(sorted(set(score), reverse=True)):
        hits = score >= threshold
        assert (coverage[at], risk[at]) == near((hits.mean(), (hits & ~right).sum() / hits.sum()))
        area += (score == threshold).mean() * (hits & ~right).sum() / hits.sum()
        precise += (score == threshold).mean() * (hits & right).sum() / hits.sum()
    assert len(coverage) == len(set(score))
    assert ranking.aurc(score, ~right) == near(area)
    assert ranking.pchr_auc(score, right) == near(precise)


def test_the_order_of_rows_changes_nothing() -> None:
    score, positive = scored(1, 500, 7)
    order = np.random.default_rng(2).permutation(500)
    for metric in (ranking.auroc, ranking.aupr, ranking.aurc, ranking.pchr_auc, ranking.ece, ranking.brier):
        assert metric(score, positive) == near(metric(score[order], positive[order]), abs=1e-12)


def test_a_perfect_cache_has_the_area_that_its_share_of_answerable_requests_allows() -> None:
    """It is p (1 - ln p) for a share p that can be right: all of it first, then precision p / c."""
    n, p = 200_000, 0.3
    right = np.arange(n) < p * n
    assert ranking.pchr_auc(-np.arange(n, dtype=float), right) == near(p * (1 - np.log(p)), abs=1e-5)


def test_requests_with_nothing_to_serve_are_never_hits() -> None:
    score = np.array([0.9, 0.8, np.nan, np.nan])
    assert ranking.pchr_auc(score, np.array([True, False, True, True])) == near((1 + 1 / 2) / 4)
    assert ranking.pchr_auc(np.full(3, np.nan), np.zeros(3, bool)) == 0.0


def test_the_first_relevant_rank_counts() -> None:
    relevant = np.array([[True, True, False], [False, False, True], [False, False, False]])
    assert ranking.mrr(relevant) == near((1 + 1 / 3 + 0) / 3)


def test_what_is_undefined_is_nan() -> None:
    none, some = np.zeros(0), np.array([0.1, 0.2])
    assert np.isnan(ranking.auroc(some, np.array([True, True])))
    assert np.isnan(ranking.aupr(some, np.array([False, False])))
    for metric in (ranking.auroc, ranking.aupr, ranking.aurc, ranking.pchr_auc, ranking.ece, ranking.brier):
        assert np.isnan(metric(none, none))
    assert np.isnan(ranking.ndcg(np.zeros((0, 4)), 3))
    assert np.isnan(ranking.mrr(np.zeros((0, 4), np.bool_)))


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(UsageError, match="2 scores and 3 outcomes"):
        ranking.auroc(np.zeros(2), np.zeros(3))
    with pytest.raises(UsageError, match="1 of 2 scores are missing"):
        ranking.aupr(np.array([0.1, np.nan]), np.ones(2))
    with pytest.raises(UsageError, match="between 0 and 1"):
        ranking.ece(np.array([0.5, 1.2]), np.ones(2))
    with pytest.raises(UsageError, match="bins=0"):
        ranking.ece(np.array([0.5]), np.ones(1), 0)
    with pytest.raises(UsageError, match="k=0"):
        ranking.ndcg(np.ones((2, 2)), 0)
