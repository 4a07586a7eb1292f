"""A view of texts: what a user said, was shown, or was written by whoever reads it.

A run has all texts that anybody may ever say. An id that a component makes up would give it words from the future and
from other users, so the view refuses it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.core.content import Contents
from skg_bench.core.errors import RowError
from skg_bench.core.grid import F32, I16, I32, I64
from skg_bench.core.growing import wider
from skg_bench.core.texts import Texts
from skg_bench.core.types import Similarity


class Heard:
    """The texts that each user of a cohort has met, in order of turns."""

    def __init__(self, n: int) -> None:
        self._texts = np.full((n, 16), -1, np.int32)  # [B, W] ids; -1: none
        self._width = 0
        self._said = np.full(16, -1, np.int64)  # place of the message of each turn among these; -1: none
        self._written: dict[int, None] = {}

    def said(self, turn: int, text: I32) -> None:
        """The first rows say texts `[n]` at a turn."""
        if turn >= len(self._said):
            self._said = np.concatenate([self._said, np.full(max(turn, len(self._said)), -1)])
        self._said[turn] = self._width
        self.met(text)

    def messages(self, row: I64, turn: I32) -> I32:
        """Texts that the users of rows `[n]` said at turns `[n]`."""
        return self._texts[row, self._said[turn]]

    def met(self, text: I32) -> None:
        """The first rows meet texts `[n]`, -1: none; a row that is not among them has left."""
        self._texts = wider(self._texts, self._width + 1, -1)
        self._texts[: len(text), self._width] = text
        self._width += 1

    def wrote(self, text: I32) -> None:
        """Texts `[n]` are by the components themselves."""
        self._written.update(dict.fromkeys(text.tolist()))

    def check(self, text: I32, row: I64 | I32) -> None:
        """Raises RowError for a text of texts `[n]` that the user of its row `[n]` has not met."""
        known = (self._texts[row, : self._width] == text[:, None]).any(axis=1)
        for at in np.flatnonzero(~known).tolist():
            if int(text[at]) not in self._written:
                raise RowError(
                    int(row[at]),
                    f"read the text {text[at]}, which this user never said and never was shown; valid are ids of the "
                    "user's messages, of names that the user gave, and of texts that were written in the run",
                )


@dataclass(frozen=True, slots=True)
class HeardTexts:
    """The texts of a run as components see them: core.types.WrittenTexts, for the first `n` rows of a cohort."""

    _all: Texts
    _heard: Heard
    _n: int

    def add(self, texts: Sequence[str]) -> I32:
        """Ids of texts; a known text has the id that it has."""
        ids = self._all.add(texts)
        self._heard.wrote(ids)
        return ids

    def read(self, text: I32, row: I64 | I32 | None = None) -> list[str]:
        """The words of texts `[n]` of the users of rows `[n]`; None: of all rows, in order.

        Raises RowError for a text that its user has not met.
        """
        rows = np.arange(self._n) if row is None else row
        if len(text) != len(rows):
            raise RowError(0, f"read {len(text)} texts of {len(rows)} users; give the row of each: read(text, row)")
        if len(rows):
            self._heard.check(text, rows)
        return self._all.read(text)

    def embed(self, texts: Sequence[str]) -> I16:
        """Vectors of any texts by the run's embedder, int16 `[n, D]`."""
        return self._all.embed(texts)

    @property
    def contents(self) -> Contents:
        """Contents of skills."""
        return self._all.contents

    @property
    def recorded(self) -> bool:
        """Did people write the messages, in a log?"""
        return self._all.recorded

    @property
    def redacts(self) -> bool:
        """Do logs show other texts?"""
        return self._all.redacts


@dataclass(frozen=True, slots=True)
class HeardSimilarity:
    """Similarities between texts that their users have met: core.types.Similarity."""

    _all: Similarity
    _heard: Heard

    def dots(self, query: I32, example: I32, row: I64 | None = None) -> F32:
        """`[B]` and `[B, E]` text ids of rows `[B]` (None: the first ones) to `[B, E]`."""
        rows = np.arange(len(query)) if row is None else row
        self._heard.check(query, rows)
        at, place = np.nonzero(example >= 0)
        if len(at):
            self._heard.check(example[at, place], rows[at])
        return self._all.dots(query, example, rows)

    def pairs(self, text: I32, other: I32) -> F32:
        """`[B]` and `[B]` text ids to `[B]`."""
        for ids in (text, other):
            self._heard.check(ids, np.arange(len(ids)))
        return self._all.pairs(text, other)

    def gram(self, text: I32) -> F32:
        """`[B, M]` text ids to the products of each row's texts with one another, `[B, M, M]`."""
        self._check(text)
        return self._all.gram(text)

    def _check(self, text: I32) -> None:
        row, at = np.nonzero(text >= 0)
        if len(row):
            self._heard.check(text[row, at], row)
