"""Similarities between the messages of a run: exact integer dot products, looked up or computed."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skg_bench.core.grid import F32, I16, I32, I64
from skg_bench.core.texts import Texts
from skg_bench.core.types import Similarity


@dataclass(frozen=True)
class SimilarityTable:
    """All pairs computed once: for a corpus with a finite set of messages."""

    table: F32  # [N, N]

    def dots(self, query: I32, example: I32, row: I64 | None = None) -> F32:
        """`[B]` and `[B, E]` text ids to `[B, E]`."""
        at = query.astype(np.int64)[:, None] * self.table.shape[1] + example
        dots: F32 = self.table.reshape(-1).take(at)
        return dots

    def pairs(self, text: I32, other: I32) -> F32:
        """`[n]` and `[n]` text ids to `[n]`."""
        return self.table[text, other]

    def gram(self, text: I32) -> F32:
        """`[B, M]` text ids to `[B, M, M]`."""
        return self.table[text[:, :, None], text[:, None]]


@dataclass(frozen=True)
class WithWritten:
    """The products of `messages`, and computed ones where a text is none of the world's messages."""

    messages: Similarity
    texts: Texts

    def dots(self, query: I32, example: I32, row: I64 | None = None) -> F32:
        """`[B]` and `[B, E]` text ids to `[B, E]`."""
        if not self.texts.grown:
            return self.messages.dots(query, example, row)
        n = self.texts.n_messages
        written = (example >= n) | (query >= n)[:, None]
        dots = self.messages.dots(np.where(query < n, query, 0), np.where(example < n, example, -1), row)
        for i in np.flatnonzero(written.any(axis=1)).tolist():
            vectors = self.texts.vectors(example[i, written[i]]).astype(np.float32)
            dots[i, written[i]] = vectors @ self.texts.vectors(query[i : i + 1])[0].astype(np.float32)
        return dots

    def pairs(self, text: I32, other: I32) -> F32:
        """`[n]` and `[n]` text ids to `[n]`."""
        if not self._any(text, other):
            return self.messages.pairs(text, other)
        return _pairs(self.texts.vectors(text), self.texts.vectors(other))

    def gram(self, text: I32) -> F32:
        """`[B, M]` text ids to `[B, M, M]`."""
        return _gram(self.texts.vectors(text)) if self._any(text) else self.messages.gram(text)

    def _any(self, *texts: I32) -> bool:
        return self.texts.grown and any((text >= self.texts.n_messages).any() for text in texts)


_KEPT = 2**26  # bytes of examples that lie ready as float32: of 512 users 85 each; curator=skg has 50 after 26 weeks
_TILE = 256  # examples that are made float32 at once: 0.4 MiB of 384 dimensions stay in the cache of a core


class Rows:
    """Arbitrary vectors. The first examples of each user lie ready side by side, as their ids never change once added.

    That saves a quarter of the time where books are of usual size. Books without bounds would take gigabytes, and to
    read so much takes nearly as long as to convert the vectors again: at each turn, of all but the first examples.
    """

    def __init__(self, vectors: I16, kept_bytes: int = _KEPT) -> None:
        self._vectors, self._kept_bytes = vectors, kept_bytes
        self._kept = np.zeros((0, 0), np.int32)
        self._rows = np.zeros((0, 0, vectors.shape[1]), np.float32)

    def dots(self, query: I32, example: I32, row: I64 | None = None) -> F32:
        """`[B]` and `[B, E]` text ids to `[B, E]`."""
        b, e = example.shape
        rows, out = np.arange(b) if row is None else row, np.zeros((b, e), np.float32)
        if not e:
            return out
        ends = e - (example[:, ::-1] >= 0).argmax(axis=1)
        ends[example[np.arange(b), ends - 1] < 0] = 0  # a book without examples
        ready = self._keep(example, rows)
        queries = self._vectors[query].astype(np.float32)
        for i, (at, end) in enumerate(zip(rows.tolist(), np.minimum(ends, ready).tolist(), strict=True)):
            np.dot(self._rows[at, :end], queries[i], out=out[i, :end])
        if ready < e:
            self._convert(queries, example[:, ready:], ends - ready, out[:, ready:])
        return out

    def _keep(self, example: I32, rows: I64) -> int:
        """How many examples of each row lie ready now."""
        old = self._kept.shape
        users = max(int(rows.max(initial=-1)) + 1, old[0])
        room = max(old[1], self._kept_bytes // (4 * max(users * self._vectors.shape[1], 1)))
        e = example.shape[1]
        ready = int(min(e, room))
        if users > old[0] or ready > old[1]:
            width = old[1] if ready <= old[1] else min(e + e // 4 + 4, room)  # books grow by an example at a time
            kept = np.full((users, width), -1, np.int32)
            vectors = np.zeros((*kept.shape, self._vectors.shape[1]), np.float32)
            kept[: old[0], : old[1]], vectors[: old[0], : old[1]] = self._kept, self._rows
            self._kept, self._rows = kept, vectors
        at, position = np.nonzero(self._kept[rows, :ready] != example[:, :ready])
        self._rows[rows[at], position] = self._vectors[example[at, position]]
        self._kept[rows[at], position] = example[at, position]
        return ready

    def _convert(self, queries: F32, example: I32, ends: I64, out: F32) -> None:
        """Products with examples that do not lie ready, into `out` `[B, E]`, up to the end of each book."""
        tile = np.empty((_TILE, self._vectors.shape[1]), np.float32)
        for i, end in enumerate(ends.tolist()):
            for first in range(0, end, _TILE):
                vectors = self._vectors[example[i, first : min(first + _TILE, end)]]
                tile[: len(vectors)] = vectors
                np.dot(tile[: len(vectors)], queries[i], out=out[i, first : first + len(vectors)])

    def pairs(self, text: I32, other: I32) -> F32:
        """`[n]` and `[n]` text ids to `[n]`."""
        return _pairs(self._vectors[text], self._vectors[other])

    def gram(self, text: I32) -> F32:
        """`[B, M]` text ids to `[B, M, M]`."""
        return _gram(self._vectors[text])


class Pinned:
    """One book online: the vectors of its examples lie ready as a matrix."""

    def __init__(self, vectors: I16, example: I32) -> None:
        self._columns = vectors[example].T.astype(np.float32, order="C")  # [D, E]: a third faster than [E, D]
        self._vectors = vectors

    def dots(self, query: I32, example: I32, row: I64 | None = None) -> F32:
        """`[B]` and `[B, E]` text ids to `[B, E]`; each row of `example` is the one that was pinned."""
        dots: F32 = self._vectors[query].astype(np.float32) @ self._columns
        return dots

    def pairs(self, text: I32, other: I32) -> F32:
        """`[n]` and `[n]` text ids to `[n]`."""
        return _pairs(self._vectors[text], self._vectors[other])

    def gram(self, text: I32) -> F32:
        """`[B, M]` text ids to `[B, M, M]`."""
        return _gram(self._vectors[text])


def _pairs(vectors: I16, others: I16) -> F32:
    dots: F32 = np.einsum("nd,nd->n", vectors.astype(np.float32), others.astype(np.float32))
    return dots


def _gram(vectors: I16) -> F32:
    rows = vectors.astype(np.float32)
    products: F32 = rows @ rows.transpose(0, 2, 1)
    return products


def write_table(vectors: I16, path: Path) -> None:
    """The table of all pairs as float32 `.npy`, which workers map into memory and share.

    It is written, not mapped: on a full disk that is an OSError, where a mapping would end the process.
    """
    n, left = len(vectors), vectors.astype(np.float32)
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.float32)), "fortran_order": False, "shape": (n, n)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for first in range(0, n, 1024):
            file.write((left[first : first + 1024] @ left.T).data)


def open_table(path: Path) -> SimilarityTable:
    """The table that `write_table` wrote."""
    return SimilarityTable(np.load(path, mmap_mode="r"))
