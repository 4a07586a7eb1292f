"""Simultaneous bands over weeks."""

import tracemalloc

import numpy as np
import pytest

from experiments.known_truth.worlds import bands_hold
from skg_bench.analysis.statistics import curves
from skg_bench.analysis.statistics.curves import DRAWS, PackedSigns, bands, signs
from skg_bench.analysis.statistics.intervals import t_quantile
from skg_bench.core.grid import F64

FREE = (float("-inf"), float("inf"))


def _values(users: int = 30, weeks: int = 8) -> F64:
    return np.random.default_rng(0).normal(0.3, 0.1, (users, weeks))


def test_multipliers_are_signs_keyed_by_user() -> None:
    x = signs(0, np.arange(40, dtype=np.int64)).of(slice(None))
    assert x.shape == (DRAWS, 40)
    assert set(np.unique(x)) == {-1.0, 1.0}
    np.testing.assert_array_equal(signs(0, np.array([7, 31])).of(slice(None)), x[:, [7, 31]])
    assert np.abs(x.mean(axis=0)).max() < 0.1
    assert np.abs(np.corrcoef(x.T) - np.eye(40)).max() < 0.12
    assert (signs(1, np.arange(40, dtype=np.int64)).of(slice(None)) != x).any()


def test_bands_are_the_same_bits_for_users_and_curves_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [_values(), _values() ** 2, 1.0 - _values()]
    x = signs(0, np.arange(30))
    whole = bands(values, x, [FREE] * 3)
    monkeypatch.setattr(curves, "_USERS", 7)
    monkeypatch.setattr(curves, "_TOGETHER", 60)
    monkeypatch.setattr(curves, "_DRAWN", 7)
    np.testing.assert_array_equal(signs(0, np.arange(30)).packed, x.packed)
    for band, same in zip(bands(iter(values), x, [FREE] * 3), whole, strict=True):
        np.testing.assert_array_equal([band.mean, band.low, band.high], [same.mean, same.low, same.high])


def test_multipliers_of_many_users_take_a_bit_each_and_little_beside_them() -> None:
    users = np.arange(5 * curves._USERS)
    tracemalloc.start()
    try:
        x = signs(0, users)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 8 * x.packed.nbytes == DRAWS * len(users)
    assert most < 2**24  # drawn for all at once: 400 MiB


def test_a_band_is_wider_than_pointwise_intervals_and_not_wider_than_bonferroni() -> None:
    values = _values()
    (band,) = bands([values], signs(0, np.arange(30)), [FREE])
    se = values.std(axis=0, ddof=1) / 30**0.5
    half = (band.high - band.low) / 2
    assert (half > t_quantile(0.975, 29) * se).all()
    assert (half <= t_quantile(1 - 0.025 / 8, 29) * se * (1 + 1e-12)).all()
    np.testing.assert_allclose(band.mean, values.mean(axis=0))


def test_weeks_that_move_together_need_no_correction() -> None:
    values = np.repeat(_values(weeks=1), 8, axis=1)
    (band,) = bands([values], signs(0, np.arange(30)), [FREE])
    pointwise = t_quantile(0.975, 29) * values.std(axis=0, ddof=1) / 30**0.5
    np.testing.assert_allclose((band.high - band.low) / 2, pointwise, rtol=0.05)


def test_users_who_are_away_have_no_value_and_weeks_without_two_users_no_band() -> None:
    values = _values()
    values[5:, 2], values[1:, 3], values[:, 4] = np.nan, np.nan, np.nan
    (band,) = bands([values], signs(0, np.arange(30)), [FREE])
    assert band.n.tolist() == [30, 30, 5, 1, 0, 30, 30, 30]
    assert band.mean[2] == pytest.approx(values[:5, 2].mean())
    assert np.isnan(band.low).tolist() == [False, False, False, True, True, False, False, False]
    assert np.isnan(band.mean).tolist() == [False] * 4 + [True] + [False] * 3


def test_a_curve_on_which_all_users_agree_has_a_band_of_no_width_and_bands_stay_in_bounds() -> None:
    flat, low = np.full((30, 8), 0.7), np.abs(_values() - 0.3) * 0.1
    low[:, 0] = 0.0
    low[0, 0] = 0.2
    same, near_zero = bands([flat, low], signs(0, np.arange(30)), [FREE, (0.0, 1.0)])
    np.testing.assert_array_equal(same.low, same.high)
    assert near_zero.low.min() == 0.0


def test_a_band_does_not_depend_on_the_other_curves_or_the_order_of_users() -> None:
    a, b = _values(), _values()[::-1] * 2
    x = signs(0, np.arange(30))
    alone, (_, beside) = bands([b], x, [FREE])[0], bands([a, b], x, [FREE, FREE])
    np.testing.assert_array_equal(alone.low, beside.low)
    order = np.random.default_rng(1).permutation(30)
    shuffled = bands([b[order]], PackedSigns(x.packed[order]), [FREE])[0]
    np.testing.assert_allclose(shuffled.high, alone.high, rtol=1e-12)


@pytest.mark.parametrize("users", [12, 40])
def test_bands_hold_whole_curves_at_the_nominal_rate(users: int) -> None:
    assert 0.90 <= bands_hold(users, weeks=26, replications=200) <= 0.985


def test_weeks_in_which_all_users_agree_take_nothing_from_the_level_of_the_others() -> None:
    """An eighth of all signs of these four users lie in one line with their values, so Bonferroni's level is taken."""
    values = np.array([[0.1, 0.3], [0.1, 0.7], [0.5, 0.3], [0.5, 0.7]])
    agreed = np.concatenate([values, np.full((4, 6), 0.7)], axis=1)
    half = t_quantile(1 - 0.025 / 2, 3) * values.std(axis=0, ddof=1) / 2
    for curve in (values, agreed):
        (band,) = bands([curve], signs(0, np.arange(4)), [FREE])
        np.testing.assert_allclose(band.high[:2] - band.mean[:2], half)


def test_two_users_have_one_degree_of_freedom() -> None:
    values = np.array([[0.1], [0.5]])
    (band,) = bands([values], signs(0, np.arange(2)), [FREE])
    assert band.high[0] - band.mean[0] == pytest.approx(t_quantile(0.975, 1) * 0.2)
