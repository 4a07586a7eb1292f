"""Arrays to which more is added as it comes: rows, rows of keys, columns, and slots of users."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from skg_bench.core.grid import I32, I64, U64

T = TypeVar("T", bound=np.generic)
A = TypeVar("A", bound=npt.NDArray[Any])


class Growing(Generic[T]):
    """`rows` `[n, ...]`, to which more are added in amortised constant time. What was handed out stays."""

    def __init__(self, rows: "np.ndarray[tuple[int, ...], np.dtype[T]]") -> None:
        self.rows = self._room = rows

    def add(self, more: "np.ndarray[tuple[int, ...], np.dtype[T]]") -> None:
        """Rows behind the others."""
        before, after = len(self.rows), len(self.rows) + len(more)
        if after > len(self._room):
            room = np.empty((max(after, 2 * before), *self.rows.shape[1:]), self.rows.dtype)
            room[:before] = self.rows
            self._room = room
        self._room[before:after] = more
        self.rows = self._room[:after]


class Keyed(Generic[T]):
    """Rows of 64-bit keys, each made once. `make(keys)` gives the rows `[n, ...]` of keys that were not asked
    for before, which ascend.
    """

    def __init__(self, make: "Callable[[U64], np.ndarray[tuple[int, ...], np.dtype[T]]]") -> None:
        self._make = make
        self._keys = np.zeros(0, np.uint64)
        self._rows: np.ndarray[tuple[int, ...], np.dtype[T]] | None = None

    def of(self, keys: U64) -> "np.ndarray[tuple[int, ...], np.dtype[T]]":
        """The rows of keys of any shape, `[*shape, ...]`."""
        place = self._place(keys)
        if self._rows is None or (keys.size and not len(self._keys)) or not (self._keys[place] == keys).all():
            self._add(keys)
            place = self._place(keys)
        rows: np.ndarray[tuple[int, ...], np.dtype[T]] = self._rows[place]  # type: ignore[index]
        return rows

    def _place(self, keys: U64) -> I64:
        return np.minimum(np.searchsorted(self._keys, keys), max(len(self._keys) - 1, 0))

    def _add(self, keys: U64) -> None:
        new = np.setdiff1d(keys, self._keys)
        rows = self._make(new) if self._rows is None else np.concatenate([self._rows, self._make(new)])
        both = np.concatenate([self._keys, new])
        order = np.argsort(both)
        self._keys, self._rows = both[order], rows[order]


def wider(array: A, width: int, fill: Any) -> A:
    """`array` `[B, T, ...]` with room for at least `width` columns; those that are added hold `fill`."""
    if width <= array.shape[1]:
        return array
    more = np.full((len(array), max(width, 2 * array.shape[1]) - array.shape[1], *array.shape[2:]), fill, array.dtype)
    return np.concatenate([array, more], axis=1)  # type: ignore[return-value]


Slots = dict[str, npt.NDArray[Any]]
"""Columns `[B, n, ...]` of which each user fills as many slots as needed."""


def put(columns: Slots, row: I64, slot: I64 | I32, values: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write values `[n, ...]` into slots `[n]` of users `row` `[n]`. A column is made when its first values come, and
    grows where values are longer than those before; what is shorter is padded with 0.
    """
    users, width = next(iter(columns.values())).shape[:2]
    for name, value in values.items():
        column = columns.get(name, np.zeros((users, width, *(0 for _ in value.shape[1:])), value.dtype))
        if column.shape[2:] != value.shape[1:]:
            shape = [max(pair) for pair in zip(column.shape[2:], value.shape[1:], strict=True)]
            column, value = _padded(column, 2, shape), _padded(value, 1, shape)
        column[row, slot] = value
        columns[name] = column


def _padded(array: npt.NDArray[Any], axis: int, shape: Sequence[int]) -> npt.NDArray[Any]:
    """Array with axes from `axis` on as long as `shape`."""
    more = [(0, n - have) for n, have in zip(shape, array.shape[axis:], strict=True)]
    return np.pad(array, [(0, 0)] * axis + more)


def doubled(column: npt.NDArray[Any], fill: int = 0) -> npt.NDArray[Any]:
    """Twice as many slots a user."""
    return np.concatenate([column, np.full_like(column, fill)], axis=1)
