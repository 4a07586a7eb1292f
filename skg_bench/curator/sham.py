"""Placebo: captures happen as they would, but what they capture is about something else.

The curator inside decides whom to ask, when to capture, and under which name; example and answer are then those of a
random other turn of the same user, and what the skill says is what another skill was to say. Time, count and size
stay, the content is gone. A skill that keeps no answer keeps its example: it says something else.

In this world a sham capture is *not* without effect of itself. An earlier turn is a real request with a real answer,
which may come again, and a skill that answers wrongly does harm whatever it was made of; so sham against an arm that
captures nothing measures what random captures do. Three contrasts are nothing by construction:

* `content: any`, one `draw` against another. Both curators do the same with their own keyed uniforms, so that either
  is as likely to be the better one for any user: the expected difference is 0, for every metric, under all components.
* `says: any` and `tags: coin`, one `draw` against another, where a world reads what skills say: learned is
  what they say and their ratings, and both are random.
* `content: known` from some turn on against capturing nothing from there on. A skill then holds what another skill of
  the book holds already, or is renewed with what it holds itself: the same example, the same answer. Where decisions go
  by similarity alone and nothing is archived, no answer changes, to the bit. With learned signals the copies' counters
  begin anew; then the difference is small, not nothing, and says what mere growth of a book does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from skg_bench.core.batch import TAG, TAKEN_BACK, Batch, nth, part, stores
from skg_bench.core.draws import Purpose, fold, uniform
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import F64, I32, I64, U64, Bool
from skg_bench.core.growing import wider
from skg_bench.core.reach import Reach, Reaches
from skg_bench.core.types import RATINGS, Curator, Observation, Skillbooks
from skg_bench.core.world import Reaction
from skg_bench.curator.shared.shelf import shelf_of
from skg_bench.skillbook.library import strategies as library

Turns = Literal["any", "known"]
Tags = Literal["own", "coin"]
Says = Literal["own", "other", "any"]
_OK, _MISS = RATINGS.index("ok"), RATINGS.index("miss")
_COINS = 1 << 32  # draws from this one on are coins


@dataclass(frozen=True, slots=True)
class Proposals:
    """The memory of a sham curator."""

    curator: Any  # memory of the curator inside
    content: U64  # [B, n] what the curator inside had skills say, 0 beyond the end
    coin: I32  # [B, T] rating that a coin gave for each turn, -1: none


@dataclass(frozen=True)
class Sham:
    """`curator`, whose captures get the content of a random other turn that the LLM answered.

    `content`: of any earlier turn, or only of those whose answer an active skill holds already (of the skill itself
    where one is renewed). `draw`: which of many such choices. Where there is no other turn, nothing is captured.

    `tags`: ratings are those of the curator inside, or ok or miss by a coin. `says`: what the curator inside wrote,
    what another skill was to say, or any text of `strategies`. Coins with `own`: ratings alone are random.
    """

    curator: Curator[Any]
    content: Turns
    draw: int
    tags: Tags = "own"
    says: Says = "other"
    strategies: str | None = None
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = {"strategies": Reach(("reads",))}

    def __post_init__(self) -> None:
        if self.content not in get_args(Turns):
            raise UsageError(f"curator.content={self.content!r}, valid are {', '.join(get_args(Turns))}")
        for name, valid in (("tags", get_args(Tags)), ("says", get_args(Says))):
            if getattr(self, name) not in valid:
                raise UsageError(f"curator.{name}={getattr(self, name)!r}, valid are {', '.join(valid)}")
        if self.says == "any":
            library.strategies(self.strategies)
        if self.draw < 0:
            raise UsageError(f"curator.draw={self.draw} must not be negative")
        if self.curator.sees_truth:
            raise UsageError("curator=sham cannot wrap a curator that sees the truth")

    @property
    def reasons(self) -> Sequence[str]:
        """Reasons of the curator inside."""
        return self.curator.reasons

    def start(self, n: int) -> Proposals:
        """The memory of the curator inside, no contents, and no coins."""
        return Proposals(self.curator.start(n), np.zeros((n, 0), np.uint64), np.full((n, 0), -1, np.int32))

    def offers(self, seen: Observation, state: Proposals) -> Bool:
        """Whom the curator inside asks."""
        return self.curator.offers(seen, state.curator)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: Proposals
    ) -> tuple[Proposals, Batch]:
        """Operations of the curator inside, with other content."""
        inside, batch = self.curator.curate(seen, reaction, known, books, state.curator)
        state = replace(state, curator=inside)
        if self.tags == "coin":
            state, batch = self._tossed(state, batch, seen)
        if self.says != "own":
            state, batch = self._saying(state, batch, seen)
        captures = (stores(batch) & (batch.source >= 0)).nonzero()[0]
        if not len(captures):
            return state, batch
        row = batch.row[captures]
        turns = seen.context.past[row] >= 0
        if self.content == "known":
            turns &= _held(books, row, batch.skill[captures], turns.shape[1])
        n = turns.sum(axis=1)
        u = self._u(seen.context.event[row], 0)
        drawn = np.minimum((u * n).astype(np.int64), n - 1)
        turn = np.nonzero(turns)[1]  # those of a capture stand together, in order
        some = n > 0
        turn = turn[(np.cumsum(n) - n + drawn)[some]]
        text, source, mask = batch.text.copy(), batch.source.copy(), np.ones(len(batch.op), np.bool_)
        text[captures[some]], source[captures[some]] = seen.context.past[row[some], turn], turn
        mask[captures[~some]] = False
        return state, part(replace(batch, text=text, source=source), mask)

    def _u(self, event: U64, item: I64 | int) -> F64:
        return uniform(fold(fold(fold(event, int(Purpose.SHAM)), self.draw), item))

    def _tossed(self, state: Proposals, batch: Batch, seen: Observation) -> tuple[Proposals, Batch]:
        """Batch with coins for ratings, and what coins gave taken back; and a memory of the coins of this turn."""
        coin, rating = wider(state.coin, seen.turn + 1, -1), batch.rating.copy()
        tags = (batch.op == TAG) & (batch.about >= 0)
        back = (tags & (rating >= TAKEN_BACK)).nonzero()[0]
        earlier = coin[batch.row[back], batch.about[back]]
        rating[back] = np.where(earlier >= 0, TAKEN_BACK + earlier, rating[back])
        given = (tags & (rating >= 0) & (rating < TAKEN_BACK)).nonzero()[0]
        row = batch.row[given]
        rating[given] = np.where(self._u(seen.context.event[row], _COINS + nth(row)) < 0.5, _OK, _MISS)
        coin[row, batch.about[given]] = rating[given]
        return replace(state, coin=coin), replace(batch, rating=rating)

    def _saying(self, state: Proposals, batch: Batch, seen: Observation) -> tuple[Proposals, Batch]:
        """Batch with any text, or with what the curator inside proposed for another skill of the user (nothing where
        that is its first proposal); and a memory of what it proposes now.
        """
        at = batch.content.nonzero()[0]
        if not len(at):
            return state, batch
        row, proposed = batch.row[at], batch.content[at]
        u, content = self._u(seen.context.event[row], 1 + nth(row)), batch.content.copy()
        if self.says == "any":
            shelf = shelf_of(library.strategies(self.strategies))
            content[at] = shelf.written((u * len(shelf.keys)).astype(np.int64), seen.context.texts.contents)
            return state, replace(batch, content=content)
        position = (state.content[row] != 0).sum(axis=1) + nth(row)
        memory = wider(state.content, int(position.max()) + 1, 0)
        earlier = memory[row]
        others = (earlier != 0) & (earlier != proposed[:, None])
        n = others.sum(axis=1)
        drawn = np.minimum((u * n).astype(np.int64), n - 1)
        some = n > 0
        content[at] = 0
        place = (np.cumsum(others, axis=1) == drawn[:, None] + 1).argmax(axis=1)
        content[at[some]] = earlier[some, place[some]]
        memory[row, position] = proposed
        return replace(state, content=memory), replace(batch, content=content)


def _held(books: Skillbooks, row: I32, skill: I32, n_turns: int) -> Bool:
    """`[n, t]`: does an active skill of user `row` hold the answer of this turn? Does `skill`, where it is renewed?"""
    held = books.active[row] & ((skill < 0)[:, None] | (np.arange(books.active.shape[1]) == skill[:, None]))
    at, s = np.nonzero(held)
    turns = np.zeros((len(row), n_turns), np.bool_)
    turns[at, books.source[row[at], s]] = True
    return turns
