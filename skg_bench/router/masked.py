"""Counterfactual: one skill is left out at serving, and goes on being learned."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import Bool
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.shortlist import alike_skills
from skg_bench.core.types import Query, Router, Shortlist, Skillbooks


@dataclass(frozen=True)
class Masked:
    """`router`, which does not find the skill with the id `skill` (a user's first has 0).

    `lineage`: nor any skill with an example of at least this cosine to that skill's first one; None: it finds them.
    """

    router: Router
    skill: int
    lineage: float | None
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if self.skill < 0:
            raise UsageError(f"router.skill={self.skill} must not be negative; a user's first skill has the id 0")
        if self.lineage is not None and not 0 <= self.lineage <= 1:
            raise UsageError(f"router.lineage={self.lineage} must lie in [0, 1], or null for the skill alone")

    @property
    def sees_truth(self) -> bool:
        """As the router inside does."""
        return self.router.sees_truth

    @property
    def top_k(self) -> int:
        """Places of its shortlist."""
        return self.router.top_k

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """Shortlist of the router inside from the rest of the book."""
        return self.router.route(query, replace(books, active=books.active & ~self._masked(query, books)))

    def _masked(self, query: Query, books: Skillbooks) -> Bool:
        """The skill and its lineage, `[B, S]`."""
        b, width = books.active.shape
        masked = np.tile(np.arange(width) == self.skill, (b, 1))
        if self.lineage is None:
            return masked
        mask = (books.examples.skill == self.skill) & (
            np.arange(books.examples.text.shape[1]) < books.examples.count[:, None]
        )
        has = np.flatnonzero(mask.any(axis=1))
        if len(has):
            first = mask.argmax(axis=1).astype(np.int64)
            masked[has] |= alike_skills(query.similarity.around(first), books, self.lineage)[has]
        return masked
