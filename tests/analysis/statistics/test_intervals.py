"""Means over users with two kinds of interval, against other people's arithmetic and against brute force."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from skg_bench.analysis.statistics import intervals
from skg_bench.analysis.statistics.intervals import LEAST_INTENTS, Cells, Estimate, estimates, holm, sums, sums_by
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


@given(st.integers(0, 2**32), st.integers(0, 400), st.integers(1, 40), st.booleans(), st.sampled_from([1, 30, 2**15]))
def test_sums_by_an_index_that_ascends_are_the_same_bits(
    seed: int, n: int, size: int, ascends: bool, together: int
) -> None:
    rng = np.random.default_rng(seed)
    index = rng.integers(0, size, n)
    index = np.sort(index) if ascends else index
    for weights in (rng.normal(size=n) * 10.0 ** rng.integers(-9, 9, n), rng.random(n) < 0.5, np.full(n, -0.0)):
        with patch.object(intervals, "_TOGETHER", together):
            assert sums_by(index, size)(weights).tobytes() == sums(index, size, weights).tobytes()


def test_estimates_have_the_same_bits_however_many_cells_are_worked_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cells, count, over = _cells(3, users=40, intents=50)
    small = Cells(cells.user.astype(np.int32), cells.intent.astype(np.int32), cells.n_users, cells.n_intents)

    def both(on: Cells) -> str:
        return repr(estimates(on, [over], [[count], [over]]) + estimates(on, [over, over + 1.0], [[count, over]]))

    whole = both(cells)
    monkeypatch.setattr(intervals, "_TOGETHER", 7)
    assert both(replace(cells)) == both(small) == whole


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
    left = np.eye(len(share)) - np.outer(share, np.ones(len(share)))
    m = left @ np.diag(g * share**2) @ left.T
    f = max(np.trace(m) ** 2 / np.trace(m @ m), 1.0)
    both, scaled = by_user + by_intent, g**0.5 * s.sum(0)
    assert estimate.df_new == pytest.approx(both**2 / (by_user**2 / (n - 1) + by_intent**2 / f))
    away = ratios[users] - mean
    real = min(by_intent / (scaled**2).sum(), 1.0) ** 0.25
    third = (away**3).sum() / (n * (n - 1) * (n - 2)) + real * (scaled**3).sum()
    assert estimate.skewness == pytest.approx(third / both**1.5, rel=1e-3, abs=1e-3)
    assert estimate.effects == pytest.approx(both**2 / ((away**4).sum() / n**4 + real * (scaled**4).sum()))
    assert estimate.design == pytest.approx(1 / (share**2).sum())


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


@given(numbers, st.floats(0.01, 2.0), st.floats(1.0, 200.0), numbers, st.one_of(st.floats(1.0, 500.0), st.just(np.inf)))
@settings(max_examples=300, deadline=None)
def test_interval_p_limits_and_equivalence_are_of_one_method(
    mean: float, se: float, df: float, skewness: float, effects: float
) -> None:
    estimate = Estimate(mean, se, df, se, df, 30, 0, skewness, effects)
    low, high = estimate.interval(new=True)
    assert low <= mean <= high
    assume(min(abs(low), abs(high)) > 1e-9)
    assert (estimate.p(new=True) < 0.05) == (low > 0 or high < 0)
    assert estimate.limit(0.025) == pytest.approx(low)
    assert estimate.limit(0.975) == pytest.approx(high)
    margin = max(abs(estimate.limit(0.05)), abs(estimate.limit(0.95)))
    assert estimate.equivalence(margin * 1.001 + 1e-9) < 0.05 < estimate.equivalence(margin * 0.999)
    turned = Estimate(-mean, se, df, se, df, 30, 0, -skewness, effects)
    assert turned.interval(new=True) == pytest.approx((-high, -low))
    assert turned.p(new=True) == pytest.approx(estimate.p(new=True))
    for sign in (1.0, -1.0):
        assert turned.detectable(new=True, sign=-sign) == pytest.approx(estimate.detectable(new=True, sign=sign))
    stricter = estimate.detectable(new=True, sign=1.0, level=0.01)
    assert stricter > estimate.detectable(new=True, sign=1.0)


def test_without_skewness_it_is_students_interval_and_a_left_tail_reaches_further_down() -> None:
    plain = Estimate(1.0, 0.5, 9.0, 0.5, 9.0, 10, 0)
    assert plain.interval(new=True) == pytest.approx(plain.interval(new=False))
    nearly = Estimate(1.0, 0.5, 9.0, 0.5, 9.0, 10, 0, 1.01e-4)
    assert nearly.interval(new=True) == pytest.approx(plain.interval(new=True), abs=1e-3)
    left = Estimate(1.0, 0.5, 9.0, 0.5, 9.0, 10, 0, -0.4)
    assert left.interval(new=True)[0] < plain.interval(new=True)[0] - 0.1
    assert left.interval(new=True)[1] < plain.interval(new=True)[1] - 0.1
    few = replace(left, effects=2.0)  # the other end stays near Student's
    assert few.interval(new=True)[0] < left.interval(new=True)[0]
    assert few.interval(new=True)[1] == pytest.approx(plain.interval(new=True)[1], rel=0.02)


def test_for_a_share_it_is_wilsons_interval() -> None:
    """Harm of one size to 30 of 4,000 users: many effects, and the quantile is that of the normal distribution."""
    users, harmed = 4000, 30
    harm = np.zeros(users * 2)
    harm[: 2 * harmed] = 1.0
    cells = Cells(np.repeat(np.arange(users), 2), np.tile(np.arange(2), users), users, 2)
    (estimate,) = estimates(replace_intents(cells), [np.ones(users * 2)], [[harm]])
    wilson = stats.binomtest(harmed, users).proportion_ci(method="wilson")
    many = replace(estimate, effects=np.inf)
    assert many.interval(new=True) == pytest.approx((wilson.low, wilson.high), rel=0.02)


def replace_intents(cells: Cells) -> Cells:
    """Every request is an intent of its own."""
    return Cells(cells.user, np.arange(len(cells.user)), cells.n_users, len(cells.user))


@pytest.mark.parametrize(("users", "p"), [(2, 0.5), (5, 0.0625), (6, 0.03125), (60, 2.0**-59)])
def test_users_who_are_all_alike_are_as_many_as_they_are(users: int, p: float) -> None:
    """They have no spread, and p was 0 for two of them."""
    one = np.arange(users)
    (estimate,) = estimates(Cells(one, one, users, users), [np.ones(users)], [[np.full(users, 2.0)]])
    for new in (True, False) if users > 3 else (False,):  # of fewer intents none is said for others
        assert estimate.p(new=new) == p == stats.binomtest(users, users).pvalue
        interval = estimate.interval(new=new, bounds=(-3.0, 3.0))
        assert interval == ((-3.0, 3.0) if p >= 0.05 else (2.0, 2.0))


def test_users_who_are_all_alike_are_equal_within_a_margin_if_they_are_enough() -> None:
    few, many = (Estimate(0.0, 0.0, n - 1.0, 0.0, n - 1.0, n, 0) for n in (4, 10))
    assert (few.equivalence(0.1), many.equivalence(0.1)) == (0.0625, 2.0**-10)
    assert replace(many, mean=0.1).equivalence(0.1) == 1.0


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


def test_a_design_of_too_few_intents_withholds_the_interval_for_new_requests_only() -> None:
    few = _effects(np.array([1.0, 0.0, 2.0]))
    assert few.design == pytest.approx(3.0)
    assert few.design < LEAST_INTENTS
    assert few.withheld
    assert np.isnan([*few.interval(new=True), few.p(new=True), few.detectable(new=True), few.equivalence(0.1)]).all()
    assert np.isfinite(few.interval(new=False)).all()
    enough = _effects(np.array([1.0, 0.0, 2.0, 1.0]))
    assert not enough.withheld
    assert np.isfinite(enough.interval(new=True)).all()
    assert not _effects(np.zeros(12)).withheld  # equal for every user
    assert not _effects(np.zeros(3)).withheld


def test_what_the_requests_showed_does_not_withhold_an_interval() -> None:
    """One intent of twelve carries everything: bad luck of the sample, or a world of rare effects."""
    lone = np.zeros(12)
    lone[0] = 1.0
    estimate = _effects(lone)
    assert estimate.intents == pytest.approx(1.0)
    assert not estimate.withheld
    (low, high), (_, high_student) = estimate.interval(new=True), estimate.student
    assert low < 0 < high_student < high


def test_the_smallest_shares_that_a_run_sees_are_those_of_which_it_holds_one_in_95_percent() -> None:
    users, intents = _effects(np.linspace(-1.0, 1.0, 40), users=30).least_shares
    rng = np.random.default_rng(2)
    for share, n in ((users, 30), (intents, 40)):
        assert share == pytest.approx(1 - 0.05 ** (1 / n), rel=1e-6)
        assert np.mean(rng.binomial(n, share, 20_000) > 0) == pytest.approx(0.95, abs=0.006)


def test_where_intervals_are_far_apart_the_bootstrap_is_drawn_and_the_verdict_may_depend_on_them() -> None:
    near = _effects(np.linspace(-1.0, 1.5, 40))
    assert near.bootstrap is None
    assert near.others == {}
    assert not near.disputed
    rare = np.full(40, 0.03)
    rare[0] = -0.4
    far = _effects(rare)
    assert far.bootstrap == _effects(rare).bootstrap  # the same bits
    assert list(far.others) == ["Student's", "bootstrap"]
    assert far.interval(new=True)[0] < far.student[0] - (far.student[1] - far.student[0]) / 2
    shifted, sure = _moved(far, 0.04), _moved(far, 1.0)
    assert shifted.student[0] > 0 > shifted.interval(new=True)[0]
    assert shifted.disputed
    assert sure.others
    assert not sure.disputed


def _moved(estimate: Estimate, by: float) -> Estimate:
    assert estimate.bootstrap is not None
    low, high = estimate.bootstrap
    return replace(estimate, mean=estimate.mean + by, bootstrap=(low + by, high + by))


def test_few_heavy_effects_are_covered_where_student_misses() -> None:
    """Intents gain little, but for some that lose much: without its skewness, Student's interval misses above."""
    rng, misses, student, runs = np.random.default_rng(3), np.zeros(2), np.zeros(2), 1000
    for _ in range(runs):
        estimate = _effects(-rng.exponential(1.0, 30), users=40)
        (low, high), (low_student, high_student) = estimate.interval(new=True), estimate.student
        misses += [low > -1.0, high < -1.0]
        student += [low_student > -1.0, high_student < -1.0]
    assert student[0] / runs > 0.05 > 0.02 > student[1] / runs
    assert misses[0] / runs < 0.04
    assert 0.003 < misses[1] / runs < 0.035


def test_few_heavy_effects_of_both_signs_raise_no_alarm() -> None:
    rng, runs = np.random.default_rng(6), 1000
    sizes = np.where(rng.random((runs, 60)) < 0.2, rng.laplace(0.0, 1.0, (runs, 60)), 0.0)
    assert 0.02 < np.mean([_effects(size.astype(np.float64), users=10).p(new=True) < 0.05 for size in sizes]) < 0.08


def test_skewness_of_users_counts_as_that_of_intents() -> None:
    """Of 100 users 5 % bear all harm; of 100 intents 5 % do."""
    rng, runs = np.random.default_rng(7), 300
    missed = np.zeros(2)
    for _ in range(runs):
        harm = np.where(rng.random(100) < 0.05, -1.0, 0.0)
        cells = Cells(np.repeat(np.arange(100), 8), np.arange(800), 100, 800)
        (by_user,) = estimates(cells, [np.ones(800)], [[np.repeat(harm, 8)]])
        for at, estimate in enumerate((by_user, _effects(harm, users=10))):
            missed[at] += not estimate.interval(new=True)[0] <= -0.05 <= estimate.interval(new=True)[1]
    assert (missed / runs < 0.06).all()


def test_what_is_detectable_is_found_among_skewed_effects_as_gain_and_as_harm() -> None:
    rng, runs = np.random.default_rng(4), 400
    drawn = [_effects(-rng.exponential(1.0, 40), users=40) for _ in range(runs)]
    for sign in (1.0, -1.0):
        size = sign * np.median([e.detectable(new=True, sign=sign) for e in drawn])
        found = [replace(e, mean=e.mean + 1.0 + size) for e in drawn]
        assert 0.72 < np.mean([e.p(new=True) < 0.05 and e.mean * sign > 0 for e in found]) < 0.95
