"""One direction for each skill: the mean of its examples."""

from dataclasses import dataclass
from typing import ClassVar

from skg_bench.core.errors import UsageError
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.shortlist import centroid_cosines, ranked
from skg_bench.core.types import Query, Shortlist, Skillbooks


@dataclass(frozen=True)
class Centroid:
    """The `top_k` skills whose mean example is nearest to the message; similarity is that cosine.

    A mean is nearer to most messages than a single example is, so its cosines are the higher the more examples a skill
    has; with one example it is MaxSim.
    """

    top_k: int
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if self.top_k < 1:
            raise UsageError(f"router.top_k={self.top_k} must be at least 1")

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """The nearest skills, nearest first."""
        return ranked(centroid_cosines(query, books), books.active, self.top_k)
