"""Means over users with two kinds of interval, against other people's arithmetic and against brute force."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from skg_bench.analysis.statistics.intervals import LEAST_INTENTS, Cells, Estimate, estimates, holm
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64


def _cells(seed: int, users: int = 12, intents: int = 14) -> tuple[Cells, F64, F64]:
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
    numbers = [(e.mean, e.se_new, e.df_new, e.skewness, e.intents) for e in (same, estimate)]
    assert numbers[0] == pytest.approx(numbers[1], nan_ok=True)


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_the_interval_for_new_requests_is_the_formula_written_out(seed: int) -> None:
    cells, count, over = _cells(seed)
    (estimate,) = estimates(cells, [over], [[count]])
    assume(not estimate.withheld)
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
    both, scaled = by_user + by_intent, g**0.5 * s.sum(0)
    effective = (scaled**2).sum() ** 2 / (scaled**4).sum()
    assert estimate.df_new == pytest.approx(both**2 / (by_user**2 / (n - 1) + by_intent**2 / min(f, effective)))
    third = ((ratios[users] - mean) ** 3).sum() / (n * (n - 1) * (n - 2))
    if effective < f:
        few = (1 - (effective / f) ** 2) * (1 + 8.5 / (effective + 1) - 8.5 / (f + 1))
        third += few * (scaled**3).sum()
    real = min(by_intent / (scaled**2).sum(), 1.0) ** 0.25
    assert estimate.skewness == pytest.approx(real * third / both**1.5, rel=1e-3, abs=1e-3)


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


numbers = st.floats(-3.0, 3.0)


@given(numbers, st.floats(0.01, 2.0), st.floats(1.0, 200.0), numbers)
@settings(max_examples=300, deadline=None)
def test_interval_p_limits_and_equivalence_are_of_one_method(
    mean: float, se: float, df: float, skewness: float
) -> None:
    estimate = Estimate(mean, se, df, se, df, 30, 0, skewness)
    low, high = estimate.interval(new=True)
    assert low <= high
    assume(min(abs(low), abs(high)) > 1e-9)
    assert (estimate.p(new=True) < 0.05) == (low > 0 or high < 0)
    assert estimate.limit(0.025) == pytest.approx(low)
    assert estimate.limit(0.975) == pytest.approx(high)
    margin = max(abs(estimate.limit(0.05)), abs(estimate.limit(0.95)))
    assert estimate.equivalence(margin * 1.001 + 1e-9) < 0.05 < estimate.equivalence(margin * 0.999)
    turned = Estimate(-mean, se, df, se, df, 30, 0, -skewness)
    assert turned.interval(new=True) == pytest.approx((-high, -low))
    assert turned.p(new=True) == pytest.approx(estimate.p(new=True))


def test_without_skewness_it_is_students_interval_and_a_left_tail_reaches_further_down() -> None:
    plain = Estimate(1.0, 0.5, 9.0, 0.5, 9.0, 10, 0)
    assert plain.interval(new=True) == pytest.approx(plain.interval(new=False))
    nearly = Estimate(1.0, 0.5, 9.0, 0.5, 9.0, 10, 0, 1.01e-4)
    assert nearly.interval(new=True) == pytest.approx(plain.interval(new=True), abs=1e-3)
    left = Estimate(1.0, 0.5, 9.0, 0.5, 9.0, 10, 0, -0.4)
    assert left.interval(new=True)[0] < plain.interval(new=True)[0] - 0.1
    assert left.interval(new=True)[1] < plain.interval(new=True)[1] - 0.1


@pytest.mark.parametrize("margin", [0.0, -0.1, float("inf"), float("nan")])
def test_a_margin_is_a_size(margin: float) -> None:
    with pytest.raises(UsageError, match=f"margin={margin:g}; it is a size above 0"):
        Estimate(0.0, 1.0, 9.0, 1.0, 9.0, 10, 0).equivalence(margin)


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_the_order_of_intents_changes_no_more_than_the_last_bits_and_equal_rows_no_bit(seed: int) -> None:
    cells, count, over = _cells(seed)
    first, again = (estimates(cells, [over], [[count]])[0] for _ in range(2))
    np.testing.assert_equal(first, again)
    names = np.random.default_rng(seed).permutation(cells.n_intents)
    (other,) = estimates(Cells(cells.user, names[cells.intent], cells.n_users, cells.n_intents), [over], [[count]])
    before, after = ((e.mean, e.se_new, e.df_new, e.skewness, e.intents) for e in (first, other))
    assert before == pytest.approx(after, nan_ok=True)


def _effects(of_intent: F64, users: int = 20) -> Estimate:
    """Every user asks once about every intent, and gains what it is worth."""
    n = len(of_intent)
    cells = Cells(np.repeat(np.arange(users), n), np.tile(np.arange(n), users), users, n)
    (estimate,) = estimates(cells, [np.ones(users * n)], [[np.tile(of_intent, users)]])
    return estimate


def test_effective_intents_are_the_inverse_of_simpsons_index_and_the_largest_are_named() -> None:
    estimate = _effects(np.array([0.0, 4.0, -3.0, 1.0, 1.0, 1.0, 0.5, 0.5]))
    assert estimate.intents == pytest.approx(11**2 / (16 + 9 + 3 + 0.5))
    assert [intent for intent, _ in estimate.largest] == [1, 2, 3, 4, 5]
    assert [share for _, share in estimate.largest] == pytest.approx([4 / 11, 3 / 11, 1 / 11, 1 / 11, 1 / 11])


def test_too_few_intents_withhold_the_interval_for_new_requests_only() -> None:
    some = np.zeros(12)
    some[:3] = 1.0
    few = _effects(some)
    assert few.intents == pytest.approx(3.0)
    assert few.intents < LEAST_INTENTS
    assert few.withheld
    assert np.isnan([*few.interval(new=True), few.p(new=True), few.detectable(new=True), few.equivalence(0.1)]).all()
    assert np.isfinite(few.interval(new=False)).all()
    some[3] = 1.0
    enough = _effects(some)
    assert not enough.withheld
    assert np.isfinite(enough.interval(new=True)).all()
    assert not _effects(np.zeros(12)).withheld  # equal for every user


def test_few_heavy_effects_are_covered_on_both_sides() -> None:
    """Intents gain little, but for some that lose much: without its skewness, Student's interval misses above."""
    rng, misses, student, runs = np.random.default_rng(3), np.zeros(2), np.zeros(2), 1000
    for _ in range(runs):
        estimate = _effects(-rng.exponential(1.0, 30), users=40)
        (low, high), half = estimate.interval(new=True), stats.t.ppf(0.975, 29) * estimate.se_new
        misses += [low > -1.0, high < -1.0]
        student += [estimate.mean - half > -1.0, estimate.mean + half < -1.0]
    assert student[0] / runs > 0.05 > 0.02 > student[1] / runs
    assert misses[0] / runs < 0.035
    assert 0.005 < misses[1] / runs < 0.035


def test_what_is_detectable_is_found_among_skewed_effects() -> None:
    rng, runs = np.random.default_rng(4), 400
    drawn = [_effects(-rng.exponential(1.0, 40), users=40) for _ in range(runs)]
    size = np.median([e.detectable(new=True) for e in drawn])
    found = [replace(e, mean=e.mean + 1.0 - size).p(new=True) < 0.05 for e in drawn]
    assert 0.75 < np.mean(found) < 0.92
