"""A curator whose operations a test alters, or looks at, on their way to the book."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from skg_bench.core.batch import Batch
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import Bool
from skg_bench.core.types import Curator, Observation, Skillbooks
from skg_bench.core.world import Reaction


@dataclass(frozen=True)
class Altered:
    """`curator`, whose operations are what `alter` makes of them."""

    curator: Curator[Any]
    alter: Callable[[Batch, Observation, Skillbooks], Batch]
    sees_truth: bool = False

    @property
    def reasons(self) -> Sequence[str]:
        return self.curator.reasons

    def start(self, n: int) -> Any:
        return self.curator.start(n)

    def offers(self, seen: Observation, state: Any) -> Bool:
        return self.curator.offers(seen, state)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: Any
    ) -> tuple[Any, Batch]:
        state, batch = self.curator.curate(seen, reaction, known, books, state)
        return state, self.alter(batch, seen, books)
