"""Columns of a log as arrays."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skg_bench.core.grid import I32, I64, Bool


def column(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """One that has no gaps."""
    values: npt.NDArray[Any] = table[name].to_numpy()
    return values


def seconds(table: pa.Table, name: str) -> I64:
    """Times in seconds since 1970."""
    return column(table, name).astype("datetime64[s]").astype(np.int64)


def says(column: pa.ChunkedArray, *some: str) -> Bool:
    """Mask of the rows in which a column of words says one of these."""
    code, words = coded(column)
    return np.isin(code, np.flatnonzero(np.isin(words, some)))


Words = npt.NDArray[np.object_]  # of str: numpy's own strings take as much room each as the longest, a chat's message


def coded(column: pa.ChunkedArray) -> tuple[I32, Words]:
    """A column of words as codes into its sorted vocabulary (-1: null), whatever the order in the files."""
    encoded = column.combine_chunks()
    if not isinstance(encoded, pa.DictionaryArray):
        encoded = encoded.dictionary_encode()
    words = np.array(encoded.dictionary.to_pylist(), dtype=np.object_)
    vocabulary, code = np.unique(words, return_inverse=True)
    index = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return np.where(index < 0, -1, code.astype(np.int32)[index] if len(words) else -1).astype(np.int32), vocabulary
