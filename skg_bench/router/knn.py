"""A vote of the nearest examples, whatever skills they belong to."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import cosine, snap
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.shortlist import ranked
from skg_bench.core.types import Query, Shortlist, Skillbooks

_BITS = 24  # of a skill id in a sort key
_BEYOND = np.iinfo(np.int64).max


@dataclass(frozen=True)
class KNN:
    """The skills of the `neighbours` examples nearest to the message, by the sum of these examples' cosines.

    Similarity is that sum over the number of neighbours: the skill's share of the votes times how near they are. It
    reaches a threshold only if most neighbours agree and are near, so that one example among many does not; with one
    neighbour it is MaxSim. Where a book has fewer examples than that, all vote.
    """

    top_k: int
    neighbours: int
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        for name in ("top_k", "neighbours"):
            if getattr(self, name) < 1:
                raise UsageError(f"router.{name}={getattr(self, name)} must be at least 1")

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """Skills that have a neighbour, most votes first; equally near examples vote in order of their skills' ids."""
        dots = query.similarity.dots()
        b, width = books.active.shape
        known = np.arange(dots.shape[1]) < books.examples.count[:, None]
        known &= np.take_along_axis(books.active, books.examples.skill, axis=1)
        keys = books.examples.skill - (dots.astype(np.int64) << _BITS)  # the smallest is the nearest
        keys[~known] = _BEYOND
        keys.sort(axis=1)
        nearest = keys[:, : self.neighbours]
        row, position = np.nonzero(nearest < _BEYOND)
        skill = nearest[row, position] & ((1 << _BITS) - 1)
        vote = cosine(((skill - nearest[row, position]) >> _BITS).astype(np.float64))
        at = row * width + skill
        votes = np.bincount(at, vote, b * width).reshape(b, width)  # multiples of 2**-16: exact in any order
        voters = np.bincount(row, minlength=b)[:, None]
        return ranked(snap(votes / np.maximum(voters, 1)), np.bincount(at, minlength=b * width).reshape(b, width) > 0,
                      self.top_k)  # fmt: skip
