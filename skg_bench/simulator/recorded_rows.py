"""Rows of a log in a file: CSV, TSV, JSON lines or Parquet. What cannot be read is counted, with its place."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from skg_bench.core.errors import UsageError

FIELDS = ("user", "time", "message", "id", "intent", "answer", "satisfaction", "action", "propensity")
REQUIRED = "message"
INVENTED = {"user": "users", "time": "time"}  # fields that are made up where a log has none, and what that is called
SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
_FIRST = 10  # rows of each kind whose places are told
_BIG = 2**24  # characters in one cell of a CSV file: a conversation may be long

Columns = Mapping[str, str | None]
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


@dataclass
class LeftOut:
    """Rows that are no turns of the run, by reason."""

    found: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, why: str, position: int) -> None:
        """One more."""
        entry = self.found.setdefault(why, {"rows": 0, "first": []})
        entry["rows"] += 1
        if len(entry["first"]) < _FIRST:
            entry["first"].append(position)

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(entry["rows"] for entry in self.found.values())


def table(path: Path, columns: Columns, out: LeftOut) -> list[RecordedTurn]:
    """The turns of a table. A `message` that is a list of {role, content} is a conversation, and each user's entry a
    turn, answered by the assistant's entry after it.

    Raises UsageError for an unknown kind of file, one that cannot be read, and a mapping that names an absent column.
    """
    if path.suffix not in SUFFIXES:
        raise UsageError(f"simulator.path={path}: its name must end in {', '.join(SUFFIXES)}; columns are then mapped")
    wanted = mapped(path, columns)
    read = {".parquet": _parquet, ".csv": _csv, ".tsv": _csv}.get(path.suffix, _json_lines)
    try:
        return [row for position, cells in read(path, wanted, out) for row in turns_of(position, cells, out)]
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error}") from error
    except csv.Error as error:
        raise UsageError(f"{path} is no table: {error}") from error


def mapped(path: Path | str, columns: Columns) -> dict[str, str]:
    """The columns of a table that hold something, by field.

    Raises UsageError where none holds messages.
    """
    wanted = {name: column for name, column in columns.items() if column is not None}
    if REQUIRED not in wanted:
        raise UsageError(
            f"simulator.columns.{REQUIRED} is missing; name the column of {path} that holds the {REQUIRED}"
        )
    return wanted


def absent(path: Path | str, wanted: Mapping[str, str], columns: Iterable[str]) -> None:
    """Raises UsageError for a mapped column that the table does not have."""
    have = list(columns)
    for name, column in wanted.items():
        if column not in have:
            raise UsageError(
                f"simulator.columns.{name}={column}: {path} has no such column; it has {', '.join(have) or 'none'}"
                + (f"; null if none holds it: simulator.columns.{name}=null" if name in INVENTED else "")
            )


def _csv(path: Path, wanted: Mapping[str, str], out: LeftOut) -> Iterator[tuple[int, Cells]]:
    csv.field_size_limit(_BIG)
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",", strict=True)
        header = next(lines, [])
        absent(path, wanted, header)
        at = {name: header.index(column) for name, column in wanted.items()}
        for cells in lines:
            if len(cells) == len(header):
                yield lines.line_num, {name: cells[position] for name, position in at.items()}
            elif cells:
                out.add("another number of fields than the heading has", lines.line_num)


def _json_lines(path: Path, wanted: Mapping[str, str], out: LeftOut) -> Iterator[tuple[int, Cells]]:
    seen: set[str] = set()
    rows: list[tuple[int, Cells]] = []
    with path.open(encoding="utf-8") as file:
        for position, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                read = json.loads(line)
            except ValueError:
                read = None
            if isinstance(read, dict):
                seen.update(read)
                rows.append((position, {name: read.get(column) for name, column in wanted.items()}))
            else:
                out.add("no whole JSON object", position)
    if rows:
        absent(path, wanted, sorted(seen))
    yield from rows


def _parquet(path: Path, wanted: Mapping[str, str], _: LeftOut) -> Iterator[tuple[int, Cells]]:
    try:
        with pq.ParquetFile(path) as file:
            absent(path, wanted, file.schema_arrow.names)
            position = 0
            for batch in file.iter_batches(columns=list(dict.fromkeys(wanted.values()))):
                for row in batch.to_pylist():
                    position += 1
                    yield position, {name: row[column] for name, column in wanted.items()}
    except pa.ArrowInvalid as error:
        raise UsageError(f"{path} is torn or no Parquet file ({str(error).partition(chr(10))[0]})") from error


def turns_of(position: int, cells: Cells, out: LeftOut) -> Iterator[RecordedTurn]:
    """The turns of a row: one, or those of a conversation."""
    cells = {**dict.fromkeys(INVENTED), **cells}
    entries = cells["message"]
    if not isinstance(entries, list):
        yield RecordedTurn(position, **cells)
        return
    for name in ("satisfaction", "propensity"):
        if cells.get(name) is not None:
            raise UsageError(
                f"row {position}: a conversation's {name} belongs to none of its turns; map no such column"
            )
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict) or "role" not in entry:
            out.add("a conversation's entry without a role", position)
        elif entry["role"] == "user":
            after = entries[i + 1] if i + 1 < len(entries) and isinstance(entries[i + 1], dict) else {}
            reply = after if after.get("role") == "assistant" else {}
            yield RecordedTurn(
                position, cells["user"], reply.get("timestamp") or entry.get("timestamp") or cells["time"],
                entry.get("content"), None if cells.get("id") is None else f"{cells['id']}#{i}",
                cells.get("intent"), reply.get("content"), None, cells.get("action"),
            )  # fmt: skip
