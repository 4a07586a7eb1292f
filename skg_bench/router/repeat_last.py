"""Control: the skill that was used last, whatever the message says."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.shortlist import max_dots, shortlist, top
from skg_bench.core.types import Query, Shortlist, Skillbooks


@dataclass(frozen=True)
class RepeatLast:
    """The skill that was used or captured last; its similarity is reported, but did not choose it."""

    top_k: ClassVar[int] = 1
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """One skill, if there is any; of those used at the same second the lower id."""
        return shortlist(top(books.last_used.astype(np.float64), books.active, 1), max_dots(query, books))
