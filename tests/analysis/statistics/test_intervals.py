"""Means over users with two kinds of interval, against other people's arithmetic and against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skg_bench.analysis.statistics.intervals import Cells, Estimate, estimates, holm
from skg_bench.core.grid import F64


def _cells(seed: int, users: int = 12, intents: int = 7) -> tuple[Cells, F64, F64]:
    rng = np.random.default_rng(seed)
    user, intent = np.nonzero(rng.random((users, intents)) < 0.6)
    over = rng.integers(0, 6, user.size).astype(float)
    return Cells(user, intent, users, intents), rng.binomial(over.astype(int), 0.4).astype(float), over


def _per_user(cells: Cells, count: F64, over: F64) -> F64:
    """Users' ratios, NaN without a denominator."""
    total = np.array([over[cells.user == u].sum() for u in range(cells.n_users)])
    hits = np.array([count[cells.user == u].sum() for u in range(cells.n_users)])
    return np.where(total > 0, hits / np.where(total > 0, total, 1), np.nan)


def test_the_figure_is_the_mean_over_users_of_their_ratio_and_users_without_one_are_counted() -> None:
    cells = Cells(np.array([0, 0, 1, 2]), np.array([0, 1, 0, 1]), 4, 2)
    (estimate,) = estimates(cells, [np.array([1.0, 3.0, 10.0, 0.0])], [[np.array([1.0, 0.0, 5.0, 0.0])]])
    assert estimate.mean == (1 / 4 + 5 / 10) / 2  # not (1 + 0 + 5) / 14
    assert (estimate.n_users, estimate.excluded) == (2, 2)


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_the_interval_for_these_requests_is_students_over_users(seed: int) -> None:
    cells, count, over = _cells(seed)
    (estimate,) = estimates(cells, [over], [[count]])
    ratios = _per_user(cells, count, over)
    test = stats.ttest_1samp(ratios[~np.isnan(ratios)], 0.0)
    interval = test.confidence_interval(0.95)
    assert estimate.interval(new=False) == pytest.approx((interval.low, interval.high))
    assert estimate.p(new=False) == pytest.approx(test.pvalue, rel=1e-6)


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_a_difference_is_a_paired_t_test(seed: int) -> None:
    cells, count, over = _cells(seed)
    other = np.random.default_rng(seed + 1).binomial(over.astype(int), 0.6).astype(float)
    (estimate,) = estimates(cells, [over, over], [[count, other]])
    a, b = _per_user(cells, count, over), _per_user(cells, other, over)
    kept = ~np.isnan(a)
    assert estimate.p(new=False) == pytest.approx(stats.ttest_rel(a[kept], b[kept]).pvalue, rel=1e-6)
    (same,) = estimates(cells, [over], [[count - other]])
    assert (same.mean, same.se_new, same.df_new) == pytest.approx((estimate.mean, estimate.se_new, estimate.df_new))


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_the_interval_for_new_requests_is_the_formula_written_out(seed: int) -> None:
    cells, count, over = _cells(seed)
    (estimate,) = estimates(cells, [over], [[count]])
    ratios = _per_user(cells, count, over)
    users = np.flatnonzero(~np.isnan(ratios))
    n, mean = len(users), np.nanmean(ratios)
    s, w = np.zeros((n, cells.n_intents)), np.zeros((n, cells.n_intents))
    for row, u in enumerate(users):
        for c in np.flatnonzero(cells.user == u):
            w[row, cells.intent[c]] = over[c] / over[cells.user == u].sum() / n
            s[row, cells.intent[c]] = (count[c] - mean * over[c]) / over[cells.user == u].sum() / n
    share = w.sum(0)
    g = 1 / (1 - 2 * share + (share**2).sum())
    by_user = ((ratios[users] - mean) ** 2).sum() / (n * (n - 1))
    pairs_s = sum(s[u] * s[v] for u in range(n) for v in range(n) if u != v)
    pairs_w = sum(w[u] * w[v] for u in range(n) for v in range(n) if u != v)
    by_intent = max(0.0, float((g * pairs_s).sum() + by_user * (g * pairs_w).sum()))
    assert estimate.se_new == pytest.approx((by_user + by_intent) ** 0.5)
    away = np.eye(len(share)) - np.outer(share, np.ones(len(share)))
    m = away @ np.diag(g * share**2) @ away.T
    f = max(np.trace(m) ** 2 / np.trace(m @ m), 1.0)
    both = by_user + by_intent
    assert estimate.df_new == pytest.approx(both**2 / (by_user**2 / (n - 1) + by_intent**2 / f))


def test_new_requests_are_never_less_uncertain_than_these() -> None:
    for seed in range(30):
        cells, count, over = _cells(seed)
        (estimate,) = estimates(cells, [over], [[count]])
        assert estimate.se_new >= estimate.se


def test_one_intent_says_nothing_about_others_and_one_user_nothing_at_all() -> None:
    lone = Cells(np.arange(5), np.zeros(5, np.int64), 5, 1)
    (estimate,) = estimates(lone, [np.ones(5)], [[np.array([0.0, 1, 1, 0, 1])]])
    assert np.isfinite(estimate.se)
    assert np.isnan(estimate.se_new)
    assert np.isnan(estimate.p(new=True))
    (single,) = estimates(Cells(np.zeros(1, np.int64), np.zeros(1, np.int64), 1, 1), [np.ones(1)], [[np.ones(1)]])
    assert single.mean == 1.0
    assert np.isnan(single.interval(new=False)).all()
    (none,) = estimates(lone, [np.zeros(5)], [[np.zeros(5)]])
    assert np.isnan(none.mean)
    assert none.excluded == 5


def test_users_who_are_all_the_same_are_no_evidence_of_a_difference() -> None:
    cells = Cells(np.arange(5), np.arange(5), 5, 5)
    (estimate,) = estimates(cells, [np.ones(5)], [[np.zeros(5)]])
    assert (estimate.p(new=True), estimate.detectable(new=True), estimate.interval(new=True)) == (1.0, 0.0, (0.0, 0.0))


def test_differences_that_cancel_within_every_user_are_exactly_none() -> None:
    """A third of a request more here, less there: rounding must not turn that into a tiny, certain difference."""
    cells = Cells(np.repeat(np.arange(6), 3), np.tile(np.arange(3), 6), 6, 3)
    (estimate,) = estimates(cells, [np.full(18, 1.0)], [[np.tile([3.0, -1.0, -2.0], 6)]])
    assert (estimate.mean, estimate.se, estimate.p(new=False)) == (0.0, 0.0, 1.0)


def test_what_is_detectable_is_found_in_four_of_five_experiments() -> None:
    rng, n = np.random.default_rng(5), 40
    truth = Estimate(0.0, 1 / n**0.5, n - 1.0, 1 / n**0.5, n - 1.0, n, 0).detectable(new=False)
    detections = [stats.ttest_1samp(rng.normal(truth, 1.0, n), 0.0).pvalue < 0.05 for _ in range(2000)]
    assert np.mean(detections) == pytest.approx(0.8, abs=0.03)


def test_holm_adjusts_like_the_textbook_and_leaves_missing_tests_out() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9, 0.04]) == pytest.approx([1.0, 1.0, 0.12])
    adjusted = holm([0.01, float("nan"), 0.04])
    assert adjusted[0] == pytest.approx(0.02)
    assert np.isnan(adjusted[1])
