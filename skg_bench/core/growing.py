"""An array to which rows are added, in amortised constant time for each."""

from typing import Generic, TypeVar

import numpy as np

T = TypeVar("T", bound=np.generic)


class Growing(Generic[T]):
    """`rows` `[n, ...]`; what was handed out before stays as it is."""

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
