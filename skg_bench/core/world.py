"""The world's side of a turn, and its Protocol: it brings events, judges answers and reacts; it alone knows the truth.

B users stepped together, T events. Times are int64 seconds that have passed since Monday 00:00 local time of the first
week. That is what the users' clocks show, except in a replayed log after clocks were turned (core/record.py).

An answer is a handle: an index into the ledger of its row (one user under one arm), where the world keeps what it alone
knows of the answer. The answer that is minted at an event has the number of that event.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from skg_bench.core.content import Content
from skg_bench.core.domain import Domain
from skg_bench.core.feedback import Feedback
from skg_bench.core.grid import F64, I32, I64, U64, Bool

Stream = Literal["exogenous", "stateful", "reactive"]
Supposing = Literal["as given", "rightly", "rightly now", "run", "run rightly"]
OFFERS = ("accepted", "badly_named", "declined")  # codes 0, 1, 2; -1: no offer was made
FALLBACK, STORED, PROMPTED, PROCEDURE, FAILED, SILENT, LEAKED = 0, 1, 2, 3, 4, 5, 6  # how a turn was served
WRONG, NEAR, RIGHT = (
    0,
    1,
    2,
)  # quality of an answer; NEAR: the right intent, but for other slots, expired, not done
UNKNOWN, AS_LOGGED = -1, -2  # not known; not known either, but it is the very answer of a replayed log

S = TypeVar("S")  # what users remember: a state as that of a component, see core/state.py

# ---------------------------------------------------------------------------------------------------- events


@dataclass(frozen=True, slots=True)
class Event:
    """Requests of users at one turn, and what is really meant; `[B]` each. No arm sees this."""

    number: I32  # the event's own number, in the key of its draws: it stays when events move or are left out
    time: I64
    local: I64  # what the user's clock shows
    text: I32  # text id of the message
    type: I32  # request type, -1 for a one-off
    intent: I32  # -1 for a one-off
    answerable: I32  # earlier answers of this user that still hold for this event, -1: not known
    used_up: Bool  # a repeat for want of another wording of this type; for a one-off: it was drawn again


@dataclass(frozen=True, slots=True)
class Truth:
    """Truth about the events of a table."""

    type: I32  # [B, T]
    intent: I32  # [B, T]
    answerable: I32  # [B, T]
    used_up: Bool  # [B, T]


@dataclass(frozen=True, slots=True)
class Events:
    """Events made beforehand, each row a user's stream in order of time."""

    user: I32  # [B] user ids
    n: I32  # [B] number of events
    number: I32  # [B, T]
    time: I64  # [B, T] padded with the largest int64
    text: I32  # [B, T] padded with 0
    truth: Truth

    def rows(self, rows: I64) -> "Events":
        """Events of these users, padded no longer than they need."""
        width = int(self.n[rows].max(initial=0))
        t = self.truth
        truth = Truth(t.type[rows, :width], t.intent[rows, :width], t.answerable[rows, :width], t.used_up[rows, :width])
        number, time, text = self.number[rows, :width], self.time[rows, :width], self.text[rows, :width]
        return Events(self.user[rows], self.n[rows], number, time, text, truth)

    def at(self, turn: int, local: I64 | None = None) -> Event:
        """Events of one turn; padding for users who have fewer. `local` `[B]`; None: `time`."""
        truth, time = self.truth, self.time[:, turn].copy()  # side by side in memory, they are read faster
        return Event(
            self.number[:, turn].copy(), time, time if local is None else local, self.text[:, turn].copy(),
            truth.type[:, turn].copy(), truth.intent[:, turn].copy(), truth.answerable[:, turn],
            truth.used_up[:, turn],
        )  # fmt: skip


# ---------------------------------------------------------------------------------------------------- answers


@dataclass(frozen=True, slots=True)
class Ledger:
    """Knowledge of the world alone about the answers of each row, `[B, W]` each. `mint` writes into the arrays."""

    type: I32  # request type that it was given to, -1: a one-off
    text: I32  # text id of the message that it was given to
    right: Bool  # was it right when it was given?
    general: Bool  # would a procedure serve other slot values, and later times? With what `merge` added to it
    time: I64  # when it was given
    words: I32  # text id of what was said, in a domain `in_words`; -1: nothing

    @staticmethod
    def blank(n: int, width: int) -> "Ledger":
        """Room for `width` answers a row."""
        type_, text = np.full((n, width), -1, np.int32), np.full((n, width), -1, np.int32)
        right, general = np.zeros((n, width), np.bool_), np.zeros((n, width), np.bool_)
        return Ledger(type_, text, right, general, np.zeros((n, width), np.int64), text.copy())

    @staticmethod
    def of(events: Events) -> "Ledger":
        """Ledger of answers to all events of a table, none of them right."""
        ledger = Ledger.blank(len(events.n), int(events.number.max(initial=0)) + 1)
        row, turn = np.nonzero(np.arange(events.number.shape[1])[None] < events.n[:, None])
        number = events.number[row, turn]
        ledger.type[row, number] = events.truth.type[row, turn]
        ledger.text[row, number], ledger.time[row, number] = events.text[row, turn], events.time[row, turn]
        return ledger

    def mint(self, row: I64, event: Event, right: Bool, general: Bool | None = None) -> None:
        """New answers of rows `row` `[n]` at their events; `event`, `right` and `general` (None: none is) are of all
        rows.
        """
        number = event.number[row]
        if general is not None:
            self.general[row, number] = general[row]
        self.type[row, number], self.right[row, number] = event.type[row], right[row]
        self.text[row, number], self.time[row, number] = event.text[row], event.time[row]


def brought(state: S, rows: I64, ledger: Ledger, theirs: I64) -> tuple[S, int]:
    """`state` with the ledger rows `theirs` of `ledger` appended, as columns, to its own ledger rows `rows`; and the
    offset to add to handles into `ledger`.
    """
    before = ledger_of(state)
    columns, width = {}, before.type.shape[1]
    for f in fields(Ledger):
        mine, added = getattr(before, f.name), getattr(ledger, f.name)
        block = np.zeros((len(mine), added.shape[1]), mine.dtype)
        block[rows] = added[theirs]
        columns[f.name] = np.concatenate([mine, block], axis=1)
    added_to: S = with_ledger(state, Ledger(**columns))
    return added_to, width


def ledger_of(state: Any) -> Ledger:
    """The ledger among what users remember."""
    return next(part for part in _parts(state) if isinstance(part, Ledger))


def with_ledger(state: Any, ledger: Ledger) -> Any:
    """The same memory with another ledger."""
    if isinstance(state, Ledger):
        return ledger
    if isinstance(state, tuple):
        return tuple(with_ledger(part, ledger) for part in state)
    if not is_dataclass(state) or isinstance(state, type):
        return state
    return replace(state, **{f.name: with_ledger(getattr(state, f.name), ledger) for f in fields(state)})


def _parts(state: Any) -> list[Any]:
    if isinstance(state, Ledger):
        return [state]
    inner = state if isinstance(state, tuple) else ()
    if is_dataclass(state):
        inner = tuple(getattr(state, f.name) for f in fields(state))
    return [part for value in inner for part in _parts(value)]


# ------------------------------------------------------------------------------------------------------- turn


@dataclass(frozen=True, slots=True)
class Served:
    """Decisions for the users as the world needs them, `[B]` each."""

    how: I32  # FALLBACK, STORED, PROMPTED or PROCEDURE
    answer: I32  # handle of the answer that the skill stores, or was made of; -1: no skill was served
    ability: F64  # probability that the model is right, where it is called; NaN: nobody knows
    if_misled: F64  # the same where its prompt turns out to be about something else
    compared: I32  # handle of the answer with which that of the model is to be compared, -1: with none
    said: "Unread | SkillsSaid"  # as the domain says: skills keep answers, or the world has read them
    recalled: I32  # [B, K] handles of all earlier answers in the prompt, -1: none; with one, it is `answer`
    words: Sequence[str] = ()  # [B] what users are told, in a domain `in_words`; empty where nothing came


@dataclass(frozen=True, slots=True)
class Unread:
    """The case of a domain in which skills keep answers."""


@dataclass(frozen=True, slots=True)
class SkillsSaid:
    """The case of a world that reads what skills say, `[B]` each."""

    about: I32  # what the served skill is really about, a kind; -1: no skill
    sound: Bool  # is it well made?
    fresh: bool  # users react as if they remembered nothing of what was done to them before


UNREAD = Unread()


def hit_mask(how: I32) -> Bool:
    """Mask of turns that a skill answered, or another user's answer: not those where nothing came back from a
    procedure.
    """
    served: Bool = (how == STORED) | (how == PROMPTED) | (how == PROCEDURE) | (how == LEAKED)
    return served


def calls(how: I32) -> Bool:
    """Mask of turns at which the model was called."""
    called: Bool = (how != STORED) & (how != PROCEDURE) & (how != SILENT) & (how != LEAKED)
    return called


@dataclass(frozen=True, slots=True)
class Execution:
    """The case of a turn with procedures, and their results, `[B]` each; any value where none was run."""

    failed: Bool  # nothing came back, so that the model was called after it
    cause: I32  # index into CAUSES (core/types.py): `slot` or `tool`; -1: it did what it should
    cost_usd: F64  # of tools
    latency_ms: F64


@dataclass(frozen=True, slots=True)
class AsServed:
    """The case of a turn at which all was done as it was served."""


@dataclass(frozen=True, slots=True)
class Silence:
    """The case of a turn at which nothing was said to some users: no model was called, and no skill served."""

    unspoken: Bool  # [B]


AS_SERVED = AsServed()
MeteredColumn = Literal["cost_usd", "latency_ms"]


@dataclass(frozen=True, slots=True)
class Metered:
    """The case of a turn of a log that says what the model's answer cost there, or how long it took.

    `[B]` each, NaN where the log does not say it. Without a column that is nowhere said, and `Arm.llm` counts.
    """

    columns: Mapping[MeteredColumn, F64]


@dataclass(frozen=True, slots=True)
class Response:
    """Quality of the answers, `[B]` each, and what users say of them."""

    quality: I32
    answer: I32  # handle of the answer that was given
    feedback: Feedback
    case: AsServed | Execution | Silence | Metered = AS_SERVED
    outcome: Any = None  # frozen dataclass with the fields of the domain's outcome; None: the domain has none


@dataclass(frozen=True, slots=True)
class Reaction:
    """How users react to an offer to capture, `[B]` each."""

    code: I32  # in OFFERS, -1: nobody was asked
    name: I32  # index into the world's `names`, -1: none was given; for curators the text id of the name
    general: I32  # the name for all requests of the intent, in the same way; `name` itself where there is no other


@dataclass(frozen=True, slots=True)
class Draws:
    """The world's uniforms of one turn, `[B]` each; keyed by (seed, user, event, purpose). No arm sees them."""

    llm_right: F64
    skill_right: F64
    latency: F64
    length: F64
    rating: F64
    rated: F64
    late: F64
    delay: F64
    accept: F64
    name: F64
    event: U64  # key of the event


class World(Protocol[S]):
    """The users: their events, what is right, and how they react. Its config group is `simulator`.

    `S` is what users remember, with one `Ledger` in it, to which answers are added in place; `respond` and `offer` may
    write into the other arrays too.
    """

    @property
    def stream(self) -> Stream:
        """`exogenous`: events and reactions are functions of the turn alone. `stateful`: the events are the same for
        every arm, reactions depend on what was done to the user before. `reactive`: events may change too.
        """
        ...

    @property
    def domain(self) -> Domain:
        """Feedback, outcome and metrics of the world, as a value."""
        ...

    @property
    def messages(self) -> Sequence[str]:
        """All messages that users can send, by text id; the ids of other texts come after these (core/texts.py)."""
        ...

    @property
    def types(self) -> Sequence[str]:
        """Names of request types."""
        ...

    @property
    def intents(self) -> Sequence[str]:
        """Names of intents."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """All names of skills, those of the request types first; the last is the name of skills added without one."""
        ...

    @property
    def digest(self) -> str:
        """Hash of the data it draws from."""
        ...

    def count(self, seed: int, users: I32, weeks: int) -> I32:
        """How many events these users have, `[B]`, without making them."""
        ...

    def begin(self, seed: int, users: I32, weeks: int) -> S:
        """Memory of these users before their first turn; a pure function of (seed, user, weeks)."""
        ...

    def events(self, state: S, turn: int) -> Event:
        """Events of the users at their turn `turn`; any values for those who have fewer turns."""
        ...

    def respond(self, state: S, event: Event, served: Served, draws: Draws) -> tuple[S, Response]:
        """Consequences of the answers given; the answers of models are minted. It is asked twice about a turn at which
        an assistant asked the model and said something else: first as if all that the model said had been given.
        """
        ...

    def offer(self, state: S, event: Event, offers: Bool, draws: Draws) -> tuple[S, Reaction]:
        """How those to whom `offers` to capture are made react, `[B]`."""
        ...

    def merge(self, state: S, event: Event, row: I64, earlier: I32, draws: Draws) -> S:
        """Each of rows `row` `[n]` has a skill that is now made of answer `earlier` (a handle) and of that just minted;
        what that changes is written into the ledger.
        """
        ...

    def judge(self, state: S, event: Event, row: I64, answer: I32, supposing: Supposing = "as given") -> I32:
        """Quality of answers `answer` (handles, -1: none) to the events of rows `row`, which broadcast. `supposing`: as
        they were given; as if they had been right when given (`rightly`); as if also given just now (`rightly now`).
        Of procedures made of them, if slots are filled and tools work: `run`, and `run rightly` as above.
        """
        ...


class ReadingWorld(World[S], Protocol[S]):
    """A world that reads what skills say, and knows what that is worth: that of a domain without answers."""

    @property
    def kinds(self) -> Sequence[str]:
        """Kinds of what skills may say, by their index; -1 is what is said without a skill."""
        ...

    @property
    def texts(self) -> Sequence[Content]:
        """Contents whose kind is known."""
        ...

    def read(self, contents: Sequence[Content]) -> tuple[I32, Bool]:
        """Kinds that skills with these contents are really about, `[n]`, and a mask of those well made."""
        ...

    def worth(self, state: S, event: Any, about: I32, sound: Bool) -> F64:
        """Expected worth of kinds `about` `[B, S]` (-1: what is said without a skill) to users without a mood, at
        their events.
        """
        ...


def timetable(world: World[S], state: S, turns: int) -> I64:
    """Times of the first `turns` events, `[B, turns]`, of a world whose events do not depend on what is done."""
    return np.stack([world.events(state, turn).time for turn in range(turns)], axis=1)
