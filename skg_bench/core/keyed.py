"""Rows that belong to 64-bit keys, each made once and found for many keys at a time."""

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from skg_bench.core.grid import I64, U64

T = TypeVar("T", bound=np.generic)


class Keyed(Generic[T]):
    """`make(keys)` gives the rows `[n, ...]` of keys that were not asked for before, which ascend."""

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
