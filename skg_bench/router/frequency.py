"""Control: the skills with the most uses, whatever the message says."""

from dataclasses import dataclass
from typing import ClassVar

from skg_bench.core.errors import UsageError
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.shortlist import max_dots, shortlist, top
from skg_bench.core.types import Query, Shortlist, Skillbooks


@dataclass(frozen=True)
class Frequency:
    """The `top_k` most used skills; their similarity is reported, but does not order them."""

    top_k: int
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if self.top_k < 1:
            raise UsageError(f"router.top_k={self.top_k} must be at least 1")

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """The most used skills, most used first."""
        return shortlist(top(books.uses, books.active, self.top_k), max_dots(query, books))
