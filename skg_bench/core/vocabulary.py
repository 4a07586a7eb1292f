"""The words of texts, for routers that compare what is said."""

import re
from collections.abc import Sequence
from itertools import chain

import numpy as np

from skg_bench.core.grid import I32, I64
from skg_bench.core.growing import Growing
from skg_bench.core.text import word_count

_WORD = re.compile(r"\w+")


class Vocabulary:
    """Words of N texts, to which more are added; a text's index is its text id. A term is a word in lower case, by its
    number. Terms are numbered in order of their first occurrence, when a term is asked for: few routers compare words,
    and 15,000 messages take 0.1 s.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._number: dict[str, int] = {}
        self._words = Growing(np.zeros(0, np.int32))
        self._start = Growing(np.zeros(1, np.int64))
        self._term = Growing(np.zeros(0, np.int32))
        self._waiting: list[Sequence[str]] = []  # texts whose terms have no number yet
        self.add(texts)

    def __len__(self) -> int:
        return len(self._words.rows)

    @property
    def words(self) -> I32:
        """Length of each text in words, as parted by white space, `[N]`."""
        return self._words.rows

    @property
    def start(self) -> I64:
        """Beginning of each text's terms in `term`, `[N + 1]`."""
        self._number_terms()
        return self._start.rows

    @property
    def term(self) -> I32:
        """The terms of each text in its order, 0..size-1, `[start[N]]`."""
        self._number_terms()
        return self._term.rows

    @property
    def size(self) -> int:
        """Number of different terms."""
        self._number_terms()
        return len(self._number)

    def of(self, text: I32) -> tuple[I64, I32]:
        """Terms of texts `[n]`, flat: which of the n each belongs to, and the term."""
        first, length = self.start[text], self.start[text + 1] - self.start[text]
        owner = np.repeat(np.arange(len(text)), length)
        nth = np.arange(len(owner)) - np.repeat(np.cumsum(length) - length, length)
        return owner, self.term[np.repeat(first, length) + nth]

    def add(self, texts: Sequence[str]) -> None:
        """The words of the next texts."""
        self._words.add(np.array([word_count(text) for text in texts], np.int32))
        self._waiting.append(texts)

    def _number_terms(self) -> None:
        if not self._waiting:
            return
        terms = [_WORD.findall(text.lower()) for text in chain.from_iterable(self._waiting)]
        self._waiting = []
        for word in dict.fromkeys(chain.from_iterable(terms)):
            self._number.setdefault(word, len(self._number))
        number, end = self._number, self._start.rows[-1]
        self._start.add(end + np.cumsum([len(words) for words in terms], dtype=np.int64))
        self._term.add(np.array([number[word] for word in chain.from_iterable(terms)], np.int32))


def vocabulary_of(texts: Sequence[str]) -> Vocabulary:
    """Terms of texts, numbered in order of their first occurrence."""
    return Vocabulary(texts)
