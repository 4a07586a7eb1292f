"""Users needed with and without pairing, against what is known of two correlated arms."""

from pathlib import Path

import numpy as np
import pytest

from experiments.pairing_gain.analysis import CONTRASTS, MARK, analyse, gain, gains, medians
from skg_bench.core.errors import UsageError
from tests.analysis.synthetic import ARMS, World, make_run


def test_the_gain_of_correlated_arms_is_twice_one_over_one_minus_the_correlation() -> None:
    rng = np.random.default_rng(0)
    for correlation in (0.0, 0.5, 0.9):
        shared, a, b = rng.normal(0, 1, (3, 200_000))
        mixed = [correlation**0.5 * shared + (1 - correlation) ** 0.5 * noise for noise in (a, b)]
        result = gain("a - b", "utility", mixed[0], mixed[1], 0.05)
        assert result is not None
        assert result.gain == pytest.approx(2 / (1 - correlation), rel=0.03)
        assert result.correlation == pytest.approx(correlation, abs=0.01)


def test_users_without_a_value_are_left_out_and_equal_users_prove_nothing() -> None:
    a, b = np.array([0.1, 0.2, np.nan, 0.4]), np.array([0.1, np.nan, 0.3, 0.2])
    result = gain("a - b", "utility", a, b, 0.1)
    assert result is not None
    assert result.paired == gain("", "", a[[0, 3]], b[[0, 3]], 0.1).paired  # type: ignore[union-attr]
    assert gain("a - b", "utility", a, a, 0.1) is None
    assert gain("a - b", "utility", a[:1], b[:1], 0.1) is None


def test_every_contrast_of_a_run_is_counted(tmp_path: Path) -> None:
    arms = {**ARMS, **{arm: World(hit=0.3 + 0.1 * at) for at, arm in enumerate(_missing())}}
    run = make_run(tmp_path / "run", users=30, weeks=4, arms=arms)
    results = gains(run)
    assert {result.contrast for result in results} == {f"{arm} - {reference}" for arm, reference in CONTRASTS}
    report = analyse(run)
    assert report.holds == (medians(results)["utility"] >= MARK)
    worst = min((result for result in results if result.metric == "utility"), key=lambda result: result.gain)
    assert f"| {worst.gain:.1f} | {worst.contrast} |" in report.page


def _missing() -> list[str]:
    return [arm for arm in dict.fromkeys(arm for pair in CONTRASTS for arm in pair) if arm not in ARMS]


def test_a_run_without_the_arms_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no arm 'frozen_100'; it has skg, frozen, never"):
        gains(make_run(tmp_path / "run", users=3, weeks=1))
