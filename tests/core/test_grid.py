"""Law 1: arithmetic on the grids is exact, so it is the same bits in any order, batch or kernel."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skg_bench.core.embedding_grid import quantise
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import SCALE, UNIT, cosine, sigmoid, snap

logits = st.floats(-1e6, 1e6)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 300), st.sampled_from([1, 3, 32, 384, 1024]))
@pytest.mark.req("K05")
def test_dot_products_are_exact_in_float32_in_any_order(seed: int, rows: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    grid = quantise(rng.standard_normal((rows, width)) * rng.uniform(1e-9, 1e9, (rows, 1)))
    assert grid.dtype == np.int16
    exact = grid.astype(np.int64) @ grid.astype(np.int64).T
    assert np.abs(exact).max() < 2**24
    whole = grid.astype(np.float32)
    order = rng.permutation(width)
    for product in (whole @ whole.T, whole[:, order] @ whole[:, order].T, np.stack([whole @ w for w in whole])):
        assert product.dtype == np.float32
        assert np.array_equal(product.astype(np.int64), exact)
    partial = np.abs(np.cumsum((grid[:1].astype(np.int64) * grid.astype(np.int64))[:, order], axis=1))
    assert partial.max() <= 2**24


def test_the_grid_changes_cosines_by_less_than_a_thousandth() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 384))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    grid = quantise(x).astype(np.float64)
    assert np.abs(grid @ grid.T / SCALE**2 - x @ x.T).max() < 1e-3


@pytest.mark.parametrize("bad", [[np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0], [1e200, 1.0]])
def test_rows_without_a_direction_are_refused_with_their_number(bad: list[float]) -> None:
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(UsageError, match=r"1 of 3 .* \(first: row 1\)"):
        quantise(np.array([[1.0, 2.0], bad, [3.0, 4.0]]))


@settings(deadline=None)
@given(arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1)))
def test_snapped_numbers_are_multiples_of_the_unit_and_near(x: np.ndarray) -> None:
    snapped = snap(x)
    assert (snapped / UNIT == np.rint(snapped / UNIT)).all()
    assert (np.abs(snapped - x) <= UNIT / 2).all()
    assert (snapped.astype(np.float32) == snapped).all()  # what the log holds is what was decided on


@settings(deadline=None)
@given(st.lists(logits, min_size=2, max_size=50))
def test_the_sigmoid_is_monotone_symmetric_and_on_the_grid(x: list[float]) -> None:
    s = sigmoid(np.sort(np.array(x)))
    assert (np.diff(s) >= 0).all()
    assert ((s >= 0) & (s <= 1)).all()
    assert (s / UNIT == np.rint(s / UNIT)).all()
    assert np.abs(sigmoid(-np.sort(np.array(x))) + s - 1).max() <= UNIT
    assert abs(float(sigmoid(np.array([x[0]]))[0]) - 1 / (1 + math.exp(-max(min(x[0], 12), -12)))) < 3e-4
    assert sigmoid(np.zeros(1))[0] == 0.5


def test_cosines_lie_in_the_unit_interval() -> None:
    dots = np.array([-16e6, -1, 0, 1, 8e6, 16e6, 16.1e6], np.float32)
    c = cosine(dots)
    assert c[:3].tolist() == [0, 0, 0]
    assert c[-2:].tolist() == [1, 1]
    assert c[4] == 0.5


def test_cosines_are_the_nearest_multiples_of_the_unit() -> None:
    """A similarity off the grid differs between machines in its last bits, and with it a decision."""
    dots = np.random.default_rng(0).integers(-(2**24), 2**24, 10_000).astype(np.float32)
    similarity = cosine(dots)
    exact = np.clip(dots.astype(np.float64) / SCALE**2, 0.0, 1.0)
    assert np.array_equal(similarity / UNIT, np.rint(similarity / UNIT))
    assert np.abs(similarity - exact).max() <= UNIT / 2
    assert (similarity != exact).mean() > 0.3
