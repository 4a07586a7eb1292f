"""MaxSim over a shared skillbook: a router as any other, with an index in place of the user's own examples."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F32, I16, I32, Bool
from skg_bench.core.shortlist import BELOW_ALL, shortlist, top
from skg_bench.core.types import Query, Shortlist, Skillbooks
from skg_bench.router.shared.index import Index

_FIRST = 128  # examples of the first search: five skills of CLINC150 need 27 by median, 174 at most


@dataclass(frozen=True)
class SharedMaxSim:
    """The `top_k` skills whose nearest example is nearest to the message, as the index finds them.

    It is made with an index, not from a yaml, and serves B messages over one book, as `shared_book` (one_book.py)
    gives it. With `neighbours` an index is asked for so many examples, and a skill is not listed if as many of others
    are nearer than all of its own: a shortlist may be shorter than `top_k`. Without, it is asked for more and more,
    until no other example can change the shortlist; a flat index then gives what `router=maxsim` gives, to the bit.
    """

    index: Index
    vectors: I16  # [N, D] of all messages, by text id
    top_k: int
    neighbours: int | None = None
    sees_truth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, value in {"top_k": self.top_k, "neighbours": self.neighbours}.items():
            if value is not None and value < 1:
                raise UsageError(f"router.{name}={value} must be at least 1")

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """The nearest active skills, nearest first; UsageError if the index was built over examples of other skills."""
        n, count = len(self.index.skill), books.examples.count
        if len(count) and not (int(count.max()) == n and np.array_equal(books.examples.skill[0, :n], self.index.skill)):
            raise UsageError(
                f"an index of {n} examples of {self.index.skill.max() + 1} skills, and a book with {count.max()} of "
                f"{books.active.shape[1]}, or of others; build the index again from this book"
            )
        if self.neighbours is None:
            best = self._exact(query.text, books.active)
        else:
            best = self._best(*self.index.search(self.vectors[query.text], self.neighbours), books.active)
        return shortlist(top(best, best > BELOW_ALL, self.top_k), best)

    def _exact(self, text: I32, active: Bool) -> F32:
        """Largest dot product of each active skill, `[B, S]`, right for the `top_k` best of them.

        A skill of which no example was found is at most as near as another example may be. So the search has gone far
        enough where that bound lies below the best examples of `top_k` skills: none that ties with them is missing.
        """
        n, k = len(self.index.skill), _FIRST
        wanted = np.minimum(active.sum(axis=1), self.top_k)
        best, left = np.full(active.shape, BELOW_ALL, np.float32), np.arange(len(text))
        while len(left):
            example, dots, bound = self.index.candidates(self.vectors[text[left]], min(k, n))
            best[left] = self._best(example, dots, active[left])
            if k >= n:
                break
            left = left[(best[left] > bound[:, None]).sum(axis=1) < wanted[left]]
            k *= 2
        return best

    def _best(self, example: I32, dots: F32, active: Bool) -> F32:
        """Largest dot product of each active skill among examples `[B, k]`, `[B, S]`."""
        row, position = np.nonzero(example >= 0)
        best = np.full(active.shape, BELOW_ALL, np.float32)
        np.maximum.at(best, (row, self.index.skill[example[row, position]]), dots[row, position])
        best[~active] = BELOW_ALL
        return best
