"""MaxSim over a shared skillbook: a router as any other, with an index in place of the user's own examples."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16, cosine
from skg_bench.core.shortlist import ranked
from skg_bench.core.types import Query, Shortlist, Skillbooks
from skg_bench.router.shared.index import Index


@dataclass(frozen=True)
class SharedMaxSim:
    """The `top_k` skills of the `neighbours` examples that the index finds nearest to a message.

    It is made with an index, not from a yaml, and serves B messages over one book, as `core.shared.shared_book`
    gives it. A skill is not listed if `neighbours` examples of others are nearer than all of its own, so a shortlist
    may be shorter than `top_k`; with a flat index and as many neighbours as examples it is MaxSim to the bit.
    """

    index: Index
    vectors: I16  # [N, D] of all messages, by text id
    top_k: int
    neighbours: int
    sees_truth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in ("top_k", "neighbours"):
            if getattr(self, name) < 1:
                raise UsageError(f"router.{name}={getattr(self, name)} must be at least 1")

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """The nearest active skills, nearest first; UsageError if the index was built over another book."""
        b, width = books.active.shape
        if int(books.n_examples.max(initial=0)) != len(self.index.skill) or int(self.index.skill.max()) >= width:
            raise UsageError(
                f"an index of {len(self.index.skill)} examples of {self.index.skill.max() + 1} skills over a book with "
                f"{books.n_examples.max(initial=0)} of {width}; build it again from this book"
            )
        example, dots = self.index.search(self.vectors[query.text], self.neighbours)
        row, position = np.nonzero(example >= 0)
        skill = self.index.skill[example[row, position]]
        best = np.zeros((b, width))
        np.maximum.at(best, (row, skill), cosine(dots[row, position]))
        listed = np.zeros((b, width), np.bool_)
        listed[row, skill] = True
        return ranked(best, listed & books.active, self.top_k)
