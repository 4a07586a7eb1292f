"""Components of the builds whose effect is known: a lost half of the book, a curator that nags, a cache with an age."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skg_bench.core.assistant import Experience, GivenAgain, Message, Reply
from skg_bench.core.batch import Batch
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.types import Curator, Observation, Query, Router, Shortlist, Skillbooks
from skg_bench.core.world import FALLBACK, STORED, Reaction

DAY = 86_400
REMEMBERED = 300  # messages of a user that the cache holds


@dataclass(frozen=True)
class HalfLost:
    """`router`, which does not find skills with an odd id: every second skill that a user's book ever got."""

    router: Router
    top_k: int  # places of its shortlist
    sees_truth: ClassVar[bool] = False

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """Shortlist by the router inside, from the other half."""
        even = np.arange(books.active.shape[1]) % 2 == 0
        return self.router.route(query, replace(books, active=books.active & even))


@dataclass(frozen=True)
class Nagging:
    """`curator`, which asks the user at every turn whether this could become a skill, and ignores the answer."""

    curator: Curator[Any]
    reasons: Sequence[str]  # of the curator inside
    sees_truth: ClassVar[bool] = False

    def start(self, n: int) -> Any:
        """The memory of the curator inside."""
        return self.curator.start(n)

    def offers(self, seen: Observation, state: Any) -> Bool:
        """Everybody."""
        return np.ones(len(seen.text), np.bool_)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: Any
    ) -> tuple[Any, Batch]:
        """Operations of the curator inside, as if nobody had been asked."""
        unasked = np.full(len(reaction.code), -1, np.int32)
        return self.curator.curate(seen, Reaction(unasked, unasked, unasked), known, books, state)


@dataclass(frozen=True)
class Remembered:
    """A user's last messages, `[n, REMEMBERED]` each; message `t` stands at place `t % REMEMBERED`."""

    text: I32  # -1: none yet
    answer: I32
    turn: I32
    time: I64  # [s] when the model gave the answer


@dataclass(frozen=True)
class Cache:
    """An assistant without a skillbook: a message that comes again word for word gets the model's last answer to it,
    for `days` after that was given.
    """

    days: float
    sees_truth: bool = False

    def start(self, n: int) -> Remembered:
        """Empty memories."""
        text, answer, turn = (np.full((n, REMEMBERED), -1, np.int32) for _ in range(3))
        return Remembered(text, answer, turn, np.zeros((n, REMEMBERED), np.int64))

    def answer(self, query: Message, state: Remembered) -> tuple[Remembered, Reply]:
        """The youngest answer of the model to the same words, if it is young enough."""
        rows = np.arange(len(query.text))
        young = query.time[:, None] - state.time[rows] <= self.days * DAY
        same = (state.text[rows] == query.text[:, None]) & (state.answer[rows] >= 0) & young
        known, place = same.any(axis=1), np.where(same, state.turn[rows], -1).argmax(axis=1)
        return state, Reply(
            how=np.where(known, STORED, FALLBACK).astype(np.int32),
            answer=np.where(known, state.answer[rows, place], -1).astype(np.int32),
            case=GivenAgain(np.where(known, state.turn[rows, place], -1).astype(np.int32)),
        )

    def learn(self, seen: Experience, feedback: KnownFeedback, state: Remembered) -> Remembered:
        """The model's answers are remembered; those of the cache do not grow young again."""
        place, from_llm = seen.message.turn % REMEMBERED, seen.reply.how == FALLBACK
        rows = np.arange(len(from_llm))
        state.text[rows, place] = np.where(from_llm, seen.message.text, -1)
        state.answer[rows, place] = np.where(from_llm, seen.answer, -1)
        state.turn[rows, place] = seen.message.turn
        state.time[rows, place] = seen.message.time
        return state
