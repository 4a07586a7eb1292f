"""A Python class that is played again, each user without one answer."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.assistant.python.component import Python
from skg_bench.assistant.python.outside import Objects
from skg_bench.core.assistant import Experience, Message, Reply
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.spoken import answer_reference


@dataclass(frozen=True)
class ForgettingEach:
    """`assistant` for rows that are played side by side: the object of each row forgets one answer, at the turn at
    which that is first given.

    Turns are by row of one cohort, so no configuration can name this class.
    """

    assistant: Python
    turns: tuple[int, ...]  # [B] turn of the answer that each row forgets
    sees_truth: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The class, for errors."""
        return self.assistant.name

    def start(self, n: int) -> Objects:
        """A new object for each of `n` rows."""
        return self.assistant.start(n)

    def answer(self, query: Message, state: Objects) -> tuple[Objects, Reply]:
        """Words of each row's object."""
        return self.assistant.answer(query, state)

    def learn(self, seen: Experience, feedback: KnownFeedback, state: Objects) -> Objects:
        """Objects after the feedback; those of rows whose turn it is have forgotten the answer of this turn."""
        state = self.assistant.learn(seen, feedback, state)
        turn, event = seen.message.turn, seen.message.event
        for row in np.flatnonzero(np.array(self.turns[: len(event)]) == turn).tolist():
            self.assistant.forget(row, turn, answer_reference(int(event[row])), state)
        return state
