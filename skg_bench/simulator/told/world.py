"""Users who tell codes and ask for them. What an assistant says is judged by the codes in its words, and by nothing
else: right is the code that holds, and none where none was told.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from hashlib import blake2b
from typing import ClassVar

import numpy as np

from skg_bench.core.domain import Domain
from skg_bench.core.draws import key
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING, feedback_rows
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.reach import REACHES_NOTHING, Reaches
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
from skg_bench.simulator.offer_reactions import offers_accepted
from skg_bench.simulator.told.codes import N_CODES, THINGS, codes, codes_in, messages
from skg_bench.simulator.told.outcome import TOLD_CODES, CodeNeed, StatedCode, ToldOutcome
from skg_bench.simulator.told.stream import TellingHabits, Wanted, stream

_OK, _MISS = RATINGS.index("ok"), RATINGS.index("miss")


@dataclass(frozen=True, slots=True)
class Tellers:
    """Users with all that they will bring, what is right at each event, and the codes that they have."""

    events: Events
    ledger: Ledger
    wanted: Wanted


@dataclass(frozen=True)
class Told:
    """Simulated users who tell codes. Unit, meaning and source of each parameter stand in its yaml."""

    things: int
    asks_per_week: int
    never_told: float
    changes: float
    detours: float
    rated: float
    accepts: float
    stream: Stream = field(default="exogenous", init=False)
    domain: Domain = field(default=TOLD_CODES, init=False)
    intents: Sequence[str] = field(default=THINGS, init=False)
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        for name in ("never_told", "changes", "detours", "rated", "accepts"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"simulator.{name}={getattr(self, name)} must lie in [0, 1]")
        if not 1 <= self.things <= len(THINGS):
            raise UsageError(f"simulator.things={self.things} must be 1 to {len(THINGS)}")
        if not 1 <= self.asks_per_week <= 1000:
            raise UsageError(f"simulator.asks_per_week={self.asks_per_week} must be 1 to 1000")

    # ------------------------------------------------------------------------------------------------- data

    @property
    def messages(self) -> Sequence[str]:
        """All texts that can occur."""
        return messages()

    @cached_property
    def types(self) -> Sequence[str]:
        """Names of request types: a thing with its code, and of each thing that nothing is known of it."""
        given = codes()
        return tuple(
            name
            for place, thing in enumerate(THINGS)
            for name in (
                *(f"{thing}|{code}" for code in given[place * N_CODES : (place + 1) * N_CODES]),
                f"{thing}|",
            )
        )

    @cached_property
    def names(self) -> Sequence[str]:
        """Names of skills: of each type, and of what nobody named."""
        return (*self.types, "unnamed")

    @cached_property
    def digest(self) -> str:
        """Hash of all messages."""
        return blake2b("\n".join(messages()).encode(), digest_size=16).hexdigest()

    # ----------------------------------------------------------------------------------------------- events

    @cached_property
    def _habits(self) -> TellingHabits:
        return TellingHabits(**{f.name: getattr(self, f.name) for f in fields(TellingHabits)})

    def count(self, seed: int, users: I32, weeks: int) -> I32:
        """How many events these users have."""
        return stream(self._habits, key(seed, users), users, weeks)[0].n

    def begin(self, seed: int, users: I32, weeks: int) -> Tellers:
        """Memory of these users before their first turn."""
        events, wanted = stream(self._habits, key(seed, users), users, weeks)
        return Tellers(events, Ledger.of(events), wanted)

    def events(self, state: Tellers, turn: int) -> Event:
        """Events of their turn `turn`."""
        return state.events.at(turn)

    # ------------------------------------------------------------------------------------------------ turns

    def judge(self, state: Tellers, event: Event, row: I64, answer: I32, supposing: Supposing = "as given") -> I32:
        """Quality of answers as what a model is told: RIGHT where message and answer state the code that holds, NEAR
        where they are about the same thing. What users are told is judged by its words, in `respond`.
        """
        type_, theirs = event.type[row], state.ledger.type[row, answer]
        about = (answer >= 0) & (type_ >= 0) & (type_ // (N_CODES + 1) == theirs // (N_CODES + 1))
        if supposing in ("as given", "run"):
            about &= state.ledger.right[row, answer]
        quality: I32 = np.where(about, np.where(type_ == theirs, RIGHT, NEAR), WRONG).astype(np.int32)
        return quality

    def respond(self, state: Tellers, event: Event, served: Served, draws: Draws) -> tuple[Tellers, Response]:
        """Judgement of the words, and ratings of answers to questions."""
        rows = np.arange(len(event.type))
        wanted = state.wanted
        asks, code, before = (column[rows, event.number] for column in (wanted.asks, wanted.code, wanted.before))
        changed, detour = (
            np.asarray(asks, np.bool_) & each for each in (before >= 0, wanted.detour[rows, event.number])
        )
        states = np.full(len(rows), -1, np.int32)
        for row in asks.nonzero()[0].tolist():
            states[row] = stated(served.words[row], int(code[row]), int(before[row]), wanted.code[row])
        right = np.where(asks, states == np.where(code >= 0, StatedCode.RIGHT, StatedCode.NOTHING), True)
        answered = np.array([bool(plain_signs(words).strip()) for words in served.words], np.bool_)
        quality = np.where(right & answered, RIGHT, WRONG).astype(np.int32)
        called = calls(served.how)
        given = np.where(called, event.number, served.answer).astype(np.int32)
        state.ledger.mint(called.nonzero()[0], event, quality == RIGHT)
        rating = np.where(asks & (draws.rated < self.rated), np.where(quality == RIGHT, _OK, _MISS), -1)
        need = np.where(asks, np.where(code >= 0, CodeNeed.TOLD, CodeNeed.NOT_TOLD), -1).astype(np.int32)
        outcome = ToldOutcome(need, states, changed, detour)
        return state, Response(quality, given, feedback_rows(RATING, rating), outcome=outcome)

    def offer(self, state: Tellers, event: Event, offers: Bool, draws: Draws) -> tuple[Tellers, Reaction]:
        """Accepted with a probability, under the name of the type."""
        return state, offers_accepted(offers, self.accepts, draws.accept, event.type)

    def merge(self, state: Tellers, event: Event, row: I64, earlier: I32, draws: Draws) -> Tellers:
        """Changes nothing: no skill is run."""
        return state


def stated(words: str, code: int, before: int, mine: I32) -> StatedCode:
    """Kind of code that words state. `code` holds (-1: none was told), `before` held (-1: none did); `mine` are
    codes of the user's things at all events.
    """
    inside = codes_in(words)
    if not inside:
        return StatedCode.NOTHING
    if any(number >= 0 and number not in mine for number in inside):
        return StatedCode.ANOTHER_USER
    if len(inside) > 1:
        return StatedCode.SEVERAL
    (number,) = inside
    if number < 0:
        return StatedCode.INVENTED
    if number == code:
        return StatedCode.RIGHT
    if number == before:
        return StatedCode.OUTDATED
    return StatedCode.ANOTHER_THING
