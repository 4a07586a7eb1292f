"""Two assistants without skillbooks, written against core/assistant.py alone."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from skg_bench.core.assistant import Experience, GivenAgain, InWords, Message, Reply
from skg_bench.core.feedback import RATING, KnownFeedback
from skg_bench.core.grid import I32
from skg_bench.core.reach import NO_REACH, REACHES_NOTHING, Reaches
from skg_bench.core.types import FREE, RATINGS
from skg_bench.core.world import FALLBACK, STORED

MISS = RATINGS.index("miss")


@dataclass(frozen=True)
class LastMessages:
    """Of each user's last N messages, `[n, N]` each; message `t` stands at place `t % N`."""

    turn: I32  # -1: none yet
    text: I32
    answer: I32  # id of the answer that was given, -1: none that can be given again
    rating: I32  # -1: not rated


class Echo:
    """Answers a message that comes again, word for word, as it was answered last.

    Not so if that answer was rated `miss`. It remembers `last` messages of each user.
    """

    sees_truth = False
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __init__(self, last: int) -> None:
        self._last = last

    def start(self, n: int) -> LastMessages:
        return LastMessages(*(np.full((n, self._last), -1, np.int32) for _ in range(4)))

    def answer(self, query: Message, state: LastMessages) -> tuple[LastMessages, Reply]:
        rows = np.arange(len(query.text))
        answer, missed = state.answer[rows], state.rating[rows] == MISS
        refused = ((answer[:, :, None] == answer[:, None, :]) & missed[:, None, :]).any(axis=2)
        same = (state.text[rows] == query.text[:, None]) & (answer >= 0) & ~refused
        found, place = same.any(axis=1), np.where(same, state.turn[rows], -1).argmax(axis=1)
        return state, Reply(
            how=np.where(found, STORED, FALLBACK).astype(np.int32),
            answer=np.where(found, state.answer[rows, place], -1).astype(np.int32),
            case=GivenAgain(np.where(found, state.turn[rows, place], -1).astype(np.int32)),
        )

    def learn(self, seen: Experience, feedback: KnownFeedback, state: LastMessages) -> LastMessages:
        at = slice(len(seen.answer)), seen.message.turn % self._last
        state.turn[at], state.rating[at] = seen.message.turn, -1
        state.text[at], state.answer[at] = seen.message.text, seen.answer
        of = feedback.rows(feedback.kind == RATING)
        place = of.turn % self._last
        kept = state.turn[of.row, place] == of.turn
        state.rating[of.row[kept], place[kept]] = of.value[kept]
        return state


@dataclass
class Page:
    """What is written down of one user."""

    said: dict[str, str] = field(default_factory=dict)  # the words that answered each message
    asked: dict[int, str] = field(default_factory=dict)  # the message of each turn that was not rated yet


class Diary:
    """Repeats the very words that answered a message before; says `sorry` when they were rated `miss` last.

    Its state is plain Python: a page of each user.
    """

    sees_truth = False
    reaches: ClassVar[Reaches] = {"sorry": NO_REACH}

    def __init__(self, sorry: str) -> None:
        self._sorry = sorry

    def start(self, n: int) -> list[Page]:
        return [Page() for _ in range(n)]

    def answer(self, query: Message, state: list[Page]) -> tuple[list[Page], Reply]:
        messages = query.texts.read(query.text)
        words = [page.said.get(message) for page, message in zip(state, messages, strict=False)]
        none = np.full(len(words), -1, np.int32)
        return state, Reply(how=np.full(len(words), FALLBACK, np.int32), answer=none, case=InWords(words, FREE))

    def learn(self, seen: Experience, feedback: KnownFeedback, state: list[Page]) -> list[Page]:
        messages = seen.message.texts.read(seen.message.text)
        for page, message, words in zip(state, messages, seen.words(), strict=False):
            page.said[message] = words
            page.asked[seen.message.turn] = message
        of = feedback.rows(feedback.kind == RATING)
        for row, turn, value in zip(of.row.tolist(), of.turn.tolist(), of.value.tolist(), strict=True):
            message = state[row].asked.pop(turn)
            if value == MISS:
                state[row].said[message] = self._sorry
        return state
