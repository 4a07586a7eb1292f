"""Functions of routers: the best similarity of each skill, its centroid, near-duplicates, and the K best skills."""

import numpy as np

from skg_bench.core.grid import F32, F64, I32, I64, SCALE, Bool, cosine, snap
from skg_bench.core.types import Query, Shortlist, Skillbooks

_BITS = 24  # of a skill id in a sort key
BELOW_ALL = np.float32(-(2.0**24))  # below every dot product
_BEYOND = np.iinfo(np.int64).max


def max_dots(query: Query, books: Skillbooks) -> F32:
    """MaxSim: the largest dot product of the message to any example of each skill, `[B, S]`; SKG paper, section 2.2.

    Exact integers in float32; skills that are archived or do not exist get -2**24.
    """
    return _nearest(query.similarity.dots(), books, books.active)


def alike_skills(dots: F32, books: Skillbooks, cosine_from: float) -> Bool:
    """Skills, archived ones too, with an example of at least this cosine to something, by its dot products with all
    examples `[B, E]`; `[B, S]`.
    """
    every = np.arange(books.active.shape[1]) < books.n_skills[:, None]
    return every & (cosine(_nearest(dots, books, every)) >= cosine_from)


def examples_of(books: Skillbooks) -> tuple[I64, I64, I64]:
    """All examples of the books, flat: row, place, and skill in the flat `[B * S]` of the skills. None is padding, of
    which there may be far more than of examples.
    """
    n = books.examples.count.astype(np.int64)
    row = np.arange(len(n)).repeat(n)
    place = np.arange(len(row)) - (n.cumsum() - n).repeat(n)
    return row, place, row * books.active.shape[1] + books.examples.skill[row, place]


def _nearest(dots: F32, books: Skillbooks, allowed: Bool) -> F32:
    b, width = books.active.shape
    best = np.full((b, width), BELOW_ALL, np.float32)
    if len(books.examples.starts):
        np.maximum.reduceat(
            dots[0, : books.examples.count[0]], books.examples.starts, out=best[0, : len(books.examples.starts)]
        )
    else:
        row, place, skill = examples_of(books)
        np.maximum.at(best.reshape(-1), skill, dots[row, place])
    best[~allowed] = BELOW_ALL
    return best


def centroid_cosines(query: Query, books: Skillbooks) -> F64:
    """Cosine of the message to the mean of each skill's examples, `[B, S]` in [0, 1] on the 2**-16 grid.

    The mean points where the sum does, so it is the sum of the dot products over the length of the sum. Both are whole
    numbers (below 2**53 up to 20,000 examples of a skill), and root and quotient are rounded correctly by IEEE 754: the
    same bits everywhere. Archived and missing skills get 0.
    """
    dots = query.similarity.dots()
    b, width = books.active.shape
    row, place, skill = examples_of(books)
    total = np.bincount(skill, dots[row, place], b * width).reshape(b, width)
    length = np.sqrt(
        np.maximum(books.examples.square, 1).astype(np.float64)
    )  # examples that cancel out have no direction
    share = np.maximum(total, 0.0) / (length * SCALE)
    return snap(np.where(books.active, np.minimum(share, 1.0), 0.0))


def top(value: F32 | F64 | I32, allowed: Bool, k: int) -> I32:
    """Ids of the `k` largest allowed values of each row, `[B, k]`, best first, ties by id, -1 beyond the end.

    `value` `[B, S]` must be whole numbers below 2**38 in absolute value.
    """
    b, width = value.shape
    keys: I64 = np.arange(width, dtype=np.int64) - (value.astype(np.int64) << _BITS)  # the smallest is the best
    keys[~allowed] = _BEYOND
    n = min(k, width)
    keys.sort(axis=1)  # as fast as a partition, at any number of users
    best = keys[:, :n]
    out = np.full((b, k), -1, np.int32)
    np.copyto(out[:, :n], best & ((1 << _BITS) - 1), where=best < _BEYOND, casting="same_kind")
    return out


def shortlist(skill: I32, dots: F32) -> Shortlist:
    """Chosen skills `[B, K]` with the cosine of their best example, from the dot products of all `[B, S]`."""
    similarity = cosine(dots[np.arange(len(skill))[:, None], skill])
    similarity[skill < 0] = 0.0
    return Shortlist(skill, similarity)


def ranked(similarity: F64, allowed: Bool, k: int) -> Shortlist:
    """The `k` best allowed skills by `similarity` `[B, S]`, in [0, 1] on the 2**-16 grid; ties by id."""
    skill = top(similarity * 65536.0, allowed, k)
    values = np.take_along_axis(similarity, np.maximum(skill, 0), axis=1)
    values[skill < 0] = 0.0
    return Shortlist(skill, values)
