"""Worlds in front of the real one: they remember what was said, lie about the truth, or change the users' mind."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skg_bench.core.batch import nth
from skg_bench.core.feedback import RATING, Feedback, joined_rows
from skg_bench.core.grid import F64, I32, I64, U64, Bool
from skg_bench.core.types import LLM, Completions, Prompts
from skg_bench.core.world import PROCEDURE, Draws, Event, Execution, Reaction, Response, Served, Supposing, World
from skg_bench.engine import scene

_DRAWS_OF = scene.draws_of
Place = tuple[int, int]


@dataclass
class Front:
    """Does what the world behind it does."""

    world: World[Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["world"], name)


@dataclass
class Remembering(Front):
    """Keeps what users said and did at each event, under each arm of a stack; for runs of one stack."""

    said: dict[Place, list[tuple[int, int, int]]] = field(default_factory=dict)  # kind, value, delay
    offers: dict[Place, tuple[int, int, int]] = field(default_factory=dict)
    failed: dict[Place, bool] = field(default_factory=dict)  # nothing came back from a procedure, as assistants see

    def respond(self, state: Any, event: Event, served: Served, draws: Draws) -> tuple[Any, Response]:
        """As the world behind."""
        state, response = self.world.respond(state, event, served, draws)
        given, places = response.feedback, places_of(draws)
        self.said.update({place: [] for place in places})
        for row, *rest in zip(*(column.tolist() for column in columns(given)), strict=True):
            self.said[places[row]].append(tuple(rest))
        if isinstance(response.case, Execution):
            self.failed |= zip(places, response.case.failed.tolist(), strict=True)
        return state, response

    def offer(self, state: Any, event: Event, offers: Bool, draws: Draws) -> tuple[Any, Reaction]:
        """As the world behind."""
        state, reaction = self.world.offer(state, event, offers, draws)
        general, places = reaction.general, places_of(draws)
        for row in np.flatnonzero(offers).tolist():
            self.offers[places[row]] = int(reaction.code[row]), int(reaction.name[row]), int(general[row])
        return state, reaction


def places_of(draws: Draws) -> list[Place]:
    """Key of the event of each row, and the number of its arm: rows of a user's arms lie side by side."""
    return list(zip(draws.event.tolist(), nth(draws.event).tolist(), strict=True))  # type: ignore[arg-type]


def columns(given: Feedback) -> Sequence[np.ndarray]:
    """Row, kind, value, delay."""
    return given.row, given.kind, given.value, given.delay


@dataclass
class Retelling(Front):
    """What users say and do is what was said and done the first time; nobody is offers at another event than then."""

    memory: Remembering

    def respond(self, state: Any, event: Event, served: Served, draws: Draws) -> tuple[Any, Response]:
        """As the world behind, and what was said the first time."""
        state, response = self.world.respond(state, event, served, draws)
        rows = [(row, *what) for row, place in enumerate(places_of(draws)) for what in self.memory.said[place]]
        row, kind, value, delay = np.array(rows, np.int64).reshape(-1, 4).T
        given = Feedback(row, kind.astype(np.int32), value.astype(np.int32), delay)
        return state, self._executed(replace(response, feedback=given), event, served, draws)

    def _executed(self, response: Response, event: Event, served: Served, draws: Draws) -> Response:
        """With procedures that fail where they failed the first time."""
        if not isinstance(response.case, Execution):
            return response
        failed = np.array([self.memory.failed.get(place, False) for place in places_of(draws)])
        answer = np.where(served.how == PROCEDURE, np.where(failed, event.number, served.answer), response.answer)
        return replace(response, answer=answer, case=replace(response.case, failed=failed))

    def offer(self, state: Any, event: Event, offers: Bool, draws: Draws) -> tuple[Any, Reaction]:
        """What was done the first time."""
        code, name, general = (np.full(len(offers), -1, np.int32) for _ in range(3))
        places = places_of(draws)
        for row in np.flatnonzero(offers).tolist():
            code[row], name[row], general[row] = self.memory.offers[places[row]]
        return state, Reaction(code, name, general)


@dataclass
class Lying(Retelling):
    """The same messages and the same feedback, under another truth: other types, other qualities."""

    seed: int

    def events(self, state: Any, turn: int) -> Event:
        """All that is true of the events is shuffled, over the users of each turn, one-offs included."""
        event = self.world.events(state, turn)
        order = np.random.default_rng([self.seed, turn]).permutation(len(event.type))
        truth = {name: getattr(event, name)[order] for name in ("type", "intent", "answerable", "used_up")}
        return replace(event, **truth)

    def respond(self, state: Any, event: Event, served: Served, draws: Draws) -> tuple[Any, Response]:
        """Right where the world behind is wrong."""
        state, response = super().respond(state, event, served, draws)
        return state, replace(response, quality=2 - response.quality)

    def judge(self, state: Any, event: Event, row: I64, answer: I32, supposing: Supposing = "as given") -> I32:
        """The contrary of what is."""
        contrary: I32 = 2 - self.world.judge(state, event, row, answer, supposing)
        return contrary


def redrawn(since: int = 0) -> Callable[[U64, I32], Draws]:
    """The world's draws, others than its own from event number `since` of each user on."""

    def draws_of(keys: U64, number: I32) -> Draws:
        own, other = _DRAWS_OF(keys, number), _DRAWS_OF(~keys, number)
        later = number >= since
        names = [name for name in Draws.__dataclass_fields__ if name != "event"]
        return replace(own, **{name: np.where(later, getattr(other, name), getattr(own, name)) for name in names})

    return draws_of


@dataclass(frozen=True)
class Contrary:
    """An LLM that is as often right as the other is wrong."""

    llm: LLM

    def complete(self, prompts: Prompts) -> Completions:
        """At the same cost."""
        return self.llm.complete(prompts)

    def ability(self, with_skill: Bool, *, fitting: bool) -> F64:
        """The rest to one."""
        return 1.0 - self.llm.ability(with_skill, fitting=fitting)


@dataclass
class Moody(Front):
    """Ratings that become known after `until` are others."""

    until: int

    def respond(self, state: Any, event: Event, served: Served, draws: Draws) -> tuple[Any, Response]:
        """Ok becomes partial, partial miss, miss ok; who would have said nothing says miss."""
        state, response = self.world.respond(state, event, served, draws)
        said = response.feedback
        rating, delay = np.full(len(event.time), -1, np.int32), np.zeros(len(event.time), np.int64)
        rated = said.kind == RATING
        rating[said.row[rated]], delay[said.row[rated]] = said.value[rated], said.delay[rated]
        later = event.time + delay > self.until
        changed = np.where(later, (rating + 1) % 3, rating).astype(np.int32)
        row = np.flatnonzero(changed >= 0)
        ratings = Feedback(row, np.full(len(row), RATING, np.int32), changed[row], delay[row])
        return state, replace(response, feedback=joined_rows([ratings, said.rows(~rated)]))
