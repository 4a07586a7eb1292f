"""How alike texts are by the words that they share."""

import re
from collections import Counter
from collections.abc import Sequence
from math import log

import numpy as np

from skg_bench.core.embedding_grid import quantise
from skg_bench.core.grid import F64, cosine, snap

_WORD = re.compile(r"[a-z0-9]+")
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ings?|ed|es|s|e|ly)$")


class WordCosines:
    """Cosines between texts and a table of texts, by tf-idf of the table's words.

    The vectors lie on the embedding grid, where dot products are exact: a cosine is the same in any company and on any
    machine.
    """

    def __init__(self, table: Sequence[str]) -> None:
        terms = [_terms(text) for text in table]
        among = Counter(term for counts in terms for term in counts)
        self._column = {term: i for i, term in enumerate(among)}
        rarity = [1.0 + log((1 + len(table)) / (1 + n)) for n in among.values()]
        self._rarity = snap(np.array(rarity))  # logarithms differ in their last bit between machines
        self._table = quantise(self._weights(terms)).astype(np.float32)

    def of(self, texts: Sequence[str]) -> F64:
        """`[n, N]` for `texts` `[n]` and a table of N, on the 2**-16 grid; 0 for a text without a word of the table."""
        weights = self._weights([_terms(text) for text in texts])
        cosines, known = np.zeros((len(texts), len(self._table))), weights.any(axis=1)
        if known.any():
            cosines[known] = cosine(quantise(weights[known]).astype(np.float32) @ self._table.T)
        return cosines

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
