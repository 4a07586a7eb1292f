"""Placebo: captures happen as they would, but what they capture is about something else.

The curator inside decides whom to ask, when to capture, and under which name; example and answer are then those of a
random other turn of the same user. Time, count and size stay, the content is gone.

In this world a sham capture is *not* without effect of itself. An earlier turn is a real request with a real answer,
which may come again, and a skill that answers wrongly does harm whatever it was made of; so sham against an arm that
captures nothing measures what random captures do. Two contrasts are nothing by construction:

* `content: any`, one `draw` against another. Both curators do the same with their own keyed uniforms, so that either
  is as likely to be the better one for any user: the expected difference is 0, for every metric, under all components.
* `content: known` from some turn on against capturing nothing from there on. A skill then holds what another skill of
  the book holds already, or is renewed with what it holds itself: the same example, the same answer. Where decisions go
  by similarity alone and nothing is archived, no answer changes, to the bit. With learned signals the copies' counters
  begin anew; then the difference is small, not nothing, and says what mere growth of a book does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from skg_bench.core.batch import ADD, UPDATE, Batch, part
from skg_bench.core.draws import Purpose, fold, uniform
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import I32, Bool
from skg_bench.core.types import Curator, Observation, Skillbooks
from skg_bench.core.world import Reaction

Content = Literal["any", "known"]


@dataclass(frozen=True)
class Sham:
    """`curator`, whose captures get the content of a random other turn that the LLM answered.

    `content`: of any earlier turn, or only of those whose answer an active skill holds already (of the skill itself
    where one is renewed). `draw`: which of many such choices. Where there is no other turn, nothing is captured.
    """

    curator: Curator[Any]
    content: Content
    draw: int
    sees_truth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.content not in get_args(Content):
            raise UsageError(f"curator.content={self.content!r}, valid are {', '.join(get_args(Content))}")
        if self.draw < 0:
            raise UsageError(f"curator.draw={self.draw} must not be negative")
        if self.curator.sees_truth:
            raise UsageError("curator=sham cannot wrap a curator that sees the truth")

    @property
    def reasons(self) -> Sequence[str]:
        """Those of the curator inside."""
        return self.curator.reasons

    def start(self, n: int) -> Any:
        """The memory of the curator inside."""
        return self.curator.start(n)

    def offers(self, seen: Observation, state: Any) -> Bool:
        """Whom the curator inside asks."""
        return self.curator.offers(seen, state)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: Any
    ) -> tuple[Any, Batch]:
        """What the curator inside does, with other content."""
        state, batch = self.curator.curate(seen, reaction, known, books, state)
        captures = np.flatnonzero((batch.op == ADD) | (batch.op == UPDATE))
        if not len(captures):
            return state, batch
        row = batch.row[captures]
        turns = seen.past[row] >= 0
        if self.content == "known":
            turns &= _held(books, row, batch.skill[captures], turns.shape[1])
        n = turns.sum(axis=1)
        u = uniform(fold(fold(fold(seen.event[row], int(Purpose.SHAM)), self.draw), 0))
        drawn = np.minimum((u * n).astype(np.int64), n - 1)
        turn = np.nonzero(turns)[1]  # those of a capture stand together, in order
        some = n > 0
        turn = turn[(np.cumsum(n) - n + drawn)[some]]
        text, source, mask = batch.text.copy(), batch.source.copy(), np.ones(len(batch.op), np.bool_)
        text[captures[some]], source[captures[some]] = seen.past[row[some], turn], turn
        mask[captures[~some]] = False
        return state, part(replace(batch, text=text, source=source), mask)


def _held(books: Skillbooks, row: I32, skill: I32, n_turns: int) -> Bool:
    """`[n, t]`: does an active skill of user `row` hold the answer of this turn? Does `skill`, where it is renewed?"""
    held = books.active[row] & ((skill < 0)[:, None] | (np.arange(books.active.shape[1]) == skill[:, None]))
    at, s = np.nonzero(held)
    turns = np.zeros((len(row), n_turns), np.bool_)
    turns[at, books.source[row[at], s]] = True
    return turns
