"""Control: captures every answer of the LLM, right or wrong, and asks nobody."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.batch import ADD, TAG, UPDATE, Batch, blank
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import Bool
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.types import Observation, Skillbooks
from skg_bench.core.world import Reaction
from skg_bench.skillbook.tagging import later_tags


@dataclass(frozen=True)
class Everything:
    """A cache without bounds: each message that the LLM answered becomes a skill without a name of its own.

    A message that is an example already, word for word, renews the answer of its skill. Nothing is archived.
    """

    sees_truth: ClassVar[bool] = False
    reasons: ClassVar[Sequence[str]] = ("used", "rated later", "captured", "captured again")
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def start(self, n: int) -> None:
        """No memory."""

    def offers(self, seen: Observation, state: None) -> Bool:
        """Asks nobody."""
        return np.zeros(len(seen.text), np.bool_)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: None
    ) -> tuple[None, Batch]:
        """TAGs for uses and ratings, ADD or UPDATE for every answer of the LLM."""
        later = later_tags(known, seen.turn, books)
        hit, new = seen.hit.nonzero()[0], (~seen.hit).nonzero()[0]
        same = (books.examples.text[new] == seen.text[new, None]) & (
            np.arange(books.examples.text.shape[1]) < books.examples.count[new, None]
        )
        again = same.any(axis=1)
        old = np.where(again, books.examples.skill[new, same.argmax(axis=1)], -1)
        first, second = len(hit), len(hit) + len(later.row)
        batch = blank(second + len(new))
        used, rated, captured = slice(first), slice(first, second), slice(second, None)
        batch.row[used], batch.row[rated], batch.row[captured] = hit, later.row, new
        batch.op[used], batch.op[rated], batch.op[captured] = TAG, TAG, np.where(again, UPDATE, ADD)
        batch.skill[used], batch.skill[rated], batch.skill[captured] = seen.skill[hit], later.skill, old
        batch.rating[used], batch.rating[rated] = seen.rating[hit], later.value
        batch.text[captured], batch.source[captured] = seen.text[new], seen.turn
        batch.about[used], batch.about[rated], batch.about[captured] = seen.turn, later.turn, seen.turn
        batch.uses[used] = 1
        batch.reason[used], batch.reason[rated], batch.reason[captured] = 0, 1, np.where(again, 3, 2)
        return None, batch
