"""Control: captures every right answer to a request that can come again, and asks nobody."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.batch import ADD, TAG, UPDATE, Batch
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.types import Observation, Skillbooks
from skg_bench.core.world import Reaction


@dataclass(frozen=True)
class RightAnswers:
    """Ceiling, with `router=oracle`, of what a skillbook can do with the answers of this LLM."""

    sees_truth: ClassVar[bool] = True
    reasons: ClassVar[Sequence[str]] = ("used", "captured", "captured again")
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def start(self, n: int) -> None:
        """No memory."""

    def offers(self, seen: Observation, state: None) -> Bool:
        """Asks nobody."""
        return np.zeros(len(seen.text), np.bool_)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: None
    ) -> tuple[None, Batch]:
        """TAG each use; ADD or UPDATE the skill of the request type after a right answer of the LLM."""
        if seen.context.truth is None:
            raise ValueError("curator=oracle needs the truth of the turn")
        hit = seen.hit.nonzero()[0]
        new = (~seen.hit & seen.context.truth.llm_right & (seen.context.truth.type >= 0)).nonzero()[0]
        kind = seen.context.truth.type[new]
        named = (books.name[new] == kind[:, None]) & (np.arange(books.name.shape[1]) < books.n_skills[new, None])
        again = named.any(axis=1)
        n = len(hit) + len(new)

        def column(of_hit: I32 | I64 | int, of_new: I32 | I64 | int) -> I32:
            out = np.empty(n, np.int32)
            out[: len(hit)] = of_hit
            out[len(hit) :] = of_new
            return out

        return None, Batch(
            row=column(hit, new),
            op=column(TAG, np.where(again, UPDATE, ADD)),
            skill=column(seen.skill[hit], np.where(again, named.argmax(axis=1), -1)),
            name=column(-1, np.where(again, -1, kind)),
            text=column(-1, seen.text[new]),
            source=column(-1, seen.turn),
            rating=column(seen.rating[hit], -1),
            uses=column(1, 0),
            reason=column(0, np.where(again, 2, 1)),
            content=np.zeros(n, np.uint64),
            about=np.full(n, seen.turn, np.int32),
        )
