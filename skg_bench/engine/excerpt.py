"""Runs of a subset of a user's events. Events keep their numbers, so each gets the same draws as in the full run."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from skg_bench.core import state
from skg_bench.core.arms import Arm
from skg_bench.core.grid import F32, I32, I64, Bool
from skg_bench.core.world import (
    RIGHT,
    Draws,
    Event,
    Events,
    Ledger,
    Reaction,
    Response,
    Served,
    Supposing,
    Truth,
    World,
    with_ledger,
)
from skg_bench.engine.cohort import Cohort, Setting, run_cohort
from skg_bench.engine.ensembles import stacks
from skg_bench.engine.logbook import Logbook

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Excerpted:
    """Users of whom only some events happen."""

    events: Events
    users: Any  # what they remember: the world's


@dataclass(frozen=True)
class Excerpt:
    """The world `world` with the events of a table in place of its own."""

    world: World[Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["world"], name)

    def events(self, state: Excerpted, turn: int) -> Event:
        """Events of the table."""
        return state.events.at(turn)

    def respond(
        self, state: Excerpted, event: Event, served: Served, draws: Draws
    ) -> tuple[Excerpted, Response]:  # fmt: skip
        """As in that world."""
        users, response = self.world.respond(state.users, event, served, draws)
        return Excerpted(state.events, users), response

    def offer(self, state: Excerpted, event: Event, offers: Bool, draws: Draws) -> tuple[Excerpted, Reaction]:
        """As in that world."""
        users, reaction = self.world.offer(state.users, event, offers, draws)
        return Excerpted(state.events, users), reaction

    def merge(self, state: Excerpted, event: Event, row: I64, earlier: I32, draws: Draws) -> Excerpted:
        """As in that world."""
        return Excerpted(state.events, self.world.merge(state.users, event, row, earlier, draws))

    def judge(
        self, state: Excerpted, event: Event, row: I64, answer: I32, supposing: Supposing = "as given"
    ) -> I32:  # fmt: skip
        """As in that world."""
        return self.world.judge(state.users, event, row, answer, supposing)


def excerpted(world: World[Any]) -> World[Any]:
    """The world with the events of tables in place of its own; `Excerpts` makes what its users remember."""
    return cast("World[Any]", Excerpt(world))


def events_of_user(world: World[Any], seed: int, user: int, weeks: int) -> Events:
    """All events of one user of a world whose events do not depend on what is done."""
    users = np.array([user], np.int32)
    n, memory = world.count(seed, users, weeks), world.begin(seed, users, weeks)
    events = [world.events(memory, turn) for turn in range(int(n[0]))]

    def column(name: str) -> Any:
        return np.stack([getattr(event, name) for event in events], axis=1)

    truth = Truth(column("type"), column("intent"), column("answerable"), column("used_up"))
    return Events(users, n, column("number"), column("time"), column("text"), truth)


class Excerpts:
    """Parts of the events of one user, the only row of `whole`."""

    def __init__(self, setting: Setting, whole: Events) -> None:
        self._world, self._whole = cast(Excerpt, setting.world).world, whole
        self._memory = self._world.begin(setting.seed, whole.user, setting.weeks)

    def rows(self, kept: Sequence[I64]) -> Events:
        """A row of events for each of `kept` (ascending turns of the user), as if the other turns did not exist."""
        whole, truth = self._whole, self._whole.truth
        n = np.array([len(turns) for turns in kept], np.int32)
        mask = np.arange(n.max(initial=0)) < n[:, None]
        at = np.zeros(mask.shape, np.int64)
        at[mask] = np.concatenate([*kept, np.zeros(0, np.int64)])
        some = np.zeros((len(kept), whole.text.shape[1]), np.float32)
        some[np.nonzero(mask)[0], at[mask]] = 1.0
        answerable = (some @ self._holds.T).astype(np.int32)  # whole numbers: exact in any order

        def column(values: np.ndarray, empty: int) -> np.ndarray:
            return np.where(mask, values[0, at], np.array(empty, values.dtype))

        known = np.where(mask, np.take_along_axis(answerable, at, axis=1), 0)
        part = Truth(column(truth.type, -1), column(truth.intent, -1), known, column(truth.used_up, 0))
        user = np.repeat(whole.user, len(kept))
        return Events(user, n, column(whole.number, 0), column(whole.time, _NEVER), column(whole.text, 0), part)

    @cached_property
    def _holds(self) -> F32:
        """1 where an answer given rightly at turn j would be right at the later turn i, `[T, T]`."""
        whole, n = self._whole, int(self._whole.n[0])
        users = with_ledger(self._memory, Ledger.of(whole))
        quality = [
            self._world.judge(users, whole.at(i), np.zeros(1, np.int64), whole.number[0], "rightly") for i in range(n)
        ]
        holds: F32 = np.tril(np.stack(quality) == RIGHT, -1).astype(np.float32)
        return holds

    def cohort(self, events: Events) -> Cohort:
        """The users of `events` (made by `rows`) before their first turn."""
        users = state.rows(self._memory, np.zeros(len(events.n), np.int64))
        return Cohort(events.user, events.n, Excerpted(events, with_ledger(users, Ledger.of(events))))


def run_excerpts(setting: Setting, arms: Sequence[Arm], cohort: Cohort, top_k: int) -> list[Logbook]:
    """The logs of these arms; row r is user r of the cohort, whose users come in order of falling number of events."""
    logbooks: dict[int, Logbook] = {}
    for stack in stacks(arms):
        logs = run_cohort(setting, [arms[i] for i in stack], cohort, top_k, lambda _: None)
        logbooks |= zip(stack, logs, strict=True)
    return [logbooks[i] for i in range(len(arms))]
