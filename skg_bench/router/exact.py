"""Control: a cache of verbatim messages."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.shortlist import top
from skg_bench.core.types import Query, Shortlist, Skillbooks


@dataclass(frozen=True)
class Exact:
    """Skills that have this very message among their examples; similarity 1, or nothing."""

    top_k: int
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if self.top_k < 1:
            raise UsageError(f"router.top_k={self.top_k} must be at least 1")

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """Skills with a verbatim example, by id."""
        row, position = np.nonzero(books.examples.text == query.text[:, None])
        known = position < books.examples.count[row]
        same = np.zeros(books.active.shape, np.bool_)
        same[row[known], books.examples.skill[row, position][known]] = True
        skill = top(np.zeros(same.shape, np.int32), same & books.active, self.top_k)
        return Shortlist(skill, (skill >= 0).astype(np.float64))
