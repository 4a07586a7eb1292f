"""Platt and isotonic calibration against scikit-learn, and what a change of the out-of-scope share does to them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from skg_bench.analysis.calibration import ece_at, isotonic, platt, shifted
from skg_bench.analysis.ranking import ece
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64

seeds = st.integers(0, 2**32)


def scores(rng: np.random.Generator, n: int) -> tuple[F64, F64]:
    """Cosines on a coarse grid, so that some are equal, and outcomes that follow them."""
    score = np.rint(rng.beta(4, 2, n) * 200) / 200
    return score, (rng.random(n) < expit(12 * (score - 0.6))).astype(float)


@settings(deadline=None, max_examples=20)
@given(seed=seeds, n=st.integers(5, 400))
def test_platt_is_scikit_learns_logistic_regression_on_platts_targets(seed: int, n: int) -> None:
    score, y = scores(np.random.default_rng(seed), n)
    y[:2] = 0, 1
    target = np.where(y > 0, (y.sum() + 1) / (y.sum() + 2), 1 / (n - y.sum() + 2))
    twice = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000)
    twice.fit(np.tile(score, 2)[:, None], np.repeat([1, 0], n), np.concatenate([target, 1 - target]))
    assert np.abs(platt(score, y).probability(score) - twice.predict_proba(score[:, None])[:, 1]).max() < 1e-4


@settings(deadline=None, max_examples=20)
@given(seed=seeds, n=st.integers(1, 400))
def test_isotonic_is_scikit_learns(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    score, y = scores(rng, n)
    queries = rng.uniform(-0.5, 1.5, 300)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(score, y)
    assert np.abs(isotonic(score, y).probability(queries) - theirs.predict(queries)).max() < 1e-12


def test_either_is_calibrated_on_fresh_scores_of_the_same_kind() -> None:
    rng = np.random.default_rng(0)
    score, y = scores(rng, 4000)
    fresh, outcome = scores(rng, 40_000)
    raw = ece(fresh, outcome)
    for fit in (platt, isotonic):
        assert ece(fit(score, y).probability(fresh), outcome) < 0.02 < raw


@pytest.mark.parametrize("fit", [platt, isotonic])
def test_one_class_or_equal_scores_give_the_share_of_outcomes(fit: type) -> None:
    equal = fit(np.full(40, 0.3), np.arange(40) % 4 == 0).probability(np.array([0.1, 0.3, 0.9]))
    assert equal == pytest.approx([0.25] * 3, abs=0.03)  # Platt draws it in to 1/2 by two outcomes
    certain = fit(np.linspace(0, 1, 40), np.ones(40)).probability(np.array([0.1, 0.9]))
    assert (certain > 0.95).all()


@pytest.mark.parametrize("fit", [platt, isotonic])
def test_scores_that_part_the_outcomes_perfectly_give_probabilities_that_rise(fit: type) -> None:
    score = np.linspace(0, 1, 50)
    p = fit(score, score > 0.5).probability(score)
    assert np.isfinite(p).all()
    assert (np.diff(p) >= 0).all()
    assert p[0] < 0.1
    assert p[-1] > 0.9


def messages(rng: np.random.Generator, n: int, share: float) -> tuple[F64, F64]:
    """Scores of messages, and whether they are in scope."""
    inside = rng.random(n) >= share
    return np.where(inside, rng.normal(1.0, 1.0, n), rng.normal(-1.0, 1.0, n)), inside.astype(float)


def test_calibration_does_not_survive_another_share_out_of_scope_unless_it_is_shifted() -> None:
    rng = np.random.default_rng(0)
    fitted = platt(*messages(rng, 40_000, 0.1))
    score, inside = messages(rng, 40_000, 0.1)
    p = fitted.probability(score)
    same, other = ece_at(p, inside, inside == 0, [0.1, 0.4])
    assert same < 0.01
    assert other > 0.05
    (corrected,) = ece_at(shifted(p, 0.9, 0.6), inside, inside == 0, [0.4])
    assert corrected < 0.01
    values, outcome = messages(rng, 40_000, 0.4)  # weighing rows says what other rows would
    assert ece(fitted.probability(values), outcome) == pytest.approx(other, abs=0.01)
    assert same == pytest.approx(ece(p, inside), abs=0.003)


def test_a_shift_to_the_same_rate_changes_nothing_and_is_undone_by_the_way_back() -> None:
    p = np.linspace(0, 1, 11)
    assert shifted(p, 0.3, 0.3) == pytest.approx(p)
    assert shifted(shifted(p, 0.3, 0.8), 0.8, 0.3) == pytest.approx(p)
    assert shifted(np.array([0.3]), 0.3, 0.8) == pytest.approx([0.8])


def test_what_cannot_be_calibrated_is_refused() -> None:
    for fit in (platt, isotonic):
        with pytest.raises(UsageError, match="0 scores and 0 outcomes"):
            fit(np.zeros(0), np.zeros(0))
        with pytest.raises(UsageError, match="1 of 2 scores are no numbers"):
            fit(np.array([0.5, np.nan]), np.ones(2))
    with pytest.raises(UsageError, match=r"new_rate=1\.0 must lie between 0 and 1"):
        shifted(np.ones(1), 0.5, 1.0)
    with pytest.raises(UsageError, match="both needed"):
        ece_at(np.ones(2), np.ones(2), np.zeros(2), [0.5])
    with pytest.raises(UsageError, match=r"share=1\.5 must lie"):
        ece_at(np.ones(2), np.ones(2), np.array([0, 1]), [1.5])
