"""Words and parts of words, each hashed to a random vector: no model, no file, the same bits everywhere.

Texts that share words are near one another, and nothing else is: enough for tests, and a control for what a language
model adds (Weinberger et al., 2009: feature hashing).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from skg_bench.core.draws import fold, key
from skg_bench.core.embedding_grid import quantise
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16, U64
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.text import text_hash
from skg_bench.embedder.cache import TextProgress

_WORD = re.compile(r"\w+")
_LETTERS = 3  # of a part of a word
_BITS = 64
_TOGETHER = 8192  # texts whose sums are held at once, 24 MiB of 384 dimensions; fewer would hash more parts twice


@dataclass(frozen=True)
class Hashing:
    """Sums of random signs `[N, dimensions]`: those of each word, and of each three letters in a row."""

    dimensions: int
    key: int
    pure: ClassVar[bool] = True
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if self.dimensions < _BITS or self.dimensions % _BITS:
            raise UsageError(f"embedder.dimensions={self.dimensions} must be a multiple of {_BITS}, such as 384")

    @property
    def digest(self) -> str:
        """All there is to it."""
        return f"hashing {self.dimensions} {self.key}"

    def embed(self, texts: Sequence[str], progress: TextProgress | None = None) -> I16:
        vectors = np.zeros((len(texts), self.dimensions), np.int16)
        for first in range(0, len(texts), _TOGETHER):
            some = slice(first, first + _TOGETHER)
            vectors[some] = self._embed(texts[some])
        return vectors

    def _embed(self, texts: Sequence[str]) -> I16:
        words = [_WORD.findall(text.lower()) or [text] for text in texts]
        number = {word: i for i, word in enumerate(dict.fromkeys(chain.from_iterable(words)))}
        vectors = self._vectors(list(number))  # most words come in many texts
        sums = [vectors[[number[word] for word in some]].sum(axis=0) for some in words]
        return quantise(np.stack(sums))

    def _vectors(self, words: Sequence[str]) -> npt.NDArray[np.int32]:
        """Sums of the signs of each word's parts, `[n, dimensions]`."""
        parts = [_parts(word) for word in words]
        number = {part: i for i, part in enumerate(dict.fromkeys(chain.from_iterable(parts)))}
        signs = self._signs(np.array([text_hash(part) for part in number], np.uint64))
        return np.stack([signs[[number[part] for part in some]].sum(axis=0, dtype=np.int32) for some in parts])

    def _signs(self, hashes: U64) -> npt.NDArray[np.int8]:
        """Hashes `[P]` to -1 and 1 `[P, dimensions]`."""
        words = fold(key(self.key, hashes)[:, None], np.arange(self.dimensions // _BITS))
        bits = np.unpackbits(words.astype("<u8").view(np.uint8), axis=1)
        return bits.astype(np.int8) * np.int8(2) - np.int8(1)


def _parts(word: str) -> list[str]:
    """A word, and three letters of it in a row with its ends marked. A text without any word is its own part."""
    if not _WORD.fullmatch(word):
        return [word]
    marked = f"<{word}>"
    return [word, *(marked[i : i + _LETTERS] for i in range(len(marked) - _LETTERS + 1))]
