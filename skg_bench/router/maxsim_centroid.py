"""A weighted mean of MaxSim and centroid: similarity to the nearest example, and to all examples together."""

from dataclasses import dataclass
from typing import ClassVar

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import cosine, snap
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.shortlist import centroid_cosines, max_dots, ranked
from skg_bench.core.types import Query, Shortlist, Skillbooks


@dataclass(frozen=True)
class MaxSimCentroid:
    """Similarity is `weight` times MaxSim plus `1 - weight` times the cosine to the mean of a skill's examples."""

    top_k: int
    weight: float
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if self.top_k < 1:
            raise UsageError(f"router.top_k={self.top_k} must be at least 1")
        if not 0 <= self.weight <= 1:
            raise UsageError(f"router.weight={self.weight} must lie in [0, 1]: 1 is MaxSim, 0 the centroid")

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """The most similar skills, best first."""
        nearest, centre = cosine(max_dots(query, books)), centroid_cosines(query, books)
        return ranked(snap(self.weight * nearest + (1.0 - self.weight) * centre), books.active, self.top_k)
