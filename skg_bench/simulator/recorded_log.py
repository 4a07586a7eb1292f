"""Rows of a log to the arrays that a simulation reads, each user's turns in order of time.

Time is what passes: seconds between instants. Local time, which an offset from UTC moves back and forth, is for hours
and weekdays alone.
"""

import reprlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import blake2b
from math import isfinite
from typing import Any, TypeVar

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.record import Offsets
from skg_bench.core.types import RATINGS
from skg_bench.simulator.recorded_rows import LeftOut, RecordedTurn, flaw

DAY, WEEK = 86_400, 7 * 86_400
MICRO = 1_000_000  # microseconds in a second
LONGEST = 520  # weeks of a run
_LLM = ("", "llm", "fallback", "none")  # actions that say that an LLM answered
_NOT_SAID = ("", "none", "null")
_MILLISECONDS = 1e11  # Unix times from here on count milliseconds
_UNIX = datetime(1970, 1, 1, tzinfo=UTC)
_Coded = TypeVar("_Coded", str, tuple[str, ...])


@dataclass(frozen=True)
class RecordedLog:
    """N turns of n users; ids of users are those of a keyed order of their names, so that some are a fair sample."""

    messages: tuple[str, ...]  # [M] distinct
    intents: tuple[str, ...]  # [I]
    types: tuple[str, ...]  # [T] distinct (active intents, answer)
    answers: tuple[str | None, ...]  # [T] in words; None: not known
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
    first_day: str
    knows: tuple[str, ...]
    offsets: Offsets

    @property
    def users(self) -> int:
        """How many."""
        return len(self.start) - 1

    @property
    def intent_of(self) -> I32:
        """Own intent of each type `[T + 1]`, -1: not known; the last, which index -1 finds, is -1."""
        first: I32 = self.active_of[:, 0]
        return first

    @property
    def weeks(self) -> int:
        """Calendar weeks from the first turn's to the last one's."""
        return int(self.time.max()) // WEEK + 1


def assemble(
    rows: Sequence[RecordedTurn], ratings: Mapping[str, int], zone: tzinfo, out: LeftOut, name: str
) -> RecordedLog:
    """`ratings`: words of the log, in lower case, to codes in RATINGS; `zone`: whose local time those with an offset
    have; `name` of the log in errors.

    Raises UsageError where nothing is left, some times have an offset and others have none, satisfaction is said in
    other words, a propensity is no probability, or the log is longer than a run can be.
    """
    rows, times = _whole(rows, zone, out, name)
    if not rows:
        reasons = "; ".join(f"{why}: {entry['rows']:,}" for why, entry in out.found.items()) or "it is empty"
        raise UsageError(f"{name} holds no turn with user, time and message ({reasons})")
    _probable([row.propensity for row in rows], rows, name)
    order_of = {u: i for i, u in enumerate(sorted({str(row.user) for row in rows}, key=_key))}
    user = np.array([order_of[str(row.user)] for row in rows])
    instant, local, monday, offsets = _clocked(times, zone)
    time = instant // MICRO
    if (weeks := int(time.max()) // WEEK + 1) > LONGEST:
        first, last = int(time.argmin()), int(time.argmax())
        raise UsageError(
            f"{name} spans {weeks:,} weeks, from {times[first]:%Y-%m-%d} (row {rows[first].position}) to "
            f"{times[last]:%Y-%m-%d} (row {rows[last].position}); a run has at most {LONGEST}: is one of these times "
            "wrong?"
        )
    order = np.lexsort((instant, user))  # stable: equal times stay as they stand in the file
    texts, text = _coded([str(row.message) for row in rows])
    actives, active = _coded([_active(row) for row in rows])
    answers, answer = _coded([_said(row.answer) for row in rows])
    both = np.where((active >= 0) | (answer >= 0), (active + 1) * (len(answers) + 1) + answer + 1, -1)
    pairs, type_ = np.unique(np.append(both, -1), return_inverse=True)  # the first is -1: nothing is known
    active_of, answer_of = pairs[1:] // (len(answers) + 1) - 1, pairs[1:] % (len(answers) + 1) - 1
    intents, members = _members(actives)
    rating = _rated([_said(row.satisfaction) for row in rows], ratings, rows, name)
    columns = {
        "intent": active >= 0, "answer": answer >= 0, "satisfaction": rating >= 0,
        "action": np.array([row.action is not None for row in rows]),
        "propensity": np.array([_said(row.propensity) is not None for row in rows]),
    }  # fmt: skip
    by_llm = np.array([row.action is None or str(row.action).lower() in _LLM for row in rows])
    return RecordedLog(
        texts, intents, _names(actives, active_of, answer_of),
        tuple(answers[i] if i >= 0 else None for i in answer_of.tolist()), members[np.append(active_of, -1)],
        np.append(answer_of, -1).astype(np.int32), np.searchsorted(user[order], np.arange(len(order_of) + 1)),
        time[order], local[order], text[order], (type_[:-1] - 1)[order].astype(np.int32), by_llm[order], rating[order],
        np.array([row.delay for row in rows], np.int64)[order], monday.date().isoformat(),
        tuple(what for what, mask in columns.items() if mask.any()), offsets,
    )  # fmt: skip


def _clocked(times: Sequence[datetime], zone: tzinfo) -> tuple[I64, I64, datetime, Offsets]:
    """Of local times: microseconds that have passed since 00:00 of the first Monday, seconds since then on the clock,
    that Monday, and the offsets; without offsets, what has passed is what the clock says.
    """
    aware = times[0].tzinfo is not None
    offset = np.array([when.utcoffset() or timedelta(0) for when in times], "timedelta64[us]")
    local = np.array([when.replace(tzinfo=None) for when in times], "datetime64[us]")
    first: datetime = local[(local - offset).argmin()].item()
    monday = first.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=first.weekday())
    base = (monday.replace(tzinfo=zone).utcoffset() if aware else None) or timedelta(0)
    shown = (local - np.datetime64(monday, "us")).astype(np.int64)
    ahead = (offset - np.timedelta64(base, "us")).astype(np.int64)
    instant = shown - ahead
    order = instant.argsort(kind="stable")
    turned = order[np.diff(ahead[order], prepend=0) != 0]
    seconds = base // timedelta(seconds=1)
    offsets = ((0, seconds), *((int(instant[i]) // MICRO, seconds + int(ahead[i]) // MICRO) for i in turned))
    return instant, shown // MICRO, monday, offsets if aware else ()


def _whole(
    rows: Sequence[RecordedTurn], zone: tzinfo, out: LeftOut, name: str
) -> tuple[list[RecordedTurn], list[datetime]]:
    """The rows that are turns, and their local times, with their offsets where the log says some."""
    kept, times, ids = list[RecordedTurn](), list[datetime](), set[str]()
    offsets: dict[bool, int] = {}
    for row in rows:
        if why := flaw(row):
            out.add(why, row.position)
            continue
        if row.id is not None and str(row.id) in ids:
            out.add("an id that an earlier row has", row.position)
            continue
        if missing := [name for name in ("user", "time", "message") if _said(getattr(row, name)) is None]:
            out.add(f"no {missing[0]}", row.position)
            continue
        when = _moment(row.time, zone)
        if when is None:
            out.add("a time that is neither ISO 8601 nor a Unix time", row.position)
            continue
        offsets.setdefault(when.tzinfo is not None, row.position)
        kept.append(row)
        times.append(when)
        if row.id is not None:
            ids.add(str(row.id))
    if len(offsets) == 2:
        raise UsageError(
            f"{name}: times with and without an offset cannot be ordered (rows {offsets[True]} and "
            f"{offsets[False]}); give all of them one, or none"
        )
    return kept, times


def _moment(value: Any, zone: tzinfo) -> datetime | None:
    """A time as the log says it; with an offset, as Unix times have that of UTC, it becomes that of the zone."""
    try:
        when = _read(value)
        if when.tzinfo is None:
            return when
        local = when.astimezone(UTC).astimezone(zone)
        local.replace(tzinfo=None) - (local.utcoffset() or timedelta(0))
    except (TypeError, ValueError, OverflowError):
        return None
    return local


def _read(reason: Any) -> datetime:
    if isinstance(reason, datetime):
        return reason
    if isinstance(reason, str) and not _numeric(reason):
        return datetime.fromisoformat(reason.strip())
    seconds = float(reason)
    return _UNIX + timedelta(seconds=seconds / 1000 if abs(seconds) >= _MILLISECONDS else seconds)


def _numeric(text: str) -> bool:
    """Is it a number of seconds? Eight digits are a date."""
    whole = text.strip().lstrip("-").replace(".", "", 1)
    return whole.isdecimal() and len(whole) > 8


def _said(value: Any) -> str | None:
    """As text; None where nothing is said."""
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return None
    text = str(value).strip()
    return text or None


def _key(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=16).digest()


def _coded(values: Sequence[_Coded | None]) -> tuple[tuple[_Coded, ...], I32]:
    """Distinct values in order, and the code of each, -1: None."""
    distinct = sorted({value for value in values if value is not None})
    code = {value: i for i, value in enumerate(distinct)}
    return tuple(distinct), np.array([-1 if value is None else code[value] for value in values], np.int32)


def _active(row: RecordedTurn) -> tuple[str, ...] | None:
    """Intents of a turn, its own first; None where it has none of its own."""
    intent = _said(row.intent)
    return None if intent is None else (intent, *row.also)


def _members(actives: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], I32]:
    """All intents by name, and which of them each of `actives` holds, `[n + 1, W]` padded with -1; the last is none."""
    intents = tuple(sorted({intent for active in actives for intent in active}))
    code = {intent: i for i, intent in enumerate(intents)}
    members = np.full((len(actives) + 1, max(map(len, actives), default=1)), -1, np.int32)
    for row, active in zip(members, actives, strict=False):
        row[: len(active)] = [code[intent] for intent in active]
    return intents, members


def _names(actives: Sequence[tuple[str, ...]], active_of: I64, answer_of: I64) -> tuple[str, ...]:
    """Of types: the intents, and which of their answers, counted; answers may be long, and are nobody's business."""
    seen, names = Counter[int](), []
    for active, answer in zip(active_of.tolist(), answer_of.tolist(), strict=True):
        seen[active] += answer >= 0
        what = " and ".join(actives[active]) if active >= 0 else "no intent"
        names.append(f"{what} | answer {seen[active]}" if answer >= 0 else what)
    return tuple(names)


def _rated(texts: Sequence[str | None], ratings: Mapping[str, int], rows: Sequence[RecordedTurn], name: str) -> I32:
    codes = np.full(len(texts), -1, np.int32)
    unknown: dict[str, int] = {}
    for i, word in enumerate(texts):
        if word is not None and word.lower() not in _NOT_SAID:
            codes[i] = ratings.get(word.lower(), -1)
            if codes[i] < 0:
                unknown.setdefault(word, rows[i].position)
    if unknown:
        words = ", ".join(f"{reprlib.repr(word)} (row {position})" for word, position in list(unknown.items())[:5])
        raise UsageError(
            f"{name}: satisfaction is also said as {words}; say what that means: "
            + " ".join(f"simulator.rated_{rating}=[...]" for rating in RATINGS)
        )
    return codes


def _probable(values: Sequence[Any], rows: Sequence[RecordedTurn], name: str) -> None:
    for value, row in zip(values, rows, strict=True):
        text = _said(value)
        try:
            fine = text is None or 0 < float(text) <= 1
        except ValueError:
            fine = False
        if not fine:
            raise UsageError(
                f"{name}, row {row.position}: propensity={reprlib.repr(value)} must lie above 0 and be at most 1"
            )
