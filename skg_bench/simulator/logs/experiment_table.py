"""Results of an experiment that was made elsewhere, read from a table: a row for each user, event and arm.

No row is left out: results that lack a row compare other requests than they seem to. What cannot be read is refused
with its row, and so are rows that are there twice and events that an arm lacks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from skg_bench.core.errors import TwiceError, UsageError, nearest
from skg_bench.core.foreign import LONGEST_TEXT, json_of, lines_of, unicode
from skg_bench.core.grid import F64, I64, Bool
from skg_bench.core.text import plural
from skg_bench.simulator.logs.recorded_cells import number_of
from skg_bench.simulator.logs.recorded_csv import TEXT_TABLES, CsvFile
from skg_bench.simulator.logs.recorded_parquet import UNREADABLE, parquet_rows
from skg_bench.simulator.logs.recorded_rows import LOG_SUFFIXES, LeftOut, spelled, spelled_user
from skg_bench.simulator.logs.recorded_size import log_size, usual

FIELDS = {
    "user": "who asked",
    "event": "the request, the same under all arms",
    "arm": "what answered",
    "right": "1 or 0: was the answer right",
    "score": "0 to 1: how good the answer was",
    "cost": "of the answer, US dollars",
    "wait": "for the answer, seconds",
    "text": "of the request",
    "intent": "kind of request",
}
"""Columns that a table may have, and what each says."""
_ARM_BYTES = 200  # of a name; with what a log's file adds, below the 255 that file systems take
NEEDED = ("user", "event", "arm")
_LIMITS = {"score": 1.0, "cost": 1e9, "wait": 1e9}  # largest values; the smallest is 0, and squares stay finite
_RIGHT = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ExperimentTable:
    """Results of A arms at N events. Events are by user, then by their numbers, or else in the order of the table."""

    columns: tuple[str, ...]  # of FIELDS, those that the table has
    arms: tuple[str, ...]  # in the order of the table
    users: tuple[str, ...]  # by number where all are whole numbers, else by name
    user: I64  # [N] index into `users`, ascending
    event: Sequence[str]  # [N]
    position: I64  # [A, N] line of a text file, the first is 1; row of a Parquet file, the first is 1
    right: Bool | None  # [A, N]; None where the table has no such column, as below
    score: F64 | None
    cost: F64 | None
    wait: F64 | None
    text: Sequence[str] | None  # [N]
    intent: Sequence[str | None] | None  # [N] None: of no kind


def read_experiment(path: Path) -> ExperimentTable:
    """The results in a file of CSV, TSV, JSON lines or Parquet.

    Raises UsageError, which names the row, for a table that is not whole.
    """
    if not path.is_file():
        raise UsageError(f"there is no file {path}; name a table: {', '.join(LOG_SUFFIXES)}")
    if path.suffix not in LOG_SUFFIXES:
        raise UsageError(f"{path}: the name of a table ends in {', '.join(LOG_SUFFIXES)}")
    if (size := log_size(path)).rows > usual(size):
        raise UsageError(f"{path} has {size.words}; at most {usual(size):,} rows are read: import a part of it")
    columns, rows = _rows(path)
    places: dict[tuple[str, str, str], int] = {}  # of each row by arm, user, event
    for at, (position, row) in enumerate(rows):
        user, event, arm = (spelled(_name(path, position, name, row[name])) for name in NEEDED)
        user = spelled_user(user)
        first = places.setdefault((arm, user, event), at)
        if first != at:
            raise UsageError(
                f"{path}: row {position} repeats row {rows[first][0]}: user {user!r}, event {event!r}, arm {arm!r}; "
                "leave one of them"
            )
    arms = tuple(dict.fromkeys(arm for arm, _, _ in places))
    _check_arms(path, arms)
    pairs = list(dict.fromkeys((user, event) for _, user, event in places))
    _check_pairs(path, arms, pairs, places, rows)
    users = _ordered(list(dict.fromkeys(user for user, _ in pairs)), by_name=True)
    rank = {user: i for i, user in enumerate(users)}
    turn = {event: i for i, event in enumerate(_ordered(list(dict.fromkeys(event for _, event in pairs))))}
    pairs.sort(key=lambda pair: (rank[pair[0]], turn[pair[1]]))
    grid = [[rows[places[arm, *pair]] for pair in pairs] for arm in arms]  # [A][N]
    numbers = {name: _numbers(path, grid, name) if name in columns else None for name in _LIMITS}
    return ExperimentTable(
        columns, arms, tuple(users), np.array([rank[user] for user, _ in pairs], np.int64),
        [event for _, event in pairs], np.array([[position for position, _ in line] for line in grid], np.int64),
        _right(path, grid) if "right" in columns else None, **numbers,
        text=[str(text) for text in _shared(path, grid, "text")] if "text" in columns else None,
        intent=_shared(path, grid, "intent") if "intent" in columns else None,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------ rows


def _rows(path: Path) -> tuple[tuple[str, ...], list[tuple[int, Row]]]:
    """The columns, and the rows with their places."""
    if path.suffix in TEXT_TABLES:
        names, rows = _text_rows(path)
    elif path.suffix == ".parquet":
        names, rows = _parquet_rows(path)
    else:
        rows = list(_json_rows(path))
        names = tuple(dict.fromkeys(name for _, row in rows for name in row))
    _check_columns(path, names)
    if not rows:
        raise UsageError(f"{path} has no rows; give a row for each user, event and arm")
    return names, [(position, {name: row.get(name) for name in names}) for position, row in rows]


def _text_rows(path: Path) -> tuple[tuple[str, ...], list[tuple[int, Row]]]:
    file = CsvFile.open(path, list(FIELDS), None, None)
    names, out = tuple(file.dialect.heading), LeftOut()
    _check_columns(path, names)
    read = file.columns({name: name for name in names}, out)
    for why, entry in out.found.items():
        raise UsageError(f"{path}: row {entry['first'][0]} is torn: {why}; {entry['rows']:,} rows are")
    cells = [read.cells[name].to_pylist() for name in names]
    values = zip(*cells, strict=True)
    rows = ((at, dict(zip(names, row, strict=True))) for at, row in zip(read.position.tolist(), values, strict=True))
    return names, list(rows)


def _parquet_rows(path: Path) -> tuple[tuple[str, ...], list[tuple[int, Row]]]:
    names: list[str] = []

    def wanted(columns: Sequence[str]) -> Sequence[str]:
        _check_columns(path, columns)
        names.extend(columns)
        return columns

    rows = list(enumerate(parquet_rows(path, wanted), 1))
    return tuple(names), list(rows)


def _json_rows(path: Path) -> Iterator[tuple[int, Row]]:
    for position, line in lines_of(path):
        if line is not None and not line.strip():
            continue
        try:
            row = None if line is None else json_of(line.decode(), f"{path}: row {position}")
        except TwiceError:
            raise
        except (UnicodeDecodeError, UsageError):
            row = None
        if not isinstance(row, dict):
            raise UsageError(f"{path}: row {position} is torn: no whole JSON object; write one a line")
        yield position, row


# ---------------------------------------------------------------------------------------------------- checks


def _check_columns(path: Path, names: Sequence[str]) -> None:
    """Raises UsageError for columns that are unknown, missing, or there twice."""
    valid = ", ".join(f"{name} ({meaning})" for name, meaning in FIELDS.items())
    for i, name in enumerate(names):
        if name in names[:i]:
            raise UsageError(f"{path} has the column {name!r} twice; leave one of them")
        if name not in FIELDS:
            raise UsageError(f"{path} has the unknown column {name!r}; rename it or leave it out. Columns are {valid}")
    for name in NEEDED:
        if name not in names:
            raise UsageError(f"{path} has no column {name!r}; columns are {valid}")
    if not {"right", "score"} & set(names):
        raise UsageError(f"{path} has neither a column 'right' nor 'score'; columns are {valid}")


def _check_arms(path: Path, arms: Sequence[str]) -> None:
    if len(arms) < 2:
        raise UsageError(f"{path} has one arm only, {arms[0]!r}; an arm is compared with another: add its rows")
    for arm in arms:
        if arm == "*":
            raise UsageError(f"{path}: an arm is called '*', which stands for all arms in tables; give it another name")
        if set(arm) & set("/\\\0\n\r") or arm.startswith(".") or len(arm) > 100 or len(arm.encode()) > _ARM_BYTES:
            raise UsageError(
                f"{path}: the arm {arm!r} cannot name files; take at most 100 characters ({_ARM_BYTES} bytes of "
                "UTF-8), no slash, no line break, and no dot at the start"
            )


def _check_pairs(
    path: Path,
    arms: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    places: Mapping[tuple[str, str, str], int],
    rows: Sequence[tuple[int, Row]],
) -> None:
    """Raises UsageError where an arm lacks events of another one."""
    missing = [(arm, *pair) for pair in pairs for arm in arms if (arm, *pair) not in places]
    if not missing:
        return
    arm, user, event = missing[0]
    other = next(name for name in arms if (name, user, event) in places)
    row, verb = rows[places[other, user, event]][0], "is" if len(missing) == 1 else "are"
    raise UsageError(
        f"{path}: arm {arm!r} lacks user {user!r}, event {event!r}, which row {row} has of arm {other!r}; "
        f"{plural(len(missing), 'such row')} {verb} missing. Arms are compared event by event: add these rows, "
        "or take the events out of all arms"
    )


def _ordered(names: list[str], *, by_name: bool = False) -> list[str]:
    """Names by number where all are whole numbers; else in the order of the alphabet, or as they come."""
    if all(name.isascii() and name.isdecimal() and len(name) < 19 for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names) if by_name else names


# ---------------------------------------------------------------------------------------------------- values


def _blank(value: Any) -> bool:
    return value is None or value != value or (isinstance(value, str) and not value.strip())


def _name(path: Path, position: int, name: str, value: Any) -> str:
    """A cell as a text that is not empty; a whole number is the same text however the file holds it."""
    if _blank(value):
        raise UsageError(f"{path}: row {position}: {name} is empty; every row needs one")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is UNREADABLE or not isinstance(value, str | int | float) or isinstance(value, bool):
        raise UsageError(f"{path}: row {position}: {name} is neither text nor a number")
    text = str(value).strip()
    if len(text) > LONGEST_TEXT or not unicode(text):
        raise UsageError(f"{path}: row {position}: {name} has more than {LONGEST_TEXT:,} characters, or half of one")
    return text


def _shared(path: Path, grid: Sequence[Sequence[tuple[int, Row]]], name: str) -> list[str | None]:
    """Texts of a column of the events `[N]`; only an intent may be empty.

    Raises UsageError where an arm has another one at an event.
    """
    texts = [
        [None if name == "intent" and _blank(row[name]) else _name(path, at, name, row[name]) for at, row in line]
        for line in grid
    ]
    for line, others in zip(grid[1:], texts[1:], strict=True):
        for (first, _), (at, _), text, other in zip(grid[0], line, texts[0], others, strict=True):
            if text != other:
                raise UsageError(
                    f"{path}: row {at} has another {name} than row {first}, of the same user and event; an event is "
                    "one request, the same under all arms"
                )
    return texts[0]


def _right(path: Path, grid: Sequence[Sequence[tuple[int, Row]]]) -> Bool:
    def right(position: int, value: Any) -> bool:
        word = str(value).strip().lower()
        if word not in _RIGHT:
            raise UsageError(
                f"{path}: row {position}: right is {value!r}; valid are 1, 0, true and false. What lies between "
                "belongs in a column 'score'"
            )
        return _RIGHT[word]

    return np.array([[right(at, row["right"]) for at, row in line] for line in grid], np.bool_)


def _numbers(path: Path, grid: Sequence[Sequence[tuple[int, Row]]], name: str) -> F64:
    limit = _LIMITS[name]
    scale = "0 to 1" if limit == 1 else f"0 or more, and at most {limit:,.0f}"

    def number(position: int, value: Any) -> float:
        size = number_of("nan" if isinstance(value, bool) or _blank(value) else value)
        if isfinite(size) and 0 <= size <= limit:
            return size
        known = "is empty" if _blank(value) else f"is {value!r}"
        raise UsageError(
            f"{path}: row {position}: {name} {known}; give a number, {scale} ({FIELDS[name]}), in every row, or leave "
            "the column out"
        )

    return np.array([[number(at, row[name]) for at, row in line] for line in grid], np.float64)


def reference_of(table: ExperimentTable, name: str | None) -> str:
    """The arm that the others are compared with; by default the first of the table.

    Raises UsageError for what is none.
    """
    if name is not None and name not in table.arms:
        raise UsageError(f"--reference {name}: there is no such arm; {nearest(name, table.arms)}")
    return name or table.arms[0]
