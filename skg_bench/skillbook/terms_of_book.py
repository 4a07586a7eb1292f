"""The words of skillbooks, for routers that compare what is said."""

from dataclasses import dataclass

from skg_bench.core.grid import I32, I64
from skg_bench.core.types import Skillbooks
from skg_bench.core.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class TermsOfBook:
    """The words of messages `text` `[B]` and of the examples of their books: core.types.BookWords."""

    vocabulary: Vocabulary
    text: I32
    books: Skillbooks

    @property
    def example(self) -> I32:
        """Text ids of the examples, `[B, E]`: taken from the books when they are read first."""
        return self.books.examples.text

    @property
    def size(self) -> int:
        """Number of different terms."""
        return self.vocabulary.size

    def message(self) -> tuple[I64, I32]:
        """Terms of the messages, flat: row, term."""
        return self.vocabulary.of(self.text)

    def examples(self, row: I64, place: I64) -> tuple[I64, I32]:
        """Terms of the examples at places `[n]` of users `row` `[n]`, flat: which of the n, term."""
        return self.vocabulary.of(self.example[row, place])
