"""Knowledge of strategies in general: which kinds there are, what texts say, and what tends to fit where.

All of it is common knowledge of texts and contexts. What a user likes and wants is not in it.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import sqrt
from statistics import NormalDist

import numpy as np

from skg_bench.core.content import Content, Contents
from skg_bench.core.draws import Purpose, fold, key, uniform
from skg_bench.core.grid import F64, I32, I64, U64, Bool, snap
from skg_bench.core.types import WrittenTexts
from skg_bench.skillbook.library.strategies import Strategies


@dataclass(frozen=True, eq=False)
class Shelf:
    """The texts of a library of strategies, by number."""

    strategies: Strategies

    @cached_property
    def keys(self) -> U64:
        """Keys of the contents, `[N]`."""
        return np.array([content.key for content in self.strategies.contents], np.uint64)

    @cached_property
    def _by_key(self) -> I64:
        return np.argsort(self.keys)

    def numbers(self, content: U64) -> I64:
        """Numbers of the texts that contents of these keys are; -1: none of the library, or no content."""
        place = self._by_key[np.minimum(np.searchsorted(self.keys, content, sorter=self._by_key), len(self.keys) - 1)]
        return np.where(self.keys[place] == content, place, -1)

    def kinds(self, content: U64, contents: Contents) -> I64:
        """Kinds of contents of these keys, by what they say; -1: nothing."""
        number = self.numbers(content)
        kind: I64 = np.where(number >= 0, self.strategies.kind[number], -1).astype(np.int64)
        if (other := (number < 0) & (content != 0)).any():
            keys, index = np.unique(content[other], return_inverse=True)
            kind[other] = np.array([_kind(self.strategies, c) for c in contents.of(keys) if c is not None])[index]
        return kind

    def present(self, content: U64) -> Bool:
        """Texts that the books say already, `[n, N]`, by the contents of their skills `[n, S]`."""
        row, s = np.nonzero((number := self.numbers(content)) >= 0)
        present = np.zeros((len(content), len(self.keys)), np.bool_)
        present[row, number[row, s]] = True
        return present

    def drawn(self, kind: I64, sound: Bool, beside: Bool, u: F64) -> I64:
        """A text of each kind and soundness `[n]`, one that is not `beside` `[n, N]` if there is such, by uniforms."""
        fitting = (self.strategies.kind == kind[:, None]) & (self.strategies.sound == sound[:, None])
        fitting = np.where(fitting.any(axis=1)[:, None], fitting, self.strategies.kind == kind[:, None])
        new = fitting & ~beside
        return nth_true(np.where(new.any(axis=1)[:, None], new, fitting), u)

    def written(self, number: I64, contents: Contents) -> U64:
        """The keys of texts `[n]`, each of which the run then knows."""
        keys: U64 = self.keys[number]
        for i, text in dict(zip(number.tolist(), keys.tolist(), strict=True)).items():
            if not contents.knows(text):
                contents.add(self.strategies.contents[i])
        return keys

    def contexts(self, text: I32, texts: WrittenTexts, row: I64 | I32 | None = None) -> I64:
        """The contexts that messages `[n]` of the users of rows `[n]` name, -1: none."""
        words_of = texts.read(text, row)
        known = {words: _context(self.strategies, words) for words in dict.fromkeys(words_of)}
        return np.array([known[words] for words in words_of], np.int64)


@lru_cache(maxsize=4)
def shelf_of(strategies: Strategies) -> Shelf:
    """The shelf of a library."""
    return Shelf(strategies)


@lru_cache(maxsize=16)
def common_sense(strategies: Strategies, rho: float, belief: int) -> F64:
    """How well kinds are believed to suit contexts, `[K, C + 1]`, the last column for no context.

    Beliefs have the correlation `rho` to what fits in truth; the rest is noise, which `belief` numbers.
    """
    n_kinds, n_contexts = strategies.fit.shape
    kind, context = np.indices((n_kinds, n_contexts))
    u = uniform(fold(fold(fold(key(belief, np.zeros(1, np.int64)), int(Purpose.BELIEF)), kind), context))
    noise = np.array([NormalDist().inv_cdf(value) for value in u.reshape(-1).tolist()]).reshape(u.shape)
    beliefs = snap(rho * strategies.fit + sqrt(1.0 - rho * rho) * noise)
    return np.concatenate([beliefs, beliefs.sum(axis=1, keepdims=True) / n_contexts], axis=1)


def nth_true(mask: Bool, u: F64) -> I64:
    """A place at which each row of `mask` `[n, N]` is true, each as likely, by uniforms `[n]`; 0 where none is."""
    n = mask.sum(axis=1)
    drawn = np.minimum((u * n).astype(np.int64), n - 1)
    place: I64 = (np.cumsum(mask, axis=1) == drawn[:, None] + 1).argmax(axis=1)
    return place


@lru_cache(maxsize=100_000)
def _kind(strategies: Strategies, content: Content) -> int:
    return int(strategies.read([content])[0][0])


@lru_cache(maxsize=100_000)
def _context(strategies: Strategies, words: str) -> int:
    return strategies.context_of(words)
