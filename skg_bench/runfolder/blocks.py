"""Arrays as the pieces of memory that they lie in: arrays that share memory share it after loading too."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

_ALIGNED = 64  # bytes; a block lies as it lay, so that loops over it take the same steps
_DTYPE = re.compile(r"[<>|=][?biufcSUmM]\d+(\[\d*[a-zA-Z]+\])?")

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """A piece of memory."""

    data: Bytes  # [n]
    skew: int  # its address, modulo 64


@dataclass(frozen=True, slots=True)
class Place:
    """How an array lies in a block."""

    block: int  # its index; -1: the array is empty
    offset: int  # [bytes]
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # [bytes]
    writeable: bool


@dataclass(frozen=True, slots=True)
class _Memory:
    """Interface by which numpy reads a piece of memory."""

    __array_interface__: dict[str, Any]


def plain_dtype(name: str) -> np.dtype[Any]:
    """The dtype of this name. Raises ValueError unless it is one of numbers, truth values, texts, bytes or times."""
    if not _DTYPE.fullmatch(name):
        raise ValueError(f"arrays of {name!r} are not saved; valid are those of numbers, texts, bytes and times")
    return np.dtype(name)


def memory_places(arrays: Sequence[Array]) -> tuple[list[MemoryBlock], list[Place]]:
    """The blocks of memory that arrays lie in, without copying them, and where each of them lies.

    Raises ValueError for arrays of Python objects, and of records.
    """
    bounds = np.array([byte_bounds(array) if array.size else (0, 0) for array in arrays], np.int64).reshape(-1, 2)
    blocks: list[tuple[int, int]] = []  # first byte, and the one behind the last
    block_of = np.full(len(arrays), -1)
    for i in np.lexsort((bounds[:, 1], bounds[:, 0])).tolist():
        low, high = bounds[i].tolist()
        if low == high:
            continue
        if blocks and low < blocks[-1][1]:
            blocks[-1] = blocks[-1][0], max(high, blocks[-1][1])
        else:
            blocks.append((low, high))
        block_of[i] = len(blocks) - 1
    places = []
    for array, low, block in zip(arrays, bounds[:, 0].tolist(), block_of.tolist(), strict=True):
        plain_dtype(array.dtype.str)
        offset = low - blocks[block][0] if block >= 0 else 0
        first = int(array.__array_interface__["data"][0]) - low if block >= 0 else 0  # negative strides begin later
        places.append(
            Place(block, offset + first, array.dtype.str, array.shape, array.strides, bool(array.flags.writeable))
        )
    return [MemoryBlock(_bytes(low, high - low), low % _ALIGNED) for low, high in blocks], places


def room(size: int, skew: int) -> Bytes:
    """Memory for a block of `size` bytes."""
    whole = np.empty(size + _ALIGNED, np.uint8)
    first = (skew - int(whole.__array_interface__["data"][0])) % _ALIGNED
    return whole[first : first + size]


def array_at(blocks: Sequence[Bytes], place: Place) -> Array:
    """The array at a place. Raises ValueError, TypeError or IndexError for a place outside of its block."""
    dtype = plain_dtype(place.dtype)
    if place.block < 0:
        array: Array = np.empty(place.shape, dtype)
        if array.size:
            raise ValueError(f"an array of shape {place.shape} lies in no block")
    else:
        array = np.ndarray(place.shape, dtype, blocks[place.block], place.offset, place.strides)
    array.flags.writeable = place.writeable
    return array


def _bytes(address: int, size: int) -> Bytes:
    return np.asarray(_Memory({"data": (address, True), "shape": (size,), "typestr": "|u1", "version": 3}))
