"""The users of many draws side by side in one cohort of the closed loop, each with the parameters of their draw.

Rows of a cohort do not know one another, so a draw comes out the same bits whichever others lie beside it, and the same
as an ordinary run with its parameters. There is no second loop: `engine.cohort.Rollout` makes the turns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal, TypeVar

import numpy as np

from skg_bench.core.batch import ADD, Batch
from skg_bench.core.grid import F64, I32, I64, U64, Bool
from skg_bench.core.types import LLM, RATINGS, Answer, Draws, Events, Reaction
from skg_bench.simulator.assistant import Assistant
from skg_bench.simulator.habits import Habits
from skg_bench.simulator.reactions import Reactions

WEEK = 7 * 86_400
Either = TypeVar("Either", Reactions, Habits)
_OK = RATINGS.index("ok")


@dataclass(frozen=True)
class Crowd:
    """A simulator of users who react each in their own way; `one` knows the corpus, which all share."""

    one: Assistant
    reactions: Reactions  # of each row
    stream: Literal["exogenous", "reactive"] = field(default="exogenous", init=False)

    @property
    def messages(self) -> Sequence[str]:
        return self.one.messages

    @property
    def types(self) -> Sequence[str]:
        return self.one.types

    @property
    def intents(self) -> Sequence[str]:
        return self.one.intents

    @property
    def names(self) -> Sequence[str]:
        return self.one.names

    @property
    def digest(self) -> str:
        return self.one.digest

    def count(self, seed: int, users: I32, weeks: int) -> I32:
        return self.one.count(seed, users, weeks)

    def population(self, seed: int, users: I32, weeks: int) -> Events:
        """Those of the assistant; the crowd's own are made by `one.populated`."""
        return self.one.population(seed, users, weeks)

    def judge(self, event_type: I32, source_type: I32, source_right: Bool, age: I64) -> I32:
        return self.one.judge(event_type, source_type, source_right, age)

    def react(self, quality: I32, draws: Draws) -> Reaction:
        return self.reactions.rate(quality, draws)

    def same_answer(self, stored: I32, fresh: I32, draws: Draws) -> Bool:
        return self.one.same_answer(stored, fresh, draws)

    def offer(self, type_: I32, text: I32, fatigue: F64, idle: I64, draws: Draws) -> tuple[I32, I32, F64]:
        return self.one.offered(self.reactions, type_, text, fatigue, idle, draws)


@dataclass(frozen=True, eq=False)
class Answering:
    """A language model that is right with a probability of each row's own."""

    llm: LLM
    right: F64  # [B]

    def answer(self, words: I32, with_skill: Bool, draws: Draws) -> Answer:
        return replace(self.llm.answer(words, with_skill, draws), right=draws.llm_right < self.right[: len(words)])

    def serve(self, words: I32, draws: Draws) -> Answer:
        return self.llm.serve(words, draws)


def side_by_side(ways: Sequence[Either], index: I64) -> Either:
    """Reactions, or habits, of rows `index` `[B]`, by index into `ways`."""
    made: Either = type(ways[0])(*(np.stack([getattr(w, f.name) for w in ways])[index] for f in fields(ways[0])))
    return made


class Weekly:
    """A log that keeps counts by row and week, `[B, W]`."""

    def __init__(self, events: Events, weeks: int) -> None:
        self._events = events
        size = (len(events.user), weeks)
        self.turns, self.hits, self.wrong, self.wrong_hits, self.added = (np.zeros(size, np.int32) for _ in range(5))
        self.answerable = np.zeros(size, np.int32)  # an earlier answer of the user still holds
        self.rated_hits, self.ok_hits, self.rated, self.ok = (np.zeros(size, np.int32) for _ in range(4))
        self.book = np.full(size, -1, np.int32)  # active skills after the last turn of the week, -1: no turn

    def turn(self, t: int, **values: np.ndarray) -> None:
        """Counts of one turn of the rows that are still there."""
        hit, wrong = values["skill"] >= 0, values["correct"] <= 0
        at = np.arange(len(hit)), self._events.time[: len(hit), t] // WEEK
        answerable = self._events.truth.answerable[: len(hit), t] > 0
        for column, value in (
            (self.turns, 1), (self.hits, hit), (self.wrong, wrong), (self.wrong_hits, wrong & hit),
            (self.answerable, answerable),
        ):  # fmt: skip
            column[at] += value
        self.book[at] = values["book_size"]

    def update(
        self, t: int, batch: Batch, skill: I32, time: I64, last: I32, born: I64, version: I32, state: U64
    ) -> None:
        """Skills added."""
        row = batch.row[batch.op == ADD]
        np.add.at(self.added, (row, time[row] // WEEK), 1)

    def feedback(self, t: int, row: I64, time: I64, known_at: I64, skill: I32, rating: I32) -> None:
        """Ratings, by the week of the turn that was rated; each row is there once."""
        at, hit, ok = (row, time // WEEK), skill >= 0, rating == _OK
        for column, value in ((self.rated, 1), (self.ok, ok), (self.rated_hits, hit), (self.ok_hits, hit & ok)):
            column[at] += value
