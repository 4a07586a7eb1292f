"""Similarities by place in a user's own skillbook."""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.grid import F32, I32, I64
from skg_bench.core.types import Similarity, Skillbooks


@dataclass(frozen=True)
class InBook:
    """Similarities of messages `text` `[B]` and the examples of their books: core.types.BookSimilarity."""

    similarity: Similarity
    text: I32
    books: Skillbooks
    rows: I64 | None = None  # [B] of the cohort; None: its first B

    @property
    def example(self) -> I32:
        """Text ids of the examples, `[B, E]`: taken from the books when they are read first."""
        return self.books.examples.text

    def dots(self) -> F32:
        """Dot products of the message with each example, `[B, E]`."""
        return self.similarity.dots(self.text, self.example, self.rows)

    def around(self, position: I64) -> F32:
        """Dot products of the example at place `[B]` of each book with each example, `[B, E]`."""
        return self.similarity.dots(self.example[np.arange(len(position)), position], self.example, self.rows)

    def gram(self, position: I64) -> F32:
        """Dot products of the examples at places `[B, M]` with one another, `[B, M, M]`."""
        return self.similarity.gram(np.take_along_axis(self.example, position, axis=1))
