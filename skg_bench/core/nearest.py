"""The nearest of a table of texts by the words that they share."""

import re
from collections import Counter
from collections.abc import Sequence
from math import log

import numpy as np

from skg_bench.core.grid import F64, I32, quantise, snap

_WORD = re.compile(r"[a-z0-9]+")
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ings?|ed|es|s|e|ly)$")


class NearestText:
    """Cosines of tf-idf vectors. They lie on the embedding grid, where dot products are exact, so that the nearest is
    the same in any company and on any machine.
    """

    def __init__(self, table: Sequence[str]) -> None:
        terms = [_terms(text) for text in table]
        among = Counter(term for counts in terms for term in counts)
        self._column = {term: i for i, term in enumerate(among)}
        rarity = [1.0 + log((1 + len(table)) / (1 + n)) for n in among.values()]
        self._rarity = snap(np.array(rarity))  # logarithms differ in their last bit between machines
        self._table = quantise(self._weights(terms)).astype(np.float32)

    def rows(self, texts: Sequence[str]) -> I32:
        """Index of the nearest text of the table for each of `texts`, ties by its order; -1: they share no word."""
        nearest = np.full(len(texts), -1, np.int32)
        weights = self._weights([_terms(text) for text in texts])
        known = np.flatnonzero(weights.any(axis=1))
        if len(known):
            nearest[known] = (quantise(weights[known]).astype(np.float32) @ self._table.T).argmax(axis=1)
        return nearest

    def _weights(self, terms: Sequence[Counter[str]]) -> F64:
        """How much of each word of the table is in texts `[n, V]`."""
        weights = np.zeros((len(terms), len(self._column)))
        for row, counts in zip(weights, terms, strict=True):
            for term, n in counts.items():
                if (column := self._column.get(term)) is not None:
                    row[column] = n * self._rarity[column]
        return weights


def _terms(text: str) -> Counter[str]:
    """Words without their endings, as "waiting" is "waits"."""
    return Counter(_ENDING.sub("", word) for word in _WORD.findall(text.lower()))
