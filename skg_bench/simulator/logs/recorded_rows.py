"""Rows of a log in a file: JSON lines or Parquet. What cannot be read is counted, with its place."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skg_bench.core.errors import TwiceError, UsageError
from skg_bench.core.foreign import LONGEST_TEXT, json_of, lines_of, unicode
from skg_bench.simulator.logs.recorded_cells import check_currency
from skg_bench.simulator.logs.recorded_parquet import UNREADABLE, parquet_rows

TURN_FIELDS = (
    "user", "time", "message", "id", "intent", "answer", "satisfaction", "action", "propensity", "cost_usd",
    "latency_ms", "session",
)  # fmt: skip
REQUIRED = TURN_FIELDS[:3]
INVENTED = {"user": "users", "time": "time"}  # of them, what is made up where a log has none, and what that is called
LOG_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
NOT_UTF8 = "not UTF-8"
TOO_LONG = f"{{}} has more than {LONGEST_TEXT:,} characters"
_WHOLE = re.compile(r"-?[0-9]+\.0")
_FIRST = 10  # rows of each kind whose places are told

ColumnNames = Mapping[str, str | None]
Cells = Mapping[str, Any]


@dataclass(slots=True)
class RecordedTurn:
    """One turn as it stands in a log; None: the log does not say."""

    position: int  # line of a text file, the first is 1; row of a Parquet file, the first is 1; else a count
    user: Any
    time: Any
    message: Any
    id: Any = None
    intent: Any = None
    answer: Any = None
    satisfaction: Any = None
    action: Any = None
    propensity: Any = None
    delay: int = 0  # seconds from the answer to its rating
    also: Sequence[str] = ()  # intents that are active besides: whether an answer to one is wrong, nobody knows
    cost_usd: Any = None
    latency_ms: Any = None
    session: Any = None  # the conversation


@dataclass
class LeftOut:
    """Rows that are no turns of the run, by reason."""

    found: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, why: str, *positions: int) -> None:
        """More of them, in the order of their places."""
        entry = self.found.setdefault(why, {"rows": 0, "first": []})
        entry["rows"] += len(positions)
        entry["first"] += positions[: _FIRST - len(entry["first"])]

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(entry["rows"] for entry in self.found.values())


def turns_of_table(path: Path, wanted: Mapping[str, str], out: LeftOut, most: int | None = None) -> list[RecordedTurn]:
    """The turns of a table of JSON lines or Parquet. A `message` that is a list of {role, content} is a conversation,
    and each user's entry a turn, answered by the assistant's entry after it. `most`: as for `parquet_rows`.

    Raises UsageError for a file that cannot be read, and a mapping that names an absent column.
    """
    parquet = path.suffix == ".parquet"
    try:
        rows = _parquet(path, wanted, most) if parquet else _json_lines(path, wanted, out)
        return [row for position, cells in rows for row in turns_of(path, position, cells, out)]
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error}") from error


def check_suffix(path: Path) -> None:
    """Raises UsageError for a kind of file that is no table."""
    if path.suffix not in LOG_SUFFIXES:
        raise UsageError(
            f"simulator.path={path}: its name must end in {', '.join(LOG_SUFFIXES)}; columns are then mapped"
        )


def mapped_columns(path: Path | str, columns: ColumnNames) -> dict[str, str]:
    """The columns of a table that hold something, by field.

    Raises UsageError where none holds messages, and for money of another currency than dollars.
    """
    if columns.get("message") is None:
        raise UsageError(f"simulator.columns.message is missing; name the column of {path} that holds the message")
    check_currency(columns.get("cost_usd"))
    return {name: column for name, column in columns.items() if column is not None}


def check_mapped(path: Path | str, wanted: Mapping[str, str], columns: Iterable[str]) -> None:
    """Raises UsageError for a mapped column that the table does not have, or has twice."""
    have = list(columns)
    for name, column in wanted.items():
        if column not in have:
            raise UsageError(
                f"simulator.columns.{name}={column}: {path} has no such column; it has {', '.join(have) or 'none'}"
                + (f"; null if none holds it: simulator.columns.{name}=null" if name in INVENTED else "")
            )
        if column and have.count(column) > 1:  # what has no name is no column
            raise UsageError(f"{path} has the column {column!r} twice; leave one of them")


def _json_lines(path: Path, wanted: Mapping[str, str], out: LeftOut) -> Iterator[tuple[int, Cells]]:
    seen: set[str] = set()
    rows: list[tuple[int, Cells]] = []
    for position, line in lines_of(path):
        read = None
        if line is not None and not (line := line.strip()):
            continue
        try:
            read = None if line is None else json_of(line.decode(), f"{path}: row {position}")
        except UnicodeDecodeError:
            out.add(NOT_UTF8, position)
            continue
        except TwiceError:
            raise
        except UsageError:
            pass
        if isinstance(read, dict):
            seen.update(read)
            rows.append((position, {name: read.get(column) for name, column in wanted.items()}))
        else:
            out.add("no whole JSON object", position)
    if rows:
        check_mapped(path, wanted, sorted(seen))
    yield from rows


def _parquet(path: Path, wanted: Mapping[str, str], most: int | None) -> Iterator[tuple[int, Cells]]:
    def names(have: Iterable[str]) -> list[str]:
        check_mapped(path, wanted, have)
        return list(dict.fromkeys(wanted.values()))

    for position, row in enumerate(parquet_rows(path, names, most), 1):
        yield position, {name: row[column] for name, column in wanted.items()}


def spelled(name: str) -> str:
    """A name without blanks around it, in one form of Unicode."""
    return unicodedata.normalize("NFC", name.strip())


def spelled_user(name: str) -> str:
    """A user by name, spelled so. A whole number has no `.0`, which it gets where a table had rows without a user."""
    name = spelled(name)
    return name[:-2] if _WHOLE.fullmatch(name) else name


def one_but_for_case(names: Iterable[str]) -> str:
    """Words on users whose names differ in upper and lower case alone, as those of addresses do; nothing without any.
    No name is told: a log may be redacted.
    """
    counts = Counter(name.casefold() for name in names)
    again = sum(count for count in counts.values() if count > 1)
    if not again:
        return ""
    return f"{again:,} names of users differ from another one in upper and lower case alone; each counts as a user"


def user_name(value: object) -> object:
    """A user, by a name or a number: a whole one is the same however the file holds it."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return spelled_user(value) if isinstance(value, str) else value


def flaw(row: RecordedTurn) -> str | None:
    """Reason why a row cannot be a turn, whatever its columns mean; None: it can."""
    for name in TURN_FIELDS:
        value = getattr(row, name)
        if value is UNREADABLE:
            return f"{name} cannot be read"
        if isinstance(value, dict | list | tuple | set | bytes):
            return f"{name} is no text"
        if isinstance(value, str):
            if len(value) > LONGEST_TEXT:
                return TOO_LONG.format(name)
            if not unicode(value):
                return f"{name} holds half a surrogate pair, which no text has"
    return None if all(map(unicode, row.also)) else "intent holds half a surrogate pair, which no text has"


def turns_of(path: Path | str, position: int, cells: Cells, out: LeftOut) -> Iterator[RecordedTurn]:
    """The turns of a row: one, or those of a conversation.

    Raises UsageError where a conversation has a satisfaction or a propensity.
    """
    cells = {**dict.fromkeys(INVENTED), **cells}
    entries = cells["message"]
    if not isinstance(entries, list):
        yield RecordedTurn(position, **cells)
        return
    for name in ("satisfaction", "propensity"):
        if cells.get(name) is not None:
            raise UsageError(
                f"{path}: row {position}: a conversation's {name} belongs to none of its turns; map no such column"
            )
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict) or "role" not in entry:
            out.add("a conversation's entry without a role", position)
        elif entry["role"] == "user":
            after = entries[i + 1] if i + 1 < len(entries) and isinstance(entries[i + 1], dict) else {}
            reply = after if after.get("role") == "assistant" else {}
            yield RecordedTurn(
                position, cells["user"], reply.get("timestamp") or entry.get("timestamp") or cells["time"],
                entry.get("content"), _numbered(cells.get("id"), i),
                cells.get("intent"), reply.get("content"), None, cells.get("action"),
                session=str(cells.get("session") or f"row {position}"),
            )  # fmt: skip


def _numbered(conversation: Any, i: int) -> Any:
    """The id of an entry; that of a conversation which is no text stays as it is, and is left out."""
    return f"{conversation}#{i}" if isinstance(conversation, str | int | float) else conversation
