"""Elimination against a library, and the same bits whoever else is solved for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.grid import solve

seeds = st.integers(0, 2**32)


@settings(deadline=None, max_examples=10)
@given(seed=seeds)
@pytest.mark.req("K10")
def test_elimination_solves_what_a_library_solves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.random((8, 300, 40))
    a = np.einsum("rnf,rng->rfg", x, x) / 4 + np.eye(40)
    b = rng.standard_normal((8, 40)) * 50
    kept = a.copy(), b.copy()
    solution, expected = solve(a, b), np.linalg.solve(a, b[:, :, None])[:, :, 0]
    assert np.abs(solution - expected).max() <= 1e-9 * max(1.0, np.abs(expected).max())
    assert np.array_equal(a, kept[0])
    assert np.array_equal(b, kept[1])


@settings(deadline=None, max_examples=10)
@given(seed=seeds)
def test_a_system_is_solved_the_same_alone_among_others_and_padded(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.random((20, 60, 32))
    a, b = np.einsum("rnf,rng->rfg", x, x) + np.eye(32), rng.random((20, 32))
    whole = solve(a, b)
    wide, long = np.tile(np.eye(40), (20, 1, 1)), np.zeros((20, 40))
    wide[:, :32, :32], long[:, :32] = a, b
    assert np.array_equal(solve(wide, long)[:, :32], whole)
    for row in range(3):
        assert np.array_equal(solve(a[[row]], b[[row]])[0], whole[row])
