"""MaxSim routing over the user's own skillbook (SKG paper, section 2.2, signal 1)."""

from dataclasses import dataclass
from typing import ClassVar

from skg_bench.core.errors import UsageError
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.shortlist import BELOW_ALL, max_dots, shortlist, top
from skg_bench.core.types import Query, Shortlist, Skillbooks


@dataclass(frozen=True)
class MaxSim:
    """The `top_k` skills whose nearest example is nearest to the message."""

    top_k: int
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if self.top_k < 1:
            raise UsageError(f"router.top_k={self.top_k} must be at least 1")

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """The nearest skills, nearest first."""
        dots = max_dots(query, books)
        return shortlist(top(dots, dots > BELOW_ALL, self.top_k), dots)
