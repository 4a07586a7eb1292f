"""The words of texts, for routers that compare what is said."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from skg_bench.core.grid import I32, I64

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """Words of N texts; a text's index is its text id. A term is a word in lower case, by its number."""

    words: I32  # [N] length of the text in words, as parted by spaces
    start: I64  # [N + 1] where a text's terms begin in `term`
    term: I32  # [start[N]] the terms of each text in its order, 0..size-1
    size: int  # number of different terms

    def of(self, text: I32) -> tuple[I64, I32]:
        """Terms of texts `[n]`, flat: which of the n each belongs to, and the term."""
        first, length = self.start[text], self.start[text + 1] - self.start[text]
        owner = np.repeat(np.arange(len(text)), length)
        nth = np.arange(len(owner)) - np.repeat(np.cumsum(length) - length, length)
        return owner, self.term[np.repeat(first, length) + nth]


@dataclass(frozen=True, slots=True, eq=False)
class TermsOfBook:
    """The words of messages `text` `[B]` and of the examples `[B, E]` of books: core.types.BookWords."""

    vocabulary: Vocabulary
    text: I32
    example: I32

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


def vocabulary_of(texts: Sequence[str]) -> Vocabulary:
    """Terms of texts, numbered in order of their first occurrence."""
    terms = [_WORD.findall(text.lower()) for text in texts]
    number = {word: i for i, word in enumerate(dict.fromkeys(chain.from_iterable(terms)))}
    start = np.cumsum([0, *map(len, terms)], dtype=np.int64)
    words = np.array([text.count(" ") + 1 for text in texts], np.int32)
    return Vocabulary(words, start, np.array([number[w] for w in chain.from_iterable(terms)], np.int32), len(number))
