"""Columns `[B, n, ...]` of which each user fills as many slots as needed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from skg_bench.core.grid import I32, I64

Slots = dict[str, npt.NDArray[Any]]


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
