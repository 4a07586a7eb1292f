"""Users with tasks of reasoning-gym. What is said to a task is judged by its family's own check."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import ClassVar, get_args

import numpy as np

from skg_bench.core.domain import Domain
from skg_bench.core.draws import key
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING, feedback_rows
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.reach import NO_REACH, Reaches
from skg_bench.core.text import plain_signs
from skg_bench.core.types import RATINGS
from skg_bench.core.world import (
    NEAR,
    RIGHT,
    WRONG,
    Draws,
    Event,
    Events,
    Ledger,
    Reaction,
    Response,
    Served,
    Stream,
    Supposing,
    calls,
)
from skg_bench.simulator.gym.entries import GymEntry, gym_entries, solved
from skg_bench.simulator.gym.outcome import GYM_TASKS, GymOutcome
from skg_bench.simulator.gym.twins import TASK_WORDINGS, Reuse, Twin, task_texts, twin_events
from skg_bench.simulator.offer_reactions import offers_accepted

_OK, _MISS = RATINGS.index("ok"), RATINGS.index("miss")


@dataclass(frozen=True, slots=True)
class Solvers:
    """Users with all that they will bring, and what they met before."""

    events: Events
    ledger: Ledger
    met: I32  # [B, T]


@dataclass(frozen=True)
class Gym:
    """Simulated users with tasks. Unit, meaning and source of each parameter stand in its yaml."""

    families: Sequence[str]
    reuse: Reuse
    groups: int
    times: int
    rated: float
    accepts: float
    stream: Stream = field(default="exogenous", init=False)
    domain: Domain = field(default=GYM_TASKS, init=False)
    reaches: ClassVar[Reaches] = {"families": NO_REACH}

    def __post_init__(self) -> None:
        for name in ("rated", "accepts"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"simulator.{name}={getattr(self, name)} must lie in [0, 1]")
        if self.reuse not in get_args(Reuse):
            raise UsageError(f"simulator.reuse={self.reuse!r}, valid are {', '.join(get_args(Reuse))}")
        if self.groups < 1 or not 1 <= self.times <= len(TASK_WORDINGS):
            raise UsageError(
                f"simulator.groups={self.groups} must be at least 1, and simulator.times={self.times} "
                f"1 to {len(TASK_WORDINGS)}"
            )
        few = next((name for name, size in zip(self.families, self._sizes, strict=True) if size < self.times), None)
        if self._twin.tasks > len(self.families):
            raise UsageError(
                f"simulator.groups={self.groups} times simulator.times={self.times} is {self._twin.tasks} tasks, more "
                f"than the {len(self.families)} of simulator.families; the twin in which no family comes back needs "
                "as many families as tasks: name more, or lower one of the two"
            )
        if few is not None:
            raise UsageError(f"simulator.families: {few} has fewer entries than simulator.times={self.times}")

    def __getstate__(self) -> Mapping[str, object]:
        """Another process makes the entries itself."""
        return {name: value for name, value in vars(self).items() if name != "_entries"}

    # ------------------------------------------------------------------------------------------------- data

    @property
    def _twin(self) -> Twin:
        return Twin(self.reuse, self.groups, self.times)

    @cached_property
    def _entries(self) -> Sequence[GymEntry]:
        return gym_entries(tuple(self.families))

    @cached_property
    def _sizes(self) -> I32:
        names = [each.family for each in self._entries]
        return np.array([names.count(family) for family in self.families], np.int32)

    @cached_property
    def messages(self) -> Sequence[str]:
        """All texts that can occur."""
        return tuple(text for each in self._entries for text in task_texts(each.question, each.answer))

    @property
    def intents(self) -> Sequence[str]:
        """Families."""
        return self.families

    @cached_property
    def types(self) -> Sequence[str]:
        """Names of entries."""
        return tuple(
            f"{family}|{place}"
            for family, size in zip(self.families, self._sizes.tolist(), strict=True)
            for place in range(size)
        )

    @cached_property
    def names(self) -> Sequence[str]:
        """Names of skills: of each entry, and of what nobody named."""
        return (*self.types, "unnamed")

    @cached_property
    def digest(self) -> str:
        """Hash of all messages."""
        return blake2b("\n".join(self.messages).encode(), digest_size=16).hexdigest()

    # ----------------------------------------------------------------------------------------------- events

    def count(self, seed: int, users: I32, weeks: int) -> I32:
        """How many events these users have: tasks, and their answers."""
        return np.full(len(users), 2 * self._twin.tasks, np.int32)

    def begin(self, seed: int, users: I32, weeks: int) -> Solvers:
        """Memory of these users before their first turn."""
        events, met = twin_events(self._twin, self._sizes, key(seed, users), users, weeks)
        return Solvers(events, Ledger.of(events), met)

    def events(self, state: Solvers, turn: int) -> Event:
        """Events of their turn `turn`."""
        return state.events.at(turn)

    # ------------------------------------------------------------------------------------------------ turns

    def judge(self, state: Solvers, event: Event, row: I64, answer: I32, supposing: Supposing = "as given") -> I32:
        """Quality of answers as what a model is told: RIGHT where message and answer are about the same entry, NEAR
        where they are about one family. What users are told is judged by its words, in `respond`.
        """
        type_, theirs = event.type[row], state.ledger.type[row, answer]
        size = np.cumsum(self._sizes)
        about = (answer >= 0) & (np.searchsorted(size, type_, "right") == np.searchsorted(size, theirs, "right"))
        if supposing in ("as given", "run"):
            about &= state.ledger.right[row, answer]
        quality: I32 = np.where(about, np.where(type_ == theirs, RIGHT, NEAR), WRONG).astype(np.int32)
        return quality

    def respond(self, state: Solvers, event: Event, served: Served, draws: Draws) -> tuple[Solvers, Response]:
        """Judgement of the words, and ratings of answers to tasks."""
        met = state.met[np.arange(len(event.type)), event.number]
        right = [
            bool(plain_signs(words).strip()) and (kind < 0 or solved(self._entries[type_], words))
            for words, kind, type_ in zip(served.words, met.tolist(), event.type.tolist(), strict=True)
        ]
        quality = np.where(right, RIGHT, WRONG).astype(np.int32)
        called = calls(served.how)
        given = np.where(called, event.number, served.answer).astype(np.int32)
        state.ledger.mint(called.nonzero()[0], event, quality == RIGHT)
        rating = np.where((met >= 0) & (draws.rated < self.rated), np.where(quality == RIGHT, _OK, _MISS), -1)
        return state, Response(quality, given, feedback_rows(RATING, rating), outcome=GymOutcome(met))

    def offer(self, state: Solvers, event: Event, offers: Bool, draws: Draws) -> tuple[Solvers, Reaction]:
        """Accepted with a probability, under the name of the entry."""
        return state, offers_accepted(offers, self.accepts, draws.accept, event.type)

    def merge(self, state: Solvers, event: Event, row: I64, earlier: I32, draws: Draws) -> Solvers:
        """Changes nothing: no skill is run."""
        return state
