"""Two routers combined by the ranks of their skills, not by their scores."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import snap
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.shortlist import top
from skg_bench.core.types import Query, Router, Shortlist, Skillbooks


@dataclass(frozen=True)
class Hybrid:
    """Reciprocal rank fusion of two routers: a skill that ranks high in either, or fairly high in both, comes first.

    It gets 1 / (constant + place) from each router that lists it, places counted from 1 (Cormack, Clarke and Buettcher,
    SIGIR 2009). The sum says nothing about how near a message is: somebody is always first. So the similarity is the
    sum, as a share of what a skill gets that both put first, times the largest similarity that either router gives any
    skill. What only one of them lists gets half of that at most.
    """

    first: Router
    second: Router
    constant: float
    top_k: int
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if self.top_k < 1:
            raise UsageError(f"router.top_k={self.top_k} must be at least 1")
        if not 0 <= self.constant <= 1e6:
            raise UsageError(f"router.constant={self.constant} must lie in [0, 1000000]")

    @property
    def sees_truth(self) -> bool:
        """Is one of the two an oracle?"""
        return self.first.sees_truth or self.second.sees_truth

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """Skills that either router lists, by the sum of what both give; ties by id."""
        b, width = books.active.shape
        share, best = np.zeros((b, width)), np.zeros(b)
        for router in (self.first, self.second):
            shortlist = router.route(query, books)
            row, place = np.nonzero(shortlist.skill >= 0)
            share[row, shortlist.skill[row, place]] += 0.5 * (self.constant + 1.0) / (self.constant + 1.0 + place)
            best = np.maximum(best, shortlist.similarity.max(axis=1, initial=0.0))
        skill = top(np.rint(share * 2.0**32), share > 0, self.top_k)
        similarity = snap(np.take_along_axis(share, np.maximum(skill, 0), axis=1) * best[:, None])
        similarity[skill < 0] = 0.0
        return Shortlist(skill, similarity)
