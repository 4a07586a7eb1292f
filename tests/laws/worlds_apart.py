"""Users in front of the real ones: they remember what was said, lie about the truth, or change their mind."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from skg_bench.core.draws import fold, key
from skg_bench.core.grid import F64, I32, I64, U64, Bool
from skg_bench.core.types import LLM, Answer
from skg_bench.core.world import Draws, Events, Reaction, Truth, World


@dataclass
class Front:
    """Does what the users behind it do."""

    users: World

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["users"], name)


@dataclass
class Remembering(Front):
    """Keeps what users did at each event; for runs of one arm, as events are all that it is kept by."""

    reactions: dict[int, tuple[int, int]] = field(default_factory=dict)
    offers: dict[int, tuple[int, int, float]] = field(default_factory=dict)
    agreed: dict[int, bool] = field(default_factory=dict)

    def react(self, quality: I32, draws: Draws) -> Reaction:
        """As the users behind."""
        done = self.users.react(quality, draws)
        rows = zip(done.rating.tolist(), done.delay.tolist(), strict=True)
        self.reactions.update(zip(draws.event.tolist(), rows, strict=True))
        return done

    def same_answer(self, stored: I32, fresh: I32, draws: Draws) -> Bool:
        """As the users behind."""
        same: Bool = self.users.same_answer(stored, fresh, draws)
        self.agreed.update(zip(draws.event.tolist(), same.tolist(), strict=True))
        return same

    def offer(self, type_: I32, text: I32, fatigue: F64, idle: I64, draws: Draws) -> tuple[I32, I32, F64]:
        """As the users behind."""
        done = self.users.offer(type_, text, fatigue, idle, draws)
        self.offers.update(zip(draws.event.tolist(), zip(*(d.tolist() for d in done), strict=True), strict=True))
        return done


@dataclass
class Lying(Front):
    """The same messages and the same feedback, under another truth: other types, other qualities."""

    said: Remembering
    seed: int

    def population(self, seed: int, users: I32, weeks: int) -> Events:
        """All truth is shuffled: over the events of all users, one-offs included."""
        events = self.users.population(seed, users, weeks)
        real = np.arange(events.time.shape[1])[None] < events.n[:, None]
        order = np.random.default_rng(self.seed).permutation(int(real.sum()))

        def shuffled(column: np.ndarray) -> np.ndarray:
            out = column.copy()
            out[real] = column[real][order]
            return out

        return replace(events, truth=Truth(*(shuffled(getattr(events.truth, f.name)) for f in fields(Truth))))

    def judge(self, event_type: I32, source_type: I32, source_right: Bool, age: I64) -> I32:
        """The contrary of what is."""
        contrary: I32 = 2 - self.users.judge(event_type, source_type, source_right, age)
        return contrary

    def react(self, quality: I32, draws: Draws) -> Reaction:
        """What was said the first time."""
        rating, delay = zip(*(self.said.reactions[e] for e in draws.event.tolist()), strict=True)
        return Reaction(np.array(rating, np.int32), np.array(delay, np.int64))

    def same_answer(self, stored: I32, fresh: I32, draws: Draws) -> Bool:
        """What was found the first time."""
        return np.array([self.said.agreed[e] for e in draws.event.tolist()])

    def offer(self, type_: I32, text: I32, fatigue: F64, idle: I64, draws: Draws) -> tuple[I32, I32, F64]:
        """What was done the first time; nobody is asked at another event than then."""
        code, name, tired = zip(*(self.said.offers[e] for e in draws.event.tolist()), strict=True)
        return np.array(code, np.int32), np.array(name, np.int32), np.array(tired)


@dataclass(frozen=True)
class Contrary:
    """An LLM that is right where the other is wrong."""

    llm: LLM

    def answer(self, words: I32, with_skill: Bool, draws: Draws) -> Answer:
        """At the same cost."""
        answer = self.llm.answer(words, with_skill, draws)
        return replace(answer, right=~answer.right)

    def serve(self, words: I32, draws: Draws) -> Answer:
        """At the same cost."""
        return self.llm.serve(words, draws)


@dataclass
class Moody(Front):
    """Ratings that become known after `until` are others."""

    until: int
    _time_of: Callable[[U64], I64] | None = None

    def population(self, seed: int, users: I32, weeks: int) -> Events:
        """As the users behind; which event happens when is kept."""
        events = self.users.population(seed, users, weeks)
        keys = fold(key(seed, users)[:, None], np.arange(events.time.shape[1])[None])
        order = np.argsort(keys.reshape(-1))
        known, time = keys.reshape(-1)[order], events.time.reshape(-1)[order]
        self._time_of = lambda event: time[np.searchsorted(known, event)]
        return events

    def react(self, quality: I32, draws: Draws) -> Reaction:
        """Ok becomes partial, partial miss, miss ok; who would have said nothing says miss."""
        assert self._time_of is not None
        done = self.users.react(quality, draws)
        later = self._time_of(draws.event) + done.delay > self.until
        return replace(done, rating=np.where(later, (done.rating + 1) % 3, done.rating).astype(np.int32))
