"""Functions of routers that fit a regression for each message: the nearest examples, and scores summed by skill."""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.grid import F32, F64, I64, SCALE, Bool, snap
from skg_bench.core.shortlist import ranked
from skg_bench.core.types import Query, Shortlist, Skillbooks


@dataclass(frozen=True)
class Neighbourhood:
    """The examples of active skills nearest to each message; nearest first, then by skill and age.

    This order does not depend on whether a book keeps its examples by skill, as sums in another order have other bits.
    """

    place: I64  # [B, N] of the examples in the book
    mask: Bool  # [B, N] there is such an example
    skill: I64  # [B, N] its skill; anything where there is none
    cosine: F64  # [B, N] of the message to it

    def gram(self, query: Query) -> F64:
        """Cosines of the examples with one another, `[B, N, N]`."""
        return query.similarity.gram(self.place).astype(np.float64) / SCALE**2

    def sums(self, books: Skillbooks, share: F64 | None = None) -> F64:
        """Sum of `share` `[B, N]` over the examples of each skill, `[B, S]`; None: their number."""
        b, width = books.active.shape
        row, position = np.nonzero(self.mask)
        at = row * width + self.skill[row, position]
        weights = None if share is None else share[row, position]
        return np.bincount(at, weights, b * width).reshape(b, width).astype(np.float64)

    def shortlist(self, books: Skillbooks, score: F64, top_k: int) -> Shortlist:
        """The `top_k` skills with the highest scores `[B, S]` among those with an example here; in [0, 1]."""
        return ranked(snap(np.clip(score, 0.0, 1.0)), self.sums(books) > 0, top_k)


def neighbourhood(query: Query, books: Skillbooks, most: int) -> Neighbourhood:
    """Up to `most` examples for each message."""
    dots = query.similarity.dots()
    known = np.arange(dots.shape[1]) < books.examples.count[:, None]
    known &= np.take_along_axis(books.active, books.examples.skill, axis=1)
    place = _nearest(dots, known, books)[:, :most]
    cosine = np.take_along_axis(dots, place, axis=1).astype(np.float64) / SCALE**2
    skill = np.take_along_axis(books.examples.skill, place, axis=1).astype(np.int64)
    return Neighbourhood(place, np.take_along_axis(known, place, axis=1), skill, cosine)


def _nearest(dots: F32, known: Bool, books: Skillbooks) -> I64:
    """Places of the known examples, then of the others, `[B, E]`."""
    by_skill = np.argsort(books.examples.skill, axis=1, kind="stable")
    keys = np.where(known, -dots.astype(np.int64), np.iinfo(np.int64).max)
    keys = np.take_along_axis(keys, by_skill, axis=1)
    return np.take_along_axis(by_skill, np.argsort(keys, axis=1, kind="stable"), axis=1)
