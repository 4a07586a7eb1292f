"""What routers share: the best similarity of each skill, and the K best skills."""

import numpy as np

from skg_bench.core.grid import F32, F64, I32, I64, Bool, cosine
from skg_bench.core.types import Book, Query, Shortlist

_BITS = 24  # of a skill id in a sort key
_NONE = np.float32(-(2.0**24))  # below every dot product


def max_dots(query: Query, book: Book) -> F32:
    """MaxSim: the largest dot product of the message to any example of each skill, `[B, S]`; SKG paper, section 2.2.

    Exact integers in float32; skills that are archived or do not exist get -2**24.
    """
    dots = query.similarity.dots(query.text, book.example)
    b, width = book.active.shape
    if book.grouped and b == 1:
        n = int(book.n_skills[0])
        starts = np.searchsorted(book.example_skill[0, : book.n_examples[0]], np.arange(n))
        best = np.full((1, width), _NONE, np.float32)
        best[0, :n] = np.maximum.reduceat(dots[0, : book.n_examples[0]], starts)
    else:
        beyond = np.arange(dots.shape[1], dtype=np.int32) >= book.n_examples[:, None]
        np.copyto(dots, _NONE, where=beyond)
        best = np.full((b, width), _NONE, np.float32)
        flat = (np.arange(b, dtype=np.int64) * width)[:, None] + book.example_skill
        np.maximum.at(best.reshape(-1), flat.reshape(-1), dots.reshape(-1))
    return np.where(book.active, best, _NONE)


def top(value: F32 | F64 | I32, allowed: Bool, k: int) -> I32:
    """Ids of the `k` largest allowed values of each row, `[B, k]`, best first, ties by id, -1 beyond the end.

    `value` `[B, S]` must be whole numbers below 2**38 in absolute value.
    """
    b, width = value.shape
    ids = (1 << _BITS) - 1 - np.arange(width, dtype=np.int64)
    keys: I64 = (value.astype(np.int64) << _BITS) | ids
    keys[~allowed] = np.iinfo(np.int64).min
    n = min(k, width)
    best = np.partition(keys, width - n, axis=1)[:, width - n :] if n < width else keys
    best = np.sort(best, axis=1)[:, ::-1]
    found = np.where(best == np.iinfo(np.int64).min, -1, (1 << _BITS) - 1 - (best & ((1 << _BITS) - 1)))
    out = np.full((b, k), -1, np.int32)
    out[:, :n] = found
    return out


def shortlist(skill: I32, dots: F32) -> Shortlist:
    """Chosen skills `[B, K]` with the cosine of their best example, from the dot products of all `[B, S]`."""
    rows = np.arange(len(skill))[:, None]
    return Shortlist(skill, np.where(skill >= 0, cosine(dots[rows, np.maximum(skill, 0)]), 0.0))
