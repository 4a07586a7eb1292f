"""Tellings, changes and questions of users as tables of events, and what is right at each."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from skg_bench.core.calendar import DAY
from skg_bench.core.draws import Purpose, draw
from skg_bench.core.grid import F64, I32, I64, U64, Bool
from skg_bench.core.world import Events, Truth
from skg_bench.simulator.chance import clock
from skg_bench.simulator.order import answerable
from skg_bench.simulator.told.codes import (
    ASK_WORDINGS,
    CHANGE_WORDINGS,
    N_CODES,
    NAMING_WORDINGS,
    TELL_WORDINGS,
    THINGS,
    naming,
    question,
    statement,
)

_FIRST, _AT, _NEVER, _SECOND, _CHANGED, _CHANGED_AT, _ORDER, _WORDING, _AGAIN = range(9)  # decisions about a thing
_DETOUR, _NAMED_AT, _NAMING = range(9, 12)
_WHEN, _CLOCK, _WHICH, _HOW = range(20, 24)  # and about a question
_TOLD_BY_DETOUR = len(TELL_WORDINGS) + len(CHANGE_WORDINGS)  # a wording, and the next one that of its change
_FOR_EVER = 2**40  # seconds for which an answer holds: a code does not expire by itself
_NEVER_COMES = np.iinfo(np.int64).max


@dataclass(frozen=True)
class TellingHabits:
    """Shares and rates of users. Unit, meaning and source of each stand in `conf/simulator/told.yaml`."""

    things: int
    asks_per_week: int
    never_told: float
    changes: float
    detours: float


@dataclass(frozen=True, slots=True)
class Wanted:
    """Right answers to each event, by its number, `[B, W]` each."""

    thing: I32  # index into THINGS
    asks: Bool  # else it tells
    code: I32  # number of the code that holds, -1: none was told
    before: I32  # number of the code that held before, -1: none did
    detour: Bool  # the code is told under a name


def type_of(thing: I32, code: I32) -> I32:
    """Request types: a thing and its code; of code -1, of which nothing is known."""
    return (thing * (N_CODES + 1) + np.where(code >= 0, code % N_CODES, N_CODES)).astype(np.int32)


def stream(habits: TellingHabits, keys: U64, users: I32, weeks: int) -> tuple[Events, Wanted]:
    """Events of users `[B]` in order of time, and what is right at each."""
    known = _known(habits, keys, weeks * 7 * DAY)
    return _ordered(
        users,
        [_namings(keys, known), _tellings(keys, known), _changes(keys, known), _questions(habits, keys, weeks, known)],
    )


@dataclass(frozen=True, slots=True)
class _Known:
    """Things that users have codes of, `[B, things]` each."""

    thing: I32
    told: Bool  # else nothing is ever told
    told_at: I64
    changed: Bool
    changed_at: I64
    first: I32  # number of the code
    second: I32  # after the change
    detour: Bool  # told under a name


@dataclass(frozen=True, slots=True)
class _Part:
    """Events, `[B, n]` each."""

    there: Bool  # else it is none
    time: I64
    thing: I32
    asks: Bool
    code: I32
    before: I32
    text: I32
    detour: Bool


def _known(habits: TellingHabits, keys: U64, horizon: int) -> _Known:
    every = np.arange(len(THINGS), dtype=np.int32)[None]
    thing = np.argsort(_draws(keys, every, _ORDER), axis=1, kind="stable")[:, : habits.things].astype(np.int32)
    u = [_draws(keys, thing, decision) for decision in range(_CHANGED_AT + 1)]
    told_at = (u[_AT] * (horizon // 2)).astype(np.int64)
    tells = u[_NEVER] >= habits.never_told
    changed_at = told_at + 1 + (u[_CHANGED_AT] * (horizon - told_at - 1)).astype(np.int64)
    first = (u[_FIRST] * N_CODES).astype(np.int32)
    second = (first + 1 + (u[_SECOND] * (N_CODES - 1)).astype(np.int32)) % N_CODES
    changed = tells & (u[_CHANGED] < habits.changes)
    detour = tells & (_draws(keys, thing, _DETOUR) < habits.detours)
    return _Known(thing, tells, told_at, changed, changed_at, thing * N_CODES + first, thing * N_CODES + second, detour)


def _namings(keys: U64, known: _Known) -> _Part:
    """Messages that name owners, each before the code is told under that name."""
    time = (_draws(keys, known.thing, _NAMED_AT) * known.told_at).astype(np.int64)
    text = naming(known.thing, (_draws(keys, known.thing, _NAMING) * len(NAMING_WORDINGS)).astype(np.int32))
    none, tells = np.full(known.thing.shape, -1, np.int32), np.zeros(known.thing.shape, np.bool_)
    return _Part(known.detour, time, known.thing, tells, none, none, text, known.detour)


def _tellings(keys: U64, known: _Known) -> _Part:
    wording = (_draws(keys, known.thing, _WORDING) * len(TELL_WORDINGS)).astype(np.int32)
    wording = np.where(known.detour, _TOLD_BY_DETOUR, wording).astype(np.int32)
    text, none = statement(known.thing, known.first, wording), np.full(known.thing.shape, -1, np.int32)
    return _Part(known.told, known.told_at, known.thing, none >= 0, known.first, none, text, known.detour)


def _changes(keys: U64, known: _Known) -> _Part:
    wording = len(TELL_WORDINGS) + (_draws(keys, known.thing, _AGAIN) * len(CHANGE_WORDINGS)).astype(np.int32)
    wording = np.where(known.detour, _TOLD_BY_DETOUR + 1, wording).astype(np.int32)
    text, tells = statement(known.thing, known.second, wording), np.zeros(known.thing.shape, np.bool_)
    return _Part(known.changed, known.changed_at, known.thing, tells, known.second, known.first, text, known.detour)


def _questions(habits: TellingHabits, keys: U64, weeks: int, known: _Known) -> _Part:
    number = np.arange(habits.asks_per_week * weeks, dtype=np.int32)[None]
    day = (_draws(keys, number, _WHEN) * (7 * weeks)).astype(np.int64)
    time = day * DAY + np.minimum(clock(_draws(keys, number, _CLOCK)), DAY - 1)
    which = (habits.things * _draws(keys, number, _WHICH) ** 1.5).astype(np.int64)  # some are asked for more often
    mine = _Known(*(np.take_along_axis(getattr(known, f.name), which, axis=1) for f in fields(known)))
    holds, changed = mine.told & (mine.told_at <= time), mine.changed & (mine.changed_at <= time)
    code = np.where(changed, mine.second, np.where(holds, mine.first, -1)).astype(np.int32)
    before = np.where(changed, mine.first, -1).astype(np.int32)
    text = question(mine.thing, (_draws(keys, number, _HOW) * len(ASK_WORDINGS)).astype(np.int32))
    every, detour = np.ones(time.shape, np.bool_), mine.detour & (code >= 0)
    return _Part(every, time, mine.thing, every, code, before, text, detour)


def _ordered(users: I32, parts: Sequence[_Part]) -> tuple[Events, Wanted]:
    """All events of each user in order of time, and what is right at each."""
    all_ = _Part(*(np.concatenate([getattr(part, f.name) for part in parts], axis=1) for f in fields(_Part)))
    n = all_.there.sum(axis=1).astype(np.int32)
    time = np.where(all_.there, all_.time, _NEVER_COMES)
    order = np.argsort(time, axis=1, kind="stable")[:, : int(n.max(initial=0))]
    here = np.arange(order.shape[1]) < n[:, None]

    def column(values: np.ndarray, padding: int) -> np.ndarray:
        return np.where(here, np.take_along_axis(values, order, axis=1), np.array(padding, values.dtype))

    time, thing, code = column(time, _NEVER_COMES), column(all_.thing, -1), column(all_.code, -1)
    type_ = np.where(here, type_of(thing, code), -1).astype(np.int32)
    ttl = np.full(len(THINGS) * (N_CODES + 1), _FOR_EVER, np.int64)
    truth = Truth(type_, thing, answerable(type_, np.where(here, time, 0), ttl), np.zeros(type_.shape, np.bool_))
    number = np.where(here, np.arange(order.shape[1], dtype=np.int32), np.int32(0))
    events = Events(users, n, number, time, column(all_.text, 0), truth)
    return events, Wanted(thing, column(all_.asks, 0), code, column(all_.before, -1), column(all_.detour, 0))


def _draws(keys: U64, thing: I32, decision: int) -> F64:
    """Uniforms `[B, n]` of users and things, or numbers of questions."""
    return draw(keys[:, None], thing, Purpose.TOLD, 0, decision)
