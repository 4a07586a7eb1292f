"""Arrays that grow: rows of 64-bit keys, made once each and found in any shape and order, and wider columns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skg_bench.core.grid import I64, U64
from skg_bench.core.growing import Keyed, wider

KEYS = st.lists(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5), max_size=6), max_size=5)


@given(KEYS)
def test_each_key_has_its_own_row_which_is_made_once(asked: list[list[int]]) -> None:
    made: list[int] = []

    def halves(keys: U64) -> I64:
        made.extend(keys.tolist())
        assert (np.diff(keys) > 0).all()
        return np.stack([keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)], axis=1).astype(np.int64)

    known = Keyed(halves)
    for keys in asked:
        rows = known.of(np.array(keys, np.uint64))
        assert [(high << 32) | low for high, low in rows.tolist()] == keys
    assert len(made) == len(set(made))


def test_rows_have_the_shape_of_the_keys() -> None:
    known = Keyed(lambda keys: keys.astype(np.int64))
    assert known.of(np.arange(6, dtype=np.uint64).reshape(2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert known.of(np.zeros((0, 3), np.uint64)).shape == (0, 3)


@pytest.mark.parametrize("tail", [(), (2,)])
def test_a_wider_array_keeps_what_it_holds_and_its_type(tail: tuple[int, ...]) -> None:
    array = np.arange(2 * 3 * int(np.prod(tail)), dtype=np.int32).reshape(2, 3, *tail)
    for width in (0, 2, 3):
        assert wider(array, width, -1) is array
    for width, expected in ((4, 6), (6, 6), (7, 7), (50, 50)):  # it doubles, or more where that is not enough
        grown = wider(array, width, -1)
        assert grown.shape == (2, expected, *tail)
        assert grown.dtype == np.int32
        assert np.array_equal(grown[:, :3], array)
        assert (grown[:, 3:] == -1).all()
        assert not np.shares_memory(grown, array)
    assert wider(np.zeros((0, 3), np.bool_), 5, True).shape == (0, 6)
    assert wider(np.zeros((2, 3), np.bool_), 4, True)[:, 3:].all()
