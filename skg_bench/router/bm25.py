"""BM25: words in common with an example, rare words weighing more."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I32, I64, snap
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.shortlist import ranked
from skg_bench.core.types import Query, Shortlist, Skillbooks


@dataclass(frozen=True)
class BM25:
    """The skills with the example that has the highest BM25 score, over the examples of the user's own active skills.

    A score (Robertson and Zaragoza 2009; Lucene's idf, never negative) has no upper end, so the similarity is the share
    of what a verbatim repeat of the message would score, 1 at most. A repeat has 1, no word in common 0; words that the
    book has never seen are the rarest, and lower the share. Paraphrases share few words: thresholds belong far lower
    than those of cosines.
    """

    top_k: int
    k1: float
    b: float
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if self.top_k < 1:
            raise UsageError(f"router.top_k={self.top_k} must be at least 1")
        if not 0 <= self.k1 <= 100:
            raise UsageError(f"router.k1={self.k1} must lie in [0, 100]")
        if not 0 <= self.b <= 1:
            raise UsageError(f"router.b={self.b} must lie in [0, 1]")

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """Skills that share a word with the message, best first."""
        rows, width = books.active.shape
        known = np.arange(books.examples.text.shape[1]) < books.examples.count[:, None]
        known &= np.take_along_axis(books.active, books.examples.skill, axis=1)
        row, position = np.nonzero(known)  # documents, flat
        documents, word = query.terms.examples(row, position)
        askers, words = query.terms.message()
        asker, query_word, times = _counted(askers, words, query.terms.size)
        column = np.full((rows, query.terms.size), -1, np.int32)  # where a word stands among those that are asked
        column[asker, query_word] = np.arange(len(asker), dtype=np.int32)
        at = column[row[documents], word]
        document, match, often = _counted(documents[at >= 0], at[at >= 0], len(asker))

        n = np.bincount(row, minlength=rows)
        document_length, length = np.bincount(documents, minlength=len(row)), np.bincount(askers, minlength=rows)
        mean = np.bincount(row, document_length, rows) / np.maximum(n, 1)
        having = np.bincount(match, minlength=len(asker))
        idf = snap(np.log1p((n[asker] - having + 0.5) / (having + 0.5)))
        weight = idf * times  # both factors are multiples of 2**-16 below 2**16: sums are exact in any order
        owner = row[document]
        score = np.bincount(
            document, weight[match] * self._saturated(often, document_length[document], mean[owner]), len(row)
        )
        repeat = np.bincount(asker, weight * self._saturated(times, length[asker], mean[asker]), rows)
        share = snap(np.minimum(score / np.where(repeat > 0, repeat, 1.0)[row], 1.0))
        best = np.zeros(rows * width)
        np.maximum.at(best, row * width + books.examples.skill[row, position], share)
        return ranked(best.reshape(rows, width), best.reshape(rows, width) > 0, self.top_k)

    def _saturated(self, often: I64, length: I64, mean: F64) -> F64:
        """A word's frequency, discounted for repeats and for long documents."""
        relative = 1.0 - self.b + self.b * length / np.maximum(mean, 1.0)
        return snap(often * (self.k1 + 1.0) / (often + self.k1 * relative))


def _counted(owner: I64, item: I32, size: int) -> tuple[I64, I64, I64]:
    """Different (owner, item) pairs in order, and how often each occurs."""
    pair, often = np.unique(owner * max(size, 1) + item, return_counts=True)
    return pair // max(size, 1), pair % max(size, 1), often
