"""Control: the same skillbook for all users, one strategy of every kind, and nothing is learned.

It holds every kind there is, so that with `router=oracle` it is also the oracle among curators: the best in this book
is the best kind there is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.batch import ADD, TAG, Batch, blank
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import Bool
from skg_bench.core.reach import Reach, Reaches
from skg_bench.core.types import Observation, Skillbooks
from skg_bench.core.world import Reaction
from skg_bench.curator.shared.shelf import shelf_of
from skg_bench.skillbook.library import strategies as library


@dataclass(frozen=True)
class Population:
    """Gives all users one book: the first sound text of each kind, in the order of kinds, at their first turn.

    All have that turn's message as their example, so that similarity prefers none of them.
    """

    strategies: str | None
    sees_truth: ClassVar[bool] = False
    reasons: ClassVar[Sequence[str]] = ("used", "given")
    reaches: ClassVar[Reaches] = {"strategies": Reach(("reads",))}

    def __post_init__(self) -> None:
        texts = library.strategies(self.strategies)
        sound = set(texts.kind[texts.sound].tolist())
        if bare := [name for kind, name in enumerate(texts.kinds) if kind not in sound]:
            raise UsageError(f"curator.strategies={self.strategies}: kind {bare[0]!r} has no sound text; add one")

    def start(self, n: int) -> None:
        """No memory."""

    def offers(self, seen: Observation, state: None) -> Bool:
        """Asks nobody."""
        return np.zeros(len(seen.text), np.bool_)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: None
    ) -> tuple[None, Batch]:
        """ADDs of what the book never had, which is all of it or nothing; then a TAG for each use."""
        shelf = shelf_of(library.strategies(self.strategies))
        kinds = len(shelf.strategies.kinds)
        sound = np.flatnonzero(shelf.strategies.sound)
        text = sound[[int((shelf.strategies.kind[sound] == kind).argmax()) for kind in range(kinds)]]
        row, kind = np.nonzero(seen.context.asks[:, None] & ~shelf.present(books.content)[:, text])
        hit = np.flatnonzero(seen.hit & seen.context.asks)
        batch = blank(len(hit) + len(row))
        used, added = slice(len(hit)), slice(len(hit), None)
        batch.row[used], batch.row[added] = hit, row
        batch.op[used], batch.op[added] = TAG, ADD
        batch.skill[used], batch.uses[used] = seen.skill[hit], 1
        batch.reason[used], batch.reason[added] = 0, 1
        batch.about[:] = seen.turn
        if len(row):
            batch.text[added] = seen.text[row]
            batch.name[added] = seen.context.texts.add(shelf.strategies.kinds)[kind]
            batch.content[added] = shelf.written(text, seen.context.texts.contents)[kind]
        return None, batch
