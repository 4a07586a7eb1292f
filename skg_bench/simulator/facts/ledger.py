"""The ledger of facts: who tells which fact when, and who asks for two at once. No arm sees it.

Each user tells facts that a request of theirs needs. All draws are keyed by user and fact, so that another
value of one share leaves what the others decide as it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.core.draws import Purpose, draw
from skg_bench.core.grid import F64, I32, I64, U64
from skg_bench.core.world import Events
from skg_bench.simulator.facts.catalogue import Catalogue
from skg_bench.simulator.facts.table import CHANGES, ENDS, IMPLIED, MOST_THINGS, TELLS

_SPAN = np.int64(2**30)  # more than any run's seconds
_THINGS = np.int64(MOST_THINGS)
_NEVER, _LATE, _WHEN, _VALUE, _CHANGED, _CHANGED_AT, _OTHER, _AGAIN, _AGAIN_AT, _ENDED, _ENDED_AT, _IMPLIED = range(12)
_WORDING, _ASKS, _ASKS_AT, _ASKS_WORDING = range(12, 16)


@dataclass(frozen=True)
class TellingShares:
    """How users tell facts. Meaning and source of each share stand in `conf/simulator/facts.yaml`."""

    never_told: float
    asked_before_told: float
    told_twice: float
    facts_change: float
    facts_end: float
    implied: float
    asks_for_two: float


@dataclass(frozen=True, slots=True)
class Tellings:
    """Messages that tell facts, flat over n, by user, fact and time."""

    row: I64  # [n]
    fact: I32
    time: I64  # seconds; of each user and fact, no two are equal
    value: I32  # index into the values of the fact, -1: there is nothing to know any more
    way: I32  # index into WAYS
    text: I32

    def holding(self, row: I64, fact: I32, time: I64) -> I64:
        """The telling `[n]` that holds for facts of users just before times, -1: none was told."""
        codes = _code(self.row, self.fact, self.time)
        at = np.searchsorted(codes, _code(row, fact, time), side="left") - 1
        at_row, at_fact = (np.append(column, -1)[at] for column in (self.row, self.fact))
        return np.where((at >= 0) & (at_row == row) & (at_fact == fact), at, -1)


@dataclass(frozen=True, slots=True)
class PairRequests:
    """Requests for two facts, flat over n, by user and pair."""

    row: I64  # [n]
    pair: I32
    time: I64
    text: I32


def _code(row: I64, fact: I32, time: I64) -> I64:
    """One number that sorts by user, fact and time."""
    return (row * _THINGS + fact) * _SPAN + time


def pair_requests(catalogue: Catalogue, share: float, keys: U64, events: Events, horizon: int) -> PairRequests:
    """Requests for two facts of users with keys `[B]` who ask for one of the two, after they did first."""
    row, fact, first = first_needs(catalogue, events)
    parts = []
    for number, pair in enumerate(catalogue.table.pairs):
        concerned = np.isin(fact, pair.facts)
        rows, at = np.unique(row[concerned], return_index=True)
        time = first[concerned][at]
        number_of = np.full(len(rows), number, np.int32)
        u = _uniforms(keys[rows], catalogue.n_facts + number_of, (_ASKS, _ASKS_AT, _ASKS_WORDING))
        when = time + 1 + (u[1] * (horizon - time - 1)).astype(np.int64)
        mask = (u[0] < share) & (when < horizon)
        text = catalogue.pair_text(number_of, u[2])
        parts.append((rows[mask], number_of[mask], when[mask], text[mask]))
    if not parts:
        none = np.zeros(0, np.int64)
        return PairRequests(none, none.astype(np.int32), none, none.astype(np.int32))
    return PairRequests(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def first_needs(catalogue: Catalogue, events: Events) -> tuple[I64, I32, I64]:
    """User, fact and time of each first request for a fact, flat, by user and fact."""
    row, turn = np.nonzero(np.arange(events.time.shape[1])[None] < events.n[:, None])
    fact = catalogue.thing[events.truth.type[row, turn]]
    some = fact >= 0
    row, turn, fact = row[some], turn[some], fact[some]
    _, at = np.unique(row * _THINGS + fact, return_index=True)  # events are in order of time
    return row[at], fact[at], events.time[row[at], turn[at]]


def draw_tellings(
    catalogue: Catalogue, shares: TellingShares, keys: U64, events: Events, pairs: PairRequests, horizon: int
) -> Tellings:
    """The tellings of users with keys `[B]`, whose requests need these facts, within `horizon` seconds."""
    row, fact, first = _with_pairs(catalogue, first_needs(catalogue, events), pairs)
    u = _uniforms(keys[row], fact, range(_IMPLIED + 1))
    late = u[_LATE] < shares.asked_before_told
    when = np.where(late, first + 1 + _within(u[_WHEN], horizon - first - 1), _within(u[_WHEN], first))
    n_values = catalogue.n_values[fact]
    value = (u[_VALUE] * n_values).astype(np.int32)
    other = (value + 1 + (u[_OTHER] * (n_values - 1)).astype(np.int32)) % n_values
    changed = u[_CHANGED] < shares.facts_change
    change_at = when + 1 + _within(u[_CHANGED_AT], horizon - when - 1)
    again_at = when + 1 + _within(u[_AGAIN_AT], np.where(changed, change_at, horizon) - when - 1)
    again = (u[_AGAIN] < shares.told_twice) & ~(changed & (again_at >= change_at))
    last = np.maximum(np.where(changed, change_at, when), np.where(again, again_at, when))
    end_at = last + 1 + _within(u[_ENDED_AT], horizon - last - 1)
    way = np.where(u[_IMPLIED] < shares.implied, IMPLIED, TELLS)
    everybody, nothing = np.ones(len(row), np.bool_), np.full(len(row), -1)
    parts = (
        (everybody, when, value, way),
        (again, again_at, value, np.full(len(row), TELLS)),
        (changed, change_at, other, np.full(len(row), CHANGES)),
        (u[_ENDED] < shares.facts_end, end_at, nothing, np.full(len(row), ENDS)),
    )
    masks = [mask & (u[_NEVER] >= shares.never_told) & (time < horizon) for mask, time, *_ in parts]
    rows, facts = (np.concatenate([column[mask] for mask in masks]) for column in (row, fact))
    time, values, ways = (
        np.concatenate([part[i][mask] for part, mask in zip(parts, masks, strict=True)]) for i in (1, 2, 3)
    )
    order = np.argsort(_code(rows, facts, time), kind="stable")
    rows, facts, time, values, ways = (column[order] for column in (rows, facts, time, values, ways))
    wording = _uniforms(keys[rows], facts, (_WORDING,), time)[0]
    text = catalogue.telling_text(facts, values, ways, wording)
    return Tellings(rows, facts, time, values.astype(np.int32), ways.astype(np.int32), text)


def _with_pairs(catalogue: Catalogue, needs: tuple[I64, I32, I64], pairs: PairRequests) -> tuple[I64, I32, I64]:
    """First needs, with those of facts that only a request for two facts needs."""
    if not len(pairs.row):
        return needs
    both = np.array([pair.facts for pair in catalogue.table.pairs], np.int32)[pairs.pair]  # [n, 2]
    row = np.concatenate([needs[0], pairs.row, pairs.row])
    fact = np.concatenate([needs[1], both[:, 0], both[:, 1]])
    time = np.concatenate([needs[2], pairs.time, pairs.time])
    order = np.argsort(_code(row, fact, time), kind="stable")
    row, fact, time = row[order], fact[order], time[order]
    _, at = np.unique(row * _THINGS + fact, return_index=True)
    return row[at], fact[at], time[at]


def _within(u: F64, seconds: I64) -> I64:
    """A whole number of seconds below `seconds`, 0 where these are not above 0."""
    return (u * np.maximum(seconds, 0)).astype(np.int64)


def _uniforms(keys: U64, thing: I32, decisions: Sequence[int], time: I64 | int = 0) -> F64:
    """Uniforms `[decisions, n]` of users and things (simulator/facts/catalogue.py)."""
    return draw(keys[None], thing[None], Purpose.TOLD, time, np.array(decisions)[:, None])
