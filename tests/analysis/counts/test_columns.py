"""Columns as arrays: keys numbered by a table, where one is small enough, as by sorting."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from skg_bench.analysis.counts.columns import coded, distinct_keys, says, seconds, seen_before


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.sampled_from([31, 10_000]))
def test_keys_are_numbered_as_by_sorting(keys: list[int], size: int) -> None:
    key = np.array(keys, np.int64)
    unique, place = np.unique(key, return_inverse=True)
    for found, wanted in zip(distinct_keys(key, size), (unique, place), strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == np.int64
    assert seen_before(key, size).tolist() == [x in keys[:i] for i, x in enumerate(keys)]


def test_no_keys_have_no_numbers() -> None:
    nothing = np.zeros(0, np.int64)
    for size in (0, 5):
        assert [len(each) for each in (*distinct_keys(nothing, size), seen_before(nothing, size))] == [0, 0, 0]


def test_words_are_coded_in_order_and_null_is_no_word() -> None:
    column = pa.chunked_array([["b", None, "a"], ["b"]])
    code, words = coded(column)
    assert (code.tolist(), words.tolist()) == ([1, -1, 0, 1], ["a", "b"])
    assert says(column, "b", "z").tolist() == [True, False, False, True]
    assert says(pa.chunked_array([pa.array([None, None], pa.string())]), "b").tolist() == [False, False]


def test_times_are_seconds() -> None:
    table = pa.table({"time": pa.array([0, 1_999, 86_400_000], pa.timestamp("ms"))})
    assert seconds(table, "time").tolist() == [0, 1, 86_400]
