"""Columns of a log to the arrays that a simulation reads, each user's turns in order of time.

Time is what passes: seconds between instants. Local time, which an offset from UTC moves back and forth, is for hours
and weekdays alone.
"""

import reprlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import blake2b
from typing import get_args

import numpy as np
import pyarrow as pa

from skg_bench.core.calendar import DAY, WEEK, Offsets
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I32, I64, Bool
from skg_bench.core.text import plural
from skg_bench.core.types import RATINGS
from skg_bench.core.world import AS_SERVED, AsServed, Metered, MeteredColumn
from skg_bench.simulator.logs.recorded_cells import Moments, moments, numbers
from skg_bench.simulator.logs.recorded_columns import TEXT_FIELDS, LogColumns
from skg_bench.simulator.logs.recorded_rows import TOO_LONG, LeftOut, spelled_user

MICRO = 1_000_000  # microseconds in a second
MOST_WEEKS = 520  # weeks of a run
_NEARLY_ALL = 0.95  # of the users whose times differ
_LARGEST = 1e9  # dollars or units of a wait: whoever has more has other columns
_COPIES = 20  # rows that tell a log of copies from chance
_LLM = ("llm", "fallback", "none")  # actions that say that an LLM answered
_NOT_SAID = ("none", "null")


@dataclass(frozen=True, slots=True)
class LogReading:
    """Description of how a log is written, by its reader."""

    ratings: Mapping[str, int]  # words of the log, in lower case, to codes in RATINGS
    zone: tzinfo  # whose local time the times with an offset have
    day_first: bool | None  # None: as the whole column says
    decimal: str | None  # point or comma; None: as the whole column says
    milliseconds: float  # in a unit of `latency_ms`
    copies: bool  # rows that are as an earlier one are left out; False: the world refuses them


@dataclass(frozen=True)
class RecordedLog:
    """N turns of n users; ids of users are those of a keyed order of their names, so that some are a fair sample."""

    messages: tuple[str, ...]  # [M] distinct
    intents: tuple[str, ...]  # [I]
    types: tuple[str, ...]  # [T] distinct (active intents, answer)
    answers: tuple[str, ...]  # [A] distinct ones, in words
    active_of: I32  # [T + 1, W] active intents of a type, its own first, padded with -1; the last has none
    answer_of: I32  # [T + 1] answer of a type, -1: not known; the last, which index -1 finds, is -1
    start: I64  # [n + 1] first turn of each user
    time: I64  # [N] seconds that have passed since the log's first Monday
    local: I64  # [N] what the users' clocks showed, in seconds since that Monday
    text: I32  # [N]
    type: I32  # [N] -1: neither intent nor answer is known
    by_llm: Bool  # [N]
    rating: I32  # [N]
    delay: I64  # [N]
    users: tuple[str, ...]  # [n] as the log names them
    id: pa.Array | None  # [N] of the turns; None: the log has none
    position: I64  # [N] line or row
    cost_usd: F64  # [N] NaN: not known
    latency_ms: F64  # [N]
    session: I32  # [N] conversation, -1: the log does not say
    first_day: str
    knows: tuple[str, ...]
    offsets: Offsets
    newest_first: bool  # the file begins with each user's last turn, and this decided in which order some turns are

    @property
    def intent_of(self) -> I32:
        """Own intent of each type `[T + 1]`, -1: not known; the last, which index -1 finds, is -1."""
        first: I32 = self.active_of[:, 0]
        return first

    def share(self, type_: I32, other: I32) -> Bool:
        """Do two types have an active intent in common? They broadcast."""
        active = self.active_of
        if active.shape[1] == 1:  # no type has several: five times faster
            intent = active[:, 0][type_]
            alone: Bool = (intent == active[:, 0][other]) & (intent >= 0)
            return alone
        shared: Bool = ((active[type_][..., :, None] == active[other][..., None, :])
                        & (active[type_][..., :, None] >= 0)).any(axis=(-2, -1))  # fmt: skip
        return shared

    def metered(self, at: I64) -> AsServed | Metered:
        """Case of turns `at` `[B]`: what their answers cost, as far as the log has a column for it."""
        values = {"cost_usd": self.cost_usd, "latency_ms": self.latency_ms}
        model = self.by_llm[at]  # what a skill of the old system cost says nothing of its model
        columns = {name: np.where(model, values[name][at], np.nan) for name in self.metered_fields}
        return Metered(columns) if columns else AS_SERVED

    @property
    def metered_fields(self) -> tuple[MeteredColumn, ...]:
        """Fields by which arms are charged."""
        return tuple(name for name in get_args(MeteredColumn) if name in self.knows)

    @property
    def weeks(self) -> int:
        """Calendar weeks from the first turn's to the last one's."""
        return int(self.time.max()) // WEEK + 1


def assemble(rows: LogColumns, reading: LogReading, out: LeftOut, name: str) -> RecordedLog:
    """The log; `name` of it in errors.

    Raises UsageError where nothing is left, some times have an offset and others have none, satisfaction is said in
    other words, a propensity is no probability, money or waiting time is no number or below 0, or the log is longer
    than a run can be.
    """
    when = moments(rows.cells.get("time", rows.times) or (), reading.zone, reading.day_first, name)
    users, user = rows.coded("user", spelled_user)
    texts, text = rows.coded("message")
    kept = _kept(rows, (user, text), when, out)
    if reading.copies and len(kept) and "id" not in rows.cells:
        kept = _once(rows, user, when, kept, out, name)
    if not len(kept):
        reasons = "; ".join(f"{why}: {entry['rows']:,}" for why, entry in out.found.items()) or "it is empty"
        raise UsageError(f"{name} holds no turn with user, time and message ({reasons})")
    place = rows.position[kept]
    if not (aware := when.aware[kept]).all() and aware.any():
        raise UsageError(
            f"{name}: times with and without an offset cannot be ordered (rows {place[aware][0]} and "
            f"{place[~aware][0]}); give all of them one, or none"
        )

    def number(field: str) -> F64:
        words, code = rows.coded(field, _said_word)
        values = np.append(numbers(words, reading.decimal, f"values of {field}", "simulator.decimal"), np.nan)[code]
        return values[kept]

    propensity, cost, latency = (number(field) for field in ("propensity", "cost_usd", "latency_ms"))
    _check_numbers(rows, kept, name, {
        "propensity": ((propensity > 0) & (propensity <= 1), "must lie above 0 and be at most 1"),
        "cost_usd": (
            (cost >= 0) & (cost <= _LARGEST),
            f"must be a number of dollars, 0 to {_LARGEST:,.0f}, without a sign of its currency",
        ),
        "latency_ms": ((latency >= 0) & (latency <= _LARGEST), f"must be a number, 0 to {_LARGEST:,.0f}"),
    })  # fmt: skip
    names, asker = _askers(users, user[kept])
    instant, local, monday, offsets = _clocked(when, kept, reading.zone)
    time = instant // MICRO
    if (weeks := int(time.max()) // WEEK + 1) > MOST_WEEKS:
        (first, at), (last, to) = (
            (datetime(1970, 1, 1) + timedelta(microseconds=int(when.local[kept[i]])), place[i])
            for i in (time.argmin(), time.argmax())
        )
        raise UsageError(
            f"{name} spans {weeks:,} weeks, from {first:%Y-%m-%d} (row {at}) to {last:%Y-%m-%d} (row {to}); a run has "
            f"at most {MOST_WEEKS}: is one of these times wrong?"
        )
    order, newest_first = _ordered(asker, instant, place)
    turns = kept[order]
    texts, text = _used(texts, text[turns])
    actives, active = _active(rows, turns)
    answers, answer = _said(rows, "answer", turns)
    both = np.where((active >= 0) | (answer >= 0), (active + 1) * (len(answers) + 1) + answer + 1, -1)
    pairs, type_ = np.unique(np.append(both, -1), return_inverse=True)  # the first is -1: nothing is known
    active_of, answer_of = pairs[1:] // (len(answers) + 1) - 1, pairs[1:] % (len(answers) + 1) - 1
    intents, members = _members(actives)
    rating = _rated(rows, turns, reading.ratings, name)
    actions, action = rows.coded("action", str.strip)
    by_llm = np.array([word.lower() in _LLM for word in actions] + [True])[action[turns]]
    _, session = _said(rows, "session", turns)
    columns = {
        "intent": active >= 0, "answer": answer >= 0, "satisfaction": rating >= 0,
        "action": np.array("action" in rows.cells), "propensity": ~np.isnan(propensity),
        "cost_usd": ~np.isnan(cost), "latency_ms": ~np.isnan(latency),
        "session": session >= 0,
    }  # fmt: skip
    ids = rows.cells.get("id")
    return RecordedLog(
        texts, intents, _names(actives, active_of, answer_of), answers, members[np.append(active_of, -1)],
        np.append(answer_of, -1).astype(np.int32), np.searchsorted(asker[order], np.arange(len(names) + 1)),
        time[order], local[order], text, (type_[:-1] - 1).astype(np.int32), by_llm, rating,
        np.zeros(len(turns), np.int64) if rows.delay is None else rows.delay[turns],
        names, None if ids is None else ids.take(pa.array(turns)).combine_chunks(),
        rows.position[turns], cost[order], latency[order] * reading.milliseconds, session, monday.date().isoformat(),
        tuple(what for what, mask in columns.items() if mask.any()), offsets, newest_first,
    )  # fmt: skip


def _ordered(asker: I64, instant: I64, place: I64) -> tuple[I64, bool]:
    """Order of the turns by user and time, and whether some turns of a user with equal times are in it from the end of
    the file. Else they stay as they stand there, as the turns of one row do in any case.
    """
    order = np.lexsort((instant, asker))  # stable
    rows = np.cumsum(np.diff(place, prepend=place[0]) != 0)
    by_user = asker.argsort(kind="stable")
    then, step = by_user[1:], np.diff(instant[by_user])
    step[(np.diff(asker[by_user]) != 0) | (np.diff(rows[by_user]) == 0)] = 0
    falling, rising = np.unique(asker[then[step < 0]]), np.unique(asker[then[step > 0]])
    down = len(np.setdiff1d(falling, rising))
    if down == 0 or down < _NEARLY_ALL * len(np.union1d(falling, rising)):
        return order, False
    reversed_ = np.lexsort((-rows, instant, asker))
    return reversed_, not np.array_equal(order, reversed_)


def _askers(users: tuple[str, ...], code: I32) -> tuple[tuple[str, ...], I64]:
    """Users who asked something, in a keyed order of their names, and the place of each turn's among them."""
    order = np.argsort([_key(word) for word in users], kind="stable")
    rank = np.empty(len(users), np.int64)
    rank[order] = np.arange(len(users))
    here, asker = _occurring(rank[code], len(users))
    return tuple(users[order[i]] for i in here), asker


def _kept(rows: LogColumns, codes: Sequence[I32], when: Moments, out: LeftOut) -> I64:
    """The rows that are turns. Of rows with one id the first that is a turn counts. `codes` of users and messages."""
    blank = rows.blank("time")
    missing = {"no user": codes[0] < 0, "no time": blank, "no message": codes[1] < 0,
               "a time that cannot be read": ~when.known}  # fmt: skip
    long = ((name, rows.too_long(name)) for name in TEXT_FIELDS)
    missing |= {TOO_LONG.format(name): over for name, over in long if over is not None}
    turn = ~np.logical_or.reduce(list(missing.values()))
    code = rows.same("id")
    first = np.full(int(code.max(initial=-1)) + 2, len(rows))
    at = np.flatnonzero(turn)[::-1]
    first[code[at]] = at
    first[-1] = len(rows)  # of rows without an id
    again = np.arange(len(rows)) > first[code]
    reasons = {"an id that an earlier row has": again, **missing}
    left, why = np.ones(len(rows), np.bool_), np.full(len(rows), -1)
    for i, mask in enumerate(reasons.values()):
        why[left & mask] = i
        left &= ~mask
    named = list(reasons)
    for i in dict.fromkeys(why[why >= 0].tolist()):
        out.add(named[i], *rows.position[why == i].tolist())
    return np.flatnonzero(left)


def _once(rows: LogColumns, user: I32, when: Moments, kept: I64, out: LeftOut, name: str) -> I64:
    """The rows without those that are an earlier one once more, as in a log that was exported twice. Turns of one row
    are none of these.

    Raises UsageError for a log that tells days alone where half of the rows are: somebody may ask twice on a day.
    """
    instant = when.local[kept] - when.offset[kept]
    order = np.lexsort((instant, user[kept]))
    equal = (np.diff(user[kept][order]) == 0) & (np.diff(instant[order]) == 0)
    among = np.sort(order[np.append(equal, False) | np.append(False, equal)])
    if not len(among):
        return kept
    at = kept[among]
    columns = [user[at], instant[among], *(rows.same(field)[at] for field in TEXT_FIELDS if field in rows.cells)]
    _, first, group = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
    again = among[rows.position[at] != rows.position[at[first[group.ravel()]]]]
    if (when.local[kept] % (DAY * MICRO) != 0).any():
        if len(again):
            out.add("all that is read as in an earlier row", *rows.position[kept[again]].tolist())
        return np.delete(kept, again)
    if 2 * len(again) >= len(kept) >= _COPIES:
        raise UsageError(
            f"{name}: {len(again):,} of {plural(len(kept), 'row')} are the same as an earlier one in all that is read "
            f"(the first is row {rows.position[kept[again[0]]]}), and its times are days, so that nothing tells a copy "
            "from a question that was asked again; leave copies out, or give the rows an id (simulator.columns.id)"
        )
    return kept


def _clocked(when: Moments, kept: I64, zone: tzinfo) -> tuple[I64, I64, datetime, Offsets]:
    """Clock of local times: microseconds that have passed since 00:00 of the first Monday, seconds since then on the
    clock, that Monday, and the offsets; without offsets, what has passed is what the clock says.
    """
    local, offset, aware = when.local[kept], when.offset[kept], bool(when.aware[kept[0]])
    first = datetime(1970, 1, 1) + timedelta(microseconds=int(local[(local - offset).argmin()]))
    monday = first.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=first.weekday())
    base = (monday.replace(tzinfo=zone).utcoffset() if aware else None) or timedelta(0)
    shown = local - (monday.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    ahead = offset - base // timedelta(microseconds=1)
    instant = shown - ahead
    if not aware:
        return instant, shown // MICRO, monday, ()
    order = instant.argsort(kind="stable")
    turned = order[np.diff(ahead[order], prepend=0) != 0]
    seconds = base // timedelta(seconds=1)
    offsets = ((0, seconds), *((int(instant[i]) // MICRO, seconds + int(ahead[i]) // MICRO) for i in turned))
    return instant, shown // MICRO, monday, offsets


def _key(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=16).digest()


def _said(rows: LogColumns, field: str, turns: I64) -> tuple[tuple[str, ...], I32]:
    """Words of the rows `turns`, without blanks around them, and the code of each row."""
    words, code = rows.coded(field, str.strip)
    return _used(words, code[turns])


def _used(words: tuple[str, ...], code: I32) -> tuple[tuple[str, ...], I32]:
    """Words that some code is of, and the codes into them."""
    used, rank = _occurring(code, len(words))
    return tuple(words[i] for i in used), rank.astype(np.int32)


def _occurring(code: I32 | I64, n: int) -> tuple[I64, I64]:
    """Codes below `n` that occur, and the place of each code among them; -1 stays."""
    rank, occurs = np.full(n + 1, -1), np.zeros(n + 1, np.bool_)
    occurs[code] = True
    used = np.flatnonzero(occurs[:n])
    rank[used] = np.arange(len(used))
    return used, rank[code]


def _active(rows: LogColumns, turns: I64) -> tuple[list[tuple[str, ...]], I32]:
    """Distinct lists of active intents, its own first, in order, and the code of each of the rows `turns`; -1: it has
    none of its own.
    """
    words, code = _said(rows, "intent", turns)
    if rows.also is None:
        return [(word,) for word in words], code
    lists = [None if c < 0 else (words[c], *rows.also[i]) for c, i in zip(code.tolist(), turns.tolist(), strict=True)]
    distinct = sorted({active for active in lists if active is not None})
    rank = {active: i for i, active in enumerate(distinct)}
    return distinct, np.array([-1 if active is None else rank[active] for active in lists], np.int32)


def _members(actives: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], I32]:
    """All intents by name, and which of them each of `actives` holds, `[n + 1, W]` padded with -1; the last is none."""
    intents = tuple(sorted({intent for active in actives for intent in active}))
    code = {intent: i for i, intent in enumerate(intents)}
    members = np.full((len(actives) + 1, max(map(len, actives), default=1)), -1, np.int32)
    for row, active in zip(members, actives, strict=False):
        row[: len(active)] = [code[intent] for intent in active]
    return intents, members


def _names(actives: Sequence[tuple[str, ...]], active_of: I64, answer_of: I64) -> tuple[str, ...]:
    """Names of types: the intents, and which of their answers, counted; answers may be long, and are private."""
    seen, names = Counter[int](), []
    for active, answer in zip(active_of.tolist(), answer_of.tolist(), strict=True):
        seen[active] += answer >= 0
        what = " and ".join(actives[active]) if active >= 0 else "no intent"
        names.append(f"{what} | answer {seen[active]}" if answer >= 0 else what)
    return tuple(names)


def _said_word(word: str) -> str | None:
    return None if word.strip().lower() in _NOT_SAID else word.strip()


def _rated(rows: LogColumns, turns: I64, ratings: Mapping[str, int], name: str) -> I32:
    words, code = rows.coded("satisfaction", _said_word)
    codes = np.array([ratings.get(word.lower(), -1) for word in words] + [-1], np.int32)
    occurs = np.zeros(len(words) + 1, np.bool_)
    occurs[code[turns]] = True
    if unknown := np.flatnonzero(occurs[:-1] & (codes[:-1] < 0)).tolist():
        where = {i: rows.position[turns[code[turns] == i].min()] for i in unknown}
        some = ", ".join(
            f"{reprlib.repr(words[i])} (row {where[i]})" for i in sorted(where, key=lambda i: where[i])[:5]
        )
        raise UsageError(
            f"{name}: satisfaction is also said as {some}; say what that means: "
            + " ".join(f"simulator.rated_{rating}=[...]" for rating in RATINGS)
        )
    return codes[code[turns]]


def _check_numbers(rows: LogColumns, kept: I64, name: str, valid: Mapping[str, tuple[Bool, str]]) -> None:
    """Raises UsageError for a cell of these fields that is not `valid` `[K]`; what is left empty is not known."""
    for field, (mask, rule) in valid.items():
        words, code = rows.coded(field, _said_word)
        wrong = np.flatnonzero((code[kept] >= 0) & ~mask)
        if len(wrong):
            at = kept[wrong[0]]
            value = reprlib.repr(words[code[at]])
            more = f" (and {plural(len(wrong) - 1, 'more such row')})" if len(wrong) > 1 else ""
            raise UsageError(
                f"{name}, row {rows.position[at]}: {field}={value} {rule}{more}. Leave the cell empty where it is not "
                f"known, or the column out: simulator.columns={{{field}: null}}"
            )
