"""Guesses of what each column of a table holds, from its heading and first rows; the words in which users rate."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from itertools import chain, islice
from math import isnan
from pathlib import Path
from typing import Any

import pyarrow as pa

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import FAULTS, lines_of, parquet_of
from skg_bench.core.types import RATINGS
from skg_bench.simulator.logs.recorded_cells import number_of, other_currency, readable_time
from skg_bench.simulator.logs.recorded_rows import TURN_FIELDS

Sample = Mapping[str, Sequence[Any]]  # the first rows of each column

_NAMES = {  # how columns are called, English and German, the more telling first
    "user": "user_id user customer_id customer kunde kunden_nr kundennummer nutzer benutzer client account visitor "
    "caller anrufer person who wer uid hashed_ip employee_id employee mitarbeiter member_id member",
    "id": "message_id msg_id turn_id request_id trace_id id key nr nummer vorgang ticket",
    "time": "timestamp time date datetime created_at created asked_at start_time when wann ts zeitstempel "
    "zeitpunkt zeit datum",
    "answer": "answer response reply output completion antwort bot_response",
    "intent": "intent intention label category topic absicht anliegen kategorie thema",
    "satisfaction": "satisfaction rating rated feedback score stars thumbs thumb vote csat bewertung zufriedenheit "
    "note",
    "propensity": "propensity probability",
    "cost_usd": "cost_usd total_cost cost price kosten preis",
    "latency_ms": "latency_ms latency duration_ms duration response_time wait wartezeit antwortzeit dauer",
    "action": "action skill served_by handler route aktion",
    "session": "session session_id conversation_id conversation thread_id thread dialogue_id dialog_id chat_id conv_id "
    "conv sitzung gespräch gespraech unterhaltung",
    "message": "message user_message question query prompt input utterance request conversation messages nachricht "
    "frage anfrage text content",
}
_PARTS, _HUMP = re.compile(r"[^\W_]+"), re.compile(r"(?<=[a-z])(?=[A-Z])")
_FRACTION = re.compile(r"-?\d*[.,](?!\d{3}$)\d*[1-9]\d*")  # 1,234 may be an id with its thousands apart
_MILLISECONDS = {"ms", "msec", "millis", "milliseconds", "millisekunden"}
_MARKS = {"note", "noten", "schulnote"}  # of schools: 1 is best in Germany, 20 in France
_SECONDS = re.compile(r"(_|\b)(s|sec|secs|seconds|sek|sekunden)\)?$")
_WORDS = {
    "ok": "ok okay good great yes ja true up thumbs_up positive like helpful satisfied correct gut sehr_gut zufrieden "
    "hilfreich 👍 +1",
    "partial": "partial partly neutral mixed teilweise teils mittel 😐",
    "miss": "miss bad poor no nein false down thumbs_down negative dislike unhelpful unsatisfied wrong schlecht "
    "unzufrieden falsch 👎",
}
_SCALES = (  # numbers as which users rate, what they mean, and what has to be true for that
    ({0, 1}, {1: "ok", 0: "miss"}, "1 is best"),
    ({-1, 0, 1}, {1: "ok", 0: "partial", -1: "miss"}, "1 is best"),
    ({1, 2, 3, 4, 5}, {5: "ok", 4: "ok", 3: "partial", 2: "miss", 1: "miss"}, "5 is best"),
    (set(range(11)), {n: "ok" if n >= 8 else "partial" if n >= 5 else "miss" for n in range(11)}, "10 is best"),
)
_ROWS = 1000  # of a file, from which columns are guessed
_SHOWN = 40  # characters of a cell
_PROSE = 2.0  # words of a message, on average
_CONVERSATION = float("inf")  # as many has a list of messages
_BY_NAME = "by its name"
_BY_CONTENT = ("time", "message", "user")  # dates and texts come again as users do, so users are what is left
_TIMES = 0.5  # share of the cells of a column of times that can be read as such


@dataclass(frozen=True, slots=True)
class ColumnGuess:
    """A column, and why it."""

    column: str
    why: str

    @property
    def words(self) -> str:
        """The column; where its name does not tell what it is, with the reason."""
        return self.column if self.why == _BY_NAME else f"{self.column} ({self.why})"


def first_rows(path: Path) -> dict[str, list[Any]]:
    """The first rows of each column of JSON lines or Parquet.

    Raises UsageError for a file that is neither.
    """
    if path.suffix == ".parquet":
        try:
            with parquet_of(path) as file:
                batch = next(file.iter_batches(_ROWS), None)
                return {name: [] for name in file.schema_arrow.names} if batch is None else batch.to_pydict()
        except (pa.ArrowException, OSError, *FAULTS) as error:
            raise UsageError(f"{path} is torn or no Parquet file ({str(error).partition(chr(10))[0]})") from error
    rows = []
    for _, line in islice(lines_of(path), _ROWS):
        with suppress(ValueError, RecursionError):
            rows.append(json.loads((line or b"").decode("utf-8", "replace")))
    rows = [row for row in rows if isinstance(row, dict)]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def mapping(sample: Sample, given: Mapping[str, str | None] | None = None) -> dict[str, ColumnGuess]:
    """The column of each field that is found; user, time and message also by what stands in them, but no message where
    several columns hold texts. `given`: columns that somebody named, by field; None: the log has none. They are taken,
    if they occur in the sample.
    """
    given = given or {}
    guesses = {
        field: ColumnGuess(column, "as you say")
        for field, column in given.items()
        if column is not None and column in sample
    }
    free = [column for column in sample if column not in given.values()]
    for field, names in _NAMES.items():
        if field in given:
            continue
        holds = _HOLDS.get(field)
        fitting = [column for column in free if holds is None or holds(sample[column])]
        if field == "cost_usd":
            fitting = [column for column in fitting if not other_currency(column)]
        whole = fitting if field in _CHECKED else free
        if field == "user":
            whole = [column for column in free if not _shares(sample[column])]
        if (column := _named(whole, fitting, names.split())) is not None:
            guesses[field] = ColumnGuess(column, _BY_NAME)
            free.remove(column)
    for field in (field for field in _BY_CONTENT if field not in guesses and field not in given):
        texts = [column for column in free if holds_texts(sample[column])]
        if field == "message" and len(texts) > 1 and max(_prose(sample[column]) for column in texts) < _CONVERSATION:
            free = [column for column in free if column not in texts]
            continue
        best = max(free, key=lambda column: _HOLDS[field](sample[column]), default=None)
        if best is not None and _HOLDS[field](sample[best]):
            guesses[field] = ColumnGuess(best, "by what stands in it")
            free.remove(best)
    return {field: guesses[field] for field in TURN_FIELDS if field in guesses}


def _named(columns: Sequence[str], fitting: Sequence[str], names: Sequence[str]) -> str | None:
    """Column that has one of the names, else one of those that are `fitting` that has it among others."""
    plain = {column: "_".join(_PARTS.findall(_HUMP.sub("_", column).lower())) for column in columns}
    whole = (column for name in names for column in columns if plain[column] == name)
    part = (column for name in names for column in fitting if f"_{name}_" in f"_{plain[column]}_")
    return next(chain(whole, part), None)


def unreadable_time(sample: Sample) -> str:
    """The column that is called as times are, with its first cell that is no time; empty: there is none."""
    column = _named(list(sample), list(sample), _NAMES["time"].split())
    cells = _filled(sample[column]) if column else []
    return next((f"{column}={str(cell)[:_SHOWN]!r}" for cell in cells if not readable_time(cell, UTC)), "")


def _filled(cells: Sequence[Any]) -> list[Any]:
    return [cell for cell in cells if cell is not None and str(cell).strip()]


def _times(cells: Sequence[Any]) -> float:
    """Share of cells that are times, more where these are no bare numbers, as ids are, and where they differ."""
    some = _filled(cells)
    share = sum(readable_time(cell, UTC) for cell in some) / max(len(some), 1)
    if share < _TIMES:
        return 0.0
    return (share + len(set(map(str, some))) / len(some)) * (0.5 if _bare(some) else 1.0)


def _bare(cells: Sequence[Any]) -> bool:
    return all(str(cell).strip().isdigit() for cell in cells)


def _users(cells: Sequence[Any]) -> float:
    """As `_repeats`; 0 for dates, and for numbers with a fraction."""
    return 0.0 if _shares(cells) or (_times(cells) and not _bare(_filled(cells))) else _repeats(cells)


def _shares(cells: Sequence[Any]) -> bool:
    """Do they hold numbers with a fraction? 12.0 is none, as ids are written so where some are missing."""
    return any(_FRACTION.fullmatch(str(cell).strip()) for cell in cells)


def holds_texts(cells: Sequence[Any]) -> bool:
    """Could messages stand in this column?"""
    return _prose(cells) > 0


def _prose(cells: Sequence[Any]) -> float:
    """Words of a cell, on average; a conversation is one."""
    some = _filled(cells)
    if some and isinstance(some[0], list):
        return _CONVERSATION
    words = sum(len(str(cell).split()) for cell in some) / max(len(some), 1)
    return words if words >= _PROSE else 0.0


def _repeats(cells: Sequence[Any]) -> float:
    """How often a cell of a column comes again; 0 for one that is the same everywhere, or nowhere."""
    some = _filled(cells)
    distinct = len(set(map(str, some)))
    return 0.0 if distinct < 2 or distinct == len(some) else distinct / len(some)


def _groups(cells: Sequence[Any]) -> float:
    """As `_repeats`, of cells that are names."""
    return (
        0.0 if any(isinstance(cell, list | dict) or len(str(cell).split()) > 1 for cell in cells) else _repeats(cells)
    )


def _numbers(cells: Sequence[Any]) -> float:
    some = [str(cell) for cell in _filled(cells)]
    return float(bool(some) and all(any(sign.isdigit() for sign in text) for text in some))


def _differ(cells: Sequence[Any]) -> float:
    some = _filled(cells)
    return float(len(set(map(str, some))) == len(some))


_HOLDS: Mapping[str, Callable[[Sequence[Any]], float]] = {  # how well the cells of a column fit a field, 0: not at all
    "user": _users, "time": _times, "message": _prose, "id": _differ, "cost_usd": _numbers, "latency_ms": _numbers,
    "session": _groups,
}  # fmt: skip
_CHECKED = (
    "time",
    "id",
    "cost_usd",
    "latency_ms",
    "session",
)  # fields that a column of their very name may still not hold


def rating_words(words: Sequence[str]) -> tuple[dict[str, list[str]], str] | None:
    """Words for each of RATINGS, and what has to be true for them; None where some word is not known."""
    known = {word.replace("_", " "): rating for rating, some in _WORDS.items() for word in some.split()}
    numbers = {word: number_of(word.replace(",", ".")) for word in words}
    if any(map(isnan, numbers.values())):
        if not all(word.lower() in known for word in words):
            return None
        meaning, given = {word: known[word.lower()] for word in words}, "they mean what they say"
    else:
        scale = next((scale for scale in _SCALES if set(numbers.values()) <= scale[0]), None)
        if scale is None:
            return None
        meaning, given = {word: scale[1][int(number)] for word, number in numbers.items()}, scale[2]
    return {rating: [word for word in words if meaning[word] == rating] for rating in RATINGS}, given


def rating_doubt(column: str, words: Sequence[str]) -> str:
    """Reason why numbers that `rating_words` knows may mean something else; empty: none, or they are words. That nobody
    rated as badly as can be is no reason.
    """
    numbers = {number_of(word.replace(",", ".")) for word in words}
    scale = next((scale for scale, *_ in _SCALES if numbers <= scale), set[int]())
    if not (numbers and scale) or -1 in numbers or numbers == {0, 1}:
        return ""
    if _MARKS & set(_PARTS.findall(column.lower())):
        return "could be marks, of which 1 is best in some countries"
    return "" if max(scale) in numbers and numbers != {1} else "do not show the best of their scale"


def wait_unit(column: str, values: Sequence[float]) -> str:
    """Unit of waiting times, s or ms: the end of their column's name tells, else whether half of them are below 60.
    Empty: all are, and all are whole, as milliseconds are and seconds may be.
    """
    plain = column.strip().lower()
    if _MILLISECONDS & set(_PARTS.findall(plain)):
        return "ms"
    if _SECONDS.search(plain):
        return "s"
    if any(values) and max(values) < 60 and all(value % 1 == 0 for value in values):
        return ""
    return "s" if values and sorted(values)[len(values) // 2] < 60 else "ms"
