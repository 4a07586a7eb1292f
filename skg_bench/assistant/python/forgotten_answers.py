"""A Python class played again, each user without one of the answers that its object came to give again."""

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
    """`assistant` for rows that are played side by side: the object of each row forgets an answer of its own when that
    was given.

    It is of one cohort, whose rows it knows by their place; so no configuration can name it.
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
        """The objects, which were told the feedback, and some of which forgot the answer of this turn."""
        state = self.assistant.learn(seen, feedback, state)
        turn, event = seen.message.turn, seen.message.event
        for row in np.flatnonzero(np.array(self.turns[: len(event)]) == turn).tolist():
            self.assistant.forget(row, turn, answer_reference(int(event[row])), state)
        return state
