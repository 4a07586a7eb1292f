"""An assistant whose memory is saved, loaded and frozen on the way, to see that this changes nothing."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from skg_bench.core.assistant import Assistant, Experience, Keeping, Message, Reply
from skg_bench.core.feedback import KnownFeedback

REHEARSED_AT = (10, 40, 120)  # at which it happens


class Rehearsable(Assistant[Any], Keeping, Protocol):
    """An assistant that says itself how its memory is frozen and saved."""


@dataclass(slots=True)
class RehearsedMemory:
    """The memory of `n` users of the assistant that is played."""

    n: int
    state: Any


@dataclass(frozen=True)
class Rehearsed:
    """The assistant `played`. At a few turns it first answers frozen, which nobody hears, and then goes on with a
    memory that was saved and loaded, as far as it can be.
    """

    played: Rehearsable
    sees_truth: ClassVar[bool] = False

    def start(self, n: int) -> RehearsedMemory:
        """Memory of `n` users."""
        return RehearsedMemory(n, self.played.start(n))

    def answer(self, query: Message, state: RehearsedMemory) -> tuple[RehearsedMemory, Reply]:
        """Reply of the assistant that is played, and its memory after it."""
        if query.turn in REHEARSED_AT:
            if self.played.unfrozen() is None:
                state.state, _ = self.played.answer(replace(query, frozen=True), state.state)
            if (saved := self.played.saved(state.state)) is not None:
                state.state = self.played.loaded(saved, state.n)
        state.state, reply = self.played.answer(query, state.state)
        return state, reply

    def learn(self, seen: Experience, feedback: KnownFeedback, state: RehearsedMemory) -> RehearsedMemory:
        """Memory after feedback."""
        state.state = self.played.learn(seen, feedback, state.state)
        return state
