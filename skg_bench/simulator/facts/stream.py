"""Tellings, and requests for two facts, between the requests; and what each event needs."""

from dataclasses import dataclass, fields, replace

import numpy as np

from skg_bench.core.batch import nth
from skg_bench.core.grid import I8, I32, I64, Bool
from skg_bench.core.world import Events, Truth
from skg_bench.simulator.facts.catalogue import Catalogue
from skg_bench.simulator.facts.ledger import PairRequests, Tellings
from skg_bench.simulator.facts.table import CHANGES, TELLING
from skg_bench.simulator.order import answerable


@dataclass(frozen=True, slots=True)
class Needs:
    """Facts that events need, by their number, `[B, W]` each."""

    knower: I8  # index into KNOWERS; TELLING: the message tells a fact
    thing: I32  # [B, W, 2] facts, -1: none
    wanted: I32  # [B, W, 2] types that state them as they are now; -1: of no fact
    told: I64  # time at which the youngest of these facts was told, -1: none was
    changed: Bool  # one of them was told before with another value
    first: Bool  # the user asks for this for the first time

    @staticmethod
    def blank(n: int, width: int) -> "Needs":
        """Needs of events that need nothing."""
        shape = n, width
        none = np.full((n, width, 2), -1, np.int32)
        return Needs(
            np.zeros(shape, np.int8), none, none.copy(), np.full(shape, -1, np.int64), np.zeros(shape, np.bool_),
            np.zeros(shape, np.bool_),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class FlatEvents:
    """Events, flat over n."""

    row: I64
    number: I32
    time: I64
    text: I32
    type: I32
    answerable: I32
    used_up: Bool
    knower: I8  # as in `Needs`


def woven(
    catalogue: Catalogue, ttl: I64, events: Events, tellings: Tellings, pairs: PairRequests
) -> tuple[Events, Needs]:
    """Events in order of time, those of `events` with their numbers, and what each needs. `ttl` `[types]` seconds for
    which an answer holds.
    """
    flat = _joined(_requests(catalogue, events), _more(catalogue, events, tellings, pairs))
    needs = _needed(catalogue, flat, tellings, len(events.n))
    if not len(tellings.row) + len(pairs.row):
        return events, needs
    flat = replace(flat, type=_types(catalogue, flat, needs))
    n = np.bincount(flat.row, minlength=len(events.n)).astype(np.int32)
    padded = _padded(catalogue, replace(events, n=n), flat, int(n.max()))
    type_, truth = padded.truth.type, padded.truth
    counted = np.where(type_ >= 0, answerable(type_, padded.time, ttl), truth.answerable).astype(np.int32)
    return replace(padded, truth=replace(truth, answerable=counted)), needs


def _joined(first: FlatEvents, second: FlatEvents) -> FlatEvents:
    """Events of both, by user, and in order of time and number."""
    columns = {f.name: np.concatenate([getattr(first, f.name), getattr(second, f.name)]) for f in fields(FlatEvents)}
    order = np.lexsort((columns["number"], columns["time"], columns["row"]))
    return FlatEvents(**{name: column[order] for name, column in columns.items()})


def _requests(catalogue: Catalogue, events: Events) -> FlatEvents:
    row, turn = np.nonzero(np.arange(events.time.shape[1])[None] < events.n[:, None])
    at, truth = (row, turn), events.truth
    return FlatEvents(
        row, events.number[at], events.time[at], events.text[at], truth.type[at], truth.answerable[at],
        truth.used_up[at], catalogue.knower[truth.type[at]].astype(np.int8),
    )  # fmt: skip


def _more(catalogue: Catalogue, events: Events, tellings: Tellings, pairs: PairRequests) -> FlatEvents:
    """Tellings and requests for two facts, with numbers behind those of the user's other events."""
    row, n = np.concatenate([tellings.row, pairs.row]), len(tellings.row)
    type_ = np.append(
        catalogue.value_type(tellings.fact, tellings.value), catalogue.silent[catalogue.n_facts + pairs.pair]
    )
    knower = catalogue.knower[type_].astype(np.int8)
    knower[:n] = TELLING
    return FlatEvents(
        row, (events.n[row] + nth(row)).astype(np.int32), np.append(tellings.time, pairs.time),
        np.append(tellings.text, pairs.text), type_, np.zeros(len(row), np.int32), np.zeros(len(row), np.bool_), knower,
    )  # fmt: skip


def _needed(catalogue: Catalogue, flat: FlatEvents, tellings: Tellings, n_users: int) -> Needs:
    """Needs of events, as the ledger says."""
    needs = Needs.blank(n_users, int(flat.number.max(initial=0)) + 1)
    needs.knower[flat.row, flat.number] = flat.knower
    asks = (flat.knower != TELLING) & (catalogue.thing[flat.type] >= 0)
    row, number, time, thing = flat.row[asks], flat.number[asks], flat.time[asks], catalogue.thing[flat.type[asks]]
    _, opens = np.unique(row * len(catalogue.silent) + thing, return_index=True)  # events are in order of time
    needs.first[row[opens], number[opens]] = True
    for place in range(2):
        fact = catalogue.needed[thing, place]
        some = fact >= 0
        rows, numbers, facts, times = row[some], number[some], fact[some], time[some]
        held = tellings.holding(rows, facts, times)
        value, since, way = (
            np.where(held >= 0, np.append(column, -1)[held], -1)
            for column in (tellings.value, tellings.time, tellings.way)
        )
        needs.thing[rows, numbers, place] = facts
        needs.wanted[rows, numbers, place] = catalogue.value_type(facts, value)
        needs.told[rows, numbers] = np.maximum(needs.told[rows, numbers], since)
        needs.changed[rows, numbers] |= way == CHANGES
    return needs


def _types(catalogue: Catalogue, flat: FlatEvents, needs: Needs) -> I32:
    """Request types `[n]`, with what is right for those that need facts."""
    wanted = needs.wanted[flat.row, flat.number]
    value = catalogue.value[wanted]
    pair = catalogue.thing[flat.type] - catalogue.n_facts
    both = (
        catalogue.pair_type(np.maximum(pair, 0), value[:, 0], value[:, 1]) if len(catalogue.table.pairs) else flat.type
    )
    return np.where(wanted[:, 1] >= 0, both, np.where(wanted[:, 0] >= 0, wanted[:, 0], flat.type)).astype(np.int32)


def _padded(catalogue: Catalogue, events: Events, flat: FlatEvents, width: int) -> Events:
    """The table of events that lie in order, of users with `events.n` events."""
    place = flat.row, nth(flat.row.astype(np.int32))

    def column(values: np.ndarray, padding: int | bool) -> np.ndarray:
        table = np.full((len(events.n), width), padding, values.dtype)
        table[place] = values
        return table

    number = np.tile(np.arange(width, dtype=np.int32), (len(events.n), 1))
    number[place] = flat.number
    intent = catalogue.intent[flat.type]
    intent[flat.type < 0] = -1
    truth = Truth(column(flat.type, -1), column(intent, -1), column(flat.answerable, 0), column(flat.used_up, False))
    time = column(flat.time, np.iinfo(np.int64).max)
    return Events(events.user, events.n, number, time, column(flat.text, 0), truth)
