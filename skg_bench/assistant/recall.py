"""Controls of memories: no skillbook, but earlier answers of the user in the model's prompt, as many as fit.

`all` is the whole history, `last` its last messages, `about` what is about the request: an oracle.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from skg_bench.core.assistant import Experience, Message, Recalled, Reply
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import I32
from skg_bench.core.growing import wider
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.spoken import ANSWER_FRAME
from skg_bench.core.text import word_count
from skg_bench.core.world import FALLBACK, PROMPTED, WRONG

Recalls = Literal["all", "last", "about"]


@dataclass(frozen=True, slots=True)
class History:
    """Earlier answers of users, and how many words they add to a prompt, by turn."""

    answer: I32  # [n, T] ids, -1: none
    words: I32  # [n, T]


@dataclass(frozen=True)
class Recall:
    """Asks the model at each turn, with earlier answers in its prompt; the newest come first, up to `words` of them."""

    recalls: Recalls
    last: int
    words: int
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        for name in ("last", "words"):
            if getattr(self, name) < 0:
                raise UsageError(f"assistant.{name}={getattr(self, name)} must not be negative")

    @property
    def sees_truth(self) -> bool:
        """Is it told what is about the request?"""
        return self.recalls == "about"

    def start(self, n: int) -> History:
        """Histories without a turn."""
        return History(np.full((n, 0), -1, np.int32), np.zeros((n, 0), np.int32))

    def answer(self, query: Message, state: History) -> tuple[History, Reply]:
        """The model's answer, with what it is given to read."""
        n, turn = len(query.text), query.turn
        newest = np.arange(min(turn, state.answer.shape[1]))[::-1]
        answers, words = state.answer[:n, newest], state.words[:n, newest]
        if self.recalls == "last":  # those of turns that it knows: a frozen one has no newer ones
            answers = np.where(np.cumsum(answers >= 0, axis=1) <= self.last, answers, -1)
        if query.truth is not None:
            about = query.truth.judge(np.arange(n)[:, None], answers, "as given") != WRONG
            answers = np.where(about & (answers >= 0), answers, -1)
        taken = np.cumsum(np.where(answers >= 0, words, 0), axis=1)
        answers = np.where(taken <= self.words, answers, -1).astype(np.int32)
        some = answers >= 0
        first = answers[np.arange(n), some.argmax(axis=1)] if some.shape[1] else np.full(n, -1, np.int32)
        how = np.where(some.any(axis=1), PROMPTED, FALLBACK).astype(np.int32)
        chosen = np.where(how == PROMPTED, first, -1).astype(np.int32)
        return state, Reply(how, chosen, Recalled(answers))

    def learn(self, seen: Experience, feedback: KnownFeedback, state: History) -> History:
        """The history with this turn."""
        n, turn = len(seen.answer), seen.message.turn
        answer, words = wider(state.answer, turn + 1, -1), wider(state.words, turn + 1, 0)
        answer[:n, turn] = seen.answer
        words[:n, turn] = [word_count(text) for text in seen.message.texts.read(seen.message.text)]
        words[:n, turn] += [word_count(text) for text in seen.words()] if seen.message.domain.in_words else ANSWER_FRAME
        return History(answer, words)
