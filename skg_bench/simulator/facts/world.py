"""Users of the world of answers who know things that nobody else knows. README.md has the types and the data flow.

Requests are those of `users`, with their numbers, so that the same draws decide about them. Tellings and requests for
two facts come in between. What is right follows from the type of a request: rules of `simulator.answers` judge it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from skg_bench.core.calendar import DAY
from skg_bench.core.domain import Domain
from skg_bench.core.draws import Purpose, fold, key, uniform
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import feedback_rows, joined_rows
from skg_bench.core.grid import I32, I64, U64, Bool
from skg_bench.core.reach import Reach, Reaches
from skg_bench.core.world import (
    NEAR,
    PROMPTED,
    RIGHT,
    WRONG,
    Draws,
    Event,
    Events,
    Reaction,
    Response,
    Served,
    Stream,
    Supposing,
)
from skg_bench.simulator.answers.judging import Judging, Users
from skg_bench.simulator.answers.world import AssistantUsers
from skg_bench.simulator.facts.catalogue import Catalogue
from skg_bench.simulator.facts.errors import Persistence
from skg_bench.simulator.facts.knowing import ASKED_BACK, DECLINED, STATED, Knowledge, Manners, Turns, knowledge
from skg_bench.simulator.facts.ledger import TellingShares, draw_tellings, pair_requests
from skg_bench.simulator.facts.outcome import CORRECTION, FACTS, KNOWABLE, OLD_DAYS, UNKNOWABLE, FactOutcome
from skg_bench.simulator.facts.stream import Needs, woven
from skg_bench.simulator.facts.table import TELLING, FactTable, fact_table
from skg_bench.simulator.facts.told_file import ToldRow, told_digest, told_rows, told_tellings

WhoKnows = Literal["table", "world"]
_MODEL = 2**31 - 1  # in the place of a user's id, in the key of the model


@dataclass(frozen=True, slots=True)
class FactUsersState:
    """Users with all that they will bring, what their events need, and what they remember."""

    users: Users
    needs: Needs
    model: U64  # [B] key of the model's persistent luck, the same for all


@dataclass(frozen=True)
class FactUsers:
    """Simulated users who tell facts. Unit, meaning and source of each parameter stand in its yaml."""

    users: AssistantUsers
    facts: str | None
    tellings: str | None
    known_by: WhoKnows
    tools: bool
    never_told: float
    asked_before_told: float
    told_twice: float
    facts_change: float
    facts_end: float
    implied: float
    asks_for_two: float
    asks_back: float
    declines: float
    guesses_if_misled: float
    guess_right: float
    users_correct: float
    mistaken: float
    persists_by_type: float
    persists_by_wording: float
    correction_repairs: float
    stream: Stream = field(default="stateful", init=False)  # offers tire
    domain: Domain = field(default=FACTS, init=False)
    reaches: ClassVar[Reaches] = {"facts": Reach(("reads",)), "tellings": Reach(("reads",))}

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.type is float and not 0 <= getattr(self, each.name) <= 1:
                raise UsageError(f"simulator.{each.name}={getattr(self, each.name)} must lie in [0, 1]")
        for first, second in (("asks_back", "declines"), ("persists_by_type", "persists_by_wording")):
            if getattr(self, first) + getattr(self, second) > 1:
                raise UsageError(
                    f"simulator.{first}={getattr(self, first)} and {second}={getattr(self, second)} are shares of the "
                    "same whole; together they are at most 1"
                )

    # ------------------------------------------------------------------------------------------------- data

    @cached_property
    def catalogue(self) -> Catalogue:
        """Types, intents and messages, with those of facts."""
        types, intents = self.users.types, self.users.intents
        table = FactTable.none(len(types))
        if self.known_by == "table":
            table = fact_table(self.facts, types, intents)
        intent = self.users.judging.intent_of[:-1]
        return Catalogue(table, self.users.messages, types, intents, intent)

    @property
    def messages(self) -> Sequence[str]:
        """All texts that can occur."""
        return self.catalogue.messages

    @property
    def types(self) -> Sequence[str]:
        """Names of request types, by what is right."""
        return self.catalogue.types

    @property
    def intents(self) -> Sequence[str]:
        """Names of intents."""
        return self.catalogue.intents

    @cached_property
    def names(self) -> Sequence[str]:
        """Names of skills: those of `users`, with the types of facts behind their types."""
        names, n = self.users.names, len(self.users.types)
        return (*names[:n], *self.types[n:], *names[n:])

    @cached_property
    def _told(self) -> Sequence[ToldRow]:
        """Rows of the file of tellings."""
        return () if self.tellings is None else told_rows(self.tellings, self.catalogue)

    @property
    def digest(self) -> str:
        """Hash of corpus, facts and tellings."""
        return f"{self.users.digest}{self.catalogue.table.digest}{told_digest(self.tellings)}"

    def one_offs_again(self, seed: int, users: I32, weeks: int) -> float:
        """Expected share of a user's one-offs that come again."""
        return self.users.one_offs_again(seed, users, weeks)

    # ----------------------------------------------------------------------------------------------- events

    def count(self, seed: int, users: I32, weeks: int) -> I32:
        """How many events these users have."""
        if not self.catalogue.n_facts:
            return self.users.count(seed, users, weeks)
        return self._events(seed, users, weeks)[0].n

    def begin(self, seed: int, users: I32, weeks: int) -> FactUsersState:
        """Memory of these users before their first turn."""
        events, needs = self._events(seed, users, weeks)
        model = np.repeat(key(seed, np.array([_MODEL])), len(users))
        return FactUsersState(Users.of(events), needs, model)

    def _events(self, seed: int, users: I32, weeks: int) -> tuple[Events, Needs]:
        events, keys, horizon = self.users.population(seed, users, weeks), key(seed, users), weeks * 7 * DAY
        pairs = pair_requests(self.catalogue, self.asks_for_two, keys, events, horizon)
        if self.tellings is None:
            tellings = draw_tellings(self.catalogue, self._shares, keys, events, pairs, horizon)
        else:
            tellings = told_tellings(self._told, self.catalogue, keys, users, horizon)
        return woven(self.catalogue, self._judging.ttl_of, events, tellings, pairs)

    def events(self, state: FactUsersState, turn: int) -> Event:
        """Events of their turn `turn`."""
        return state.users.events.at(turn)

    # ------------------------------------------------------------------------------------------------ turns

    @cached_property
    def _shares(self) -> TellingShares:
        return TellingShares(*(getattr(self, f.name) for f in fields(TellingShares)))

    @cached_property
    def _manners(self) -> Manners:
        return Manners(*(getattr(self, f.name) for f in fields(Manners)))

    @cached_property
    def _persistence(self) -> Persistence:
        return Persistence(*(getattr(self, f.name) for f in fields(Persistence)))

    @cached_property
    def _judging(self) -> Judging:
        """The rules of `users`, for all types: what is said of a fact holds as long as the type does."""
        rules, like = self.users.judging, self.catalogue.like
        return replace(rules, intent_of=self.catalogue.intent, ttl_of=rules.ttl_of[like])

    def judge(
        self, state: FactUsersState, event: Event, row: I64, answer: I32, supposing: Supposing = "as given"
    ) -> I32:
        """Quality of answers to the events of rows `row`: RIGHT while it holds, for the very same request. To requests
        for facts NEAR are those alone that state one of these facts, or another value of it.
        """
        ledger, thing = state.users.ledger, self.catalogue.thing
        quality = self._judging.judge(ledger, event, row, answer, supposing)
        needs = state.needs.thing[row, event.number[row]]
        theirs = np.where(answer >= 0, thing[ledger.type[row, answer]], -1)
        about = (needs[..., 0] >= 0) & (theirs >= 0) & ((needs[..., 0] == theirs) | (needs[..., 1] == theirs))
        if supposing in ("as given", "run"):
            about &= ledger.right[row, answer]
        near = np.where(about, np.maximum(quality, NEAR), np.where(quality == RIGHT, RIGHT, WRONG))
        return np.where(needs[..., 0] >= 0, near, quality).astype(np.int32)

    def respond(
        self, state: FactUsersState, event: Event, served: Served, draws: Draws
    ) -> tuple[FactUsersState, Response]:
        """Ratings, corrections of wrong answers, and what the model knew."""
        turns = Turns.of(state.needs, event.type, event.number)
        known = knowledge(self.catalogue, self._manners, turns, state.users.ledger, served, draws.event)
        misled = np.where(turns.owned(tools=self.tools), served.if_misled, known.ability)
        able = replace(served, ability=known.ability, if_misled=misled)
        luck = self._luck(state, event, served, draws, turns)
        _, response = self.users.responded(self.users.reactions, self._judging, state.users, event, able, luck)
        corrected = self._corrected(state, event, turns, known, response, draws)
        feedback = joined_rows([response.feedback, feedback_rows(CORRECTION, np.where(corrected, 0, -1))])
        outcome = self._outcome(event, turns, known, response.answer == event.number)
        return state, replace(response, feedback=feedback, outcome=outcome)

    def _luck(self, state: FactUsersState, event: Event, served: Served, draws: Draws, turns: Turns) -> Draws:
        """Draws of the model, whose errors persist where it answers by itself."""
        rows = np.arange(len(event.type))
        lasts = turns.owned(tools=self.tools)
        source = np.where(served.how == PROMPTED, served.answer, -1)
        corrected = self.judge(state, event, rows, source, "as given") == RIGHT
        return self._persistence.luck(
            draws, state.model[: len(rows)], self.catalogue.like[event.type], event.text, lasts=lasts,
            corrected=corrected,
        )  # fmt: skip

    def _corrected(
        self, state: FactUsersState, event: Event, turns: Turns, known: Knowledge, response: Response, draws: Draws
    ) -> Bool:
        """Mask of users `[B]` who say what is right. Writes into the ledger what answers to requests state."""
        catalogue, ledger = self.catalogue, state.users.ledger
        row = ((catalogue.thing[event.type] >= 0) & (response.answer == event.number)).nonzero()[0]
        number, thing = event.number[row], catalogue.thing[event.type[row]]
        ledger.general[row, number] = False  # a fact of one user serves no other slot value
        asks = (turns.knower[row] != TELLING) & (response.quality[row] == WRONG)
        row, number, thing = row[asks], number[asks], thing[asks]
        honest = np.isin(known.manner[row], (ASKED_BACK, DECLINED))
        stated = np.where(honest, catalogue.silent[thing], catalogue.false[thing])
        u = uniform(fold(fold(draws.event[row], int(Purpose.CORRECTED)), np.arange(2)[:, None]))
        corrects = turns.knowable(catalogue)[row] & (u[0] < self.users_correct)
        rightly = corrects & (u[1] >= self.mistaken)
        stated = np.where(corrects, np.where(rightly, event.type[row], catalogue.false[thing]), stated)
        ledger.type[row, number], ledger.right[row, number] = stated, rightly
        mask = np.zeros(len(event.type), np.bool_)
        mask[row] = corrects
        return mask

    def _outcome(self, event: Event, turns: Turns, known: Knowledge, called: Bool) -> FactOutcome:
        knowable, needs = turns.knowable(self.catalogue), turns.thing[:, 0] >= 0
        need = np.where(needs, np.where(knowable, KNOWABLE, UNKNOWABLE), -1).astype(np.int32)
        old = knowable & (event.time - turns.told >= OLD_DAYS * DAY)
        return FactOutcome(
            turns.knower.astype(np.int32), need, np.where(called, known.prompt, -1).astype(np.int32),
            np.where(called, known.manner, STATED).astype(np.int32), turns.changed, turns.first, old,
            np.where(called, known.chance, np.nan),
        )  # fmt: skip

    def offer(self, state: FactUsersState, event: Event, offers: Bool, draws: Draws) -> tuple[FactUsersState, Reaction]:
        """Do they accept an offer to capture, and which name do they give? A fact has one name, whatever its value."""
        alike = replace(event, type=self.catalogue.like[event.type])
        _, reaction = self.users.offered(self.users.reactions, state.users, alike, offers, draws)
        n, more = len(self.users.types), len(self.types) - len(self.users.types)
        name, general = (np.where(x < n, x, x + more).astype(np.int32) for x in (reaction.name, reaction.general))
        return state, Reaction(reaction.code, name, general)

    def merge(self, state: FactUsersState, event: Event, row: I64, earlier: I32, draws: Draws) -> FactUsersState:
        """A second example with another value can make a procedure general, but not one for facts."""
        self._judging.merge(state.users.ledger, event, row, earlier, draws)
        facts = row[self.catalogue.thing[event.type[row]] >= 0]
        state.users.ledger.general[facts, event.number[facts]] = False
        return state
