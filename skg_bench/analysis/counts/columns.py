"""Columns of a log as arrays."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skg_bench.core.grid import I32, I64, Bool

_SPARSE = 8  # keys that could be, for each that is there: with more, sorting is faster than a table of them


def column(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """One that has no gaps."""
    values: npt.NDArray[Any] = table[name].to_numpy()
    return values


def seconds(table: pa.Table, name: str) -> I64:
    """Times in seconds since 1970."""
    milliseconds: I64 = column(table, name).astype("datetime64[ms]", copy=False).view(np.int64)
    return milliseconds // 1000


def says(column: pa.ChunkedArray, *some: str) -> Bool:
    """Mask of the rows in which a column of words says one of these."""
    code, words = coded(column)
    mask: Bool = np.append(np.isin(words, some), False)[code]  # the last stands for null
    return mask


Words = npt.NDArray[np.object_]  # of str: numpy's own strings take as much room each as the longest, a chat's message


def coded(column: pa.ChunkedArray) -> tuple[I32, Words]:
    """A column of words as codes into its sorted vocabulary (-1: null), whatever the order in the files."""
    encoded = column.combine_chunks()
    if not isinstance(encoded, pa.DictionaryArray):
        encoded = encoded.dictionary_encode()
    words = np.array(encoded.dictionary.to_pylist(), dtype=np.object_)
    vocabulary, code = np.unique(words, return_inverse=True)
    index = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return np.append(code, -1).astype(np.int32)[index], vocabulary  # the last stands for null


def distinct_keys(key: I64 | I32, size: int) -> tuple[I64, I64]:
    """Keys from 0 to size - 1 that occur, ascending, and the place of each key among them: as `np.unique`, and five
    times as fast unless they are far fewer than could be.
    """
    if size > _SPARSE * len(key):
        unique, place = np.unique(key, return_inverse=True)
        return unique.astype(np.int64), place
    mask = np.zeros(size, np.bool_)
    mask[key] = True
    occurring = np.flatnonzero(mask)
    rank = np.empty(size, np.int32)
    rank[occurring] = np.arange(len(occurring), dtype=np.int32)
    return occurring, rank[key].astype(np.int64)


def seen_before(key: I64, size: int) -> Bool:
    """Has this key, from 0 to size - 1, come before?"""
    if size > _SPARSE * len(key):
        first = np.unique(key, return_index=True)[1]
    else:
        where = np.full(size, -1, np.int64)
        where[key[::-1]] = np.arange(len(key))[::-1]  # the last that is written stays
        first = where[where >= 0]
    mask = np.ones(len(key), np.bool_)
    mask[first] = False
    return mask
