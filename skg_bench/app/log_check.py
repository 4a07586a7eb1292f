"""`skg-bench data check FILE`: how a log is written, the command that replays it, and what a run on it can show; of a
labelled corpus what a run on that can show.

The reader of the run does the reading: what is printed here is what a run does.
"""

import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from skg_bench.app import table_blocks
from skg_bench.app.building import build
from skg_bench.app.compose import compose
from skg_bench.app.corpus_check import corpus_sentences
from skg_bench.app.overrides import parse
from skg_bench.app.progress import console, working
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.core.errors import UsageError
from skg_bench.core.record import Record, left_out
from skg_bench.simulator.logs import recorded_csv, recorded_guess
from skg_bench.simulator.logs.recorded import Recorded
from skg_bench.simulator.logs.recorded_cells import decimal_comma, numbers, time_format
from skg_bench.simulator.logs.recorded_csv import CsvFile
from skg_bench.simulator.logs.recorded_rows import LOG_SUFFIXES, REQUIRED, LeftOut
from skg_bench.simulator.logs.recorded_size import KEY, log_size

_PLAIN = re.compile(r"[\w./-]+")
_NAMES = {"\t": "tab"}
_NUMBERS = ("propensity", "cost_usd", "latency_ms")
_FEW = 10  # turns of a user below which there is hardly time to learn
_WIDEST = 40  # characters of an example


@dataclass(frozen=True)
class LogTable:
    """A file as it is found: some rows of each column, and a reader of whole columns."""

    written: str  # in words
    settings: Mapping[str, str]  # of the simulator, by key, that say how it is written
    sample: recorded_guess.Sample
    file: CsvFile | None  # None: no text table; its rows stand for all

    def words(self, column: str) -> list[Any]:
        """All cells of a column."""
        if self.file is None:
            return list(self.sample[column])
        (cells,) = self.file.columns({"time": column}, LeftOut()).cells.values()
        texts: list[Any] = cells.to_pylist()
        return texts


def check_log(path: Path, texts: Sequence[str]) -> None:
    """Print what is guessed and the command; of a labelled corpus what a run on it can show. `texts`: overrides that
    say it better.

    Raises UsageError for a file that cannot be read, and where a guess would be a toss of a coin.
    """
    screen, given = console(), {override.path: override.value for override in parse(texts)}
    if path.is_file() and path.suffix in LOG_SUFFIXES:
        size = log_size(path)
        screen.print(f"{path}: {size.words}", soft_wrap=True, markup=False)
        size.check(_most(given))
    if not texts and (lines := corpus_sentences(str(path))):
        for line in lines:
            screen.print(line, soft_wrap=True, markup=False, highlight=False)
        return
    with working(f"reading {path}", console(sys.stderr)):
        table = _table(path, given)
    screen.print(f"{path}: {table.written}", soft_wrap=True, markup=False)
    guesses = recorded_guess.mapping(table.sample)
    rows = [[field, guess.column, guess.why, _example(table.sample[guess.column])] for field, guess in guesses.items()]
    table_blocks.show_table(screen, ["field", "column", "guessed", "such as"], rows)
    if unused := [name for name in table.sample if name not in {guess.column for guess in guesses.values()}]:
        screen.print(f"not used: {', '.join(unused)}", soft_wrap=True, markup=False)
    if missing := [field for field in REQUIRED if field not in guesses and f"simulator.columns.{field}" not in given]:
        raise UsageError(
            f"{path}: no column looks like the {missing[0]}; say which: simulator.columns.{missing[0]}=COLUMN"
        )
    columns = {field: guess.column for field, guess in guesses.items()}
    settings, notes = _settings(table, columns, given, str(path))
    for note in notes:
        screen.print(note, soft_wrap=True, markup=False)
    overrides = ["simulator=recorded", f"simulator.path={_quoted(str(path))}", f"simulator.columns={_mapping(columns)}",
                 *(f"simulator.{key}={value}" for key, value in settings.items()), *texts]  # fmt: skip
    simulator: Recorded = build("simulator", compose(overrides).root["simulator"], COMMAND_LINE)
    with working(f"reading {path}", console(sys.stderr)):
        _ = simulator.record
    for line in _facts(simulator.record, simulator):
        screen.print(line, soft_wrap=True, markup=False)
    _command(screen, overrides)


def _most(given: Mapping[str, Any]) -> int | None:
    """Rows that may be read; what is no number is refused where the command is composed."""
    most = given.get(KEY)
    return most if isinstance(most, int) and most > 0 else None


def _command(screen: Console, overrides: Sequence[str]) -> None:
    screen.print(f"\nskg-bench run {shlex.join(overrides)}", soft_wrap=True, markup=False, highlight=False)


def _table(path: Path, given: Mapping[str, Any]) -> LogTable:
    if not path.is_file():
        raise UsageError(
            f"{path} is no file: name a log. A folder of SGD, USS or agentropy needs no check: "
            "`skg-bench run` reads it with simulator=sgd, uss or agentropy"
        )
    if path.suffix not in LOG_SUFFIXES:
        raise UsageError(f"{path}: its name must end in {', '.join(LOG_SUFFIXES)}")
    if path.suffix not in recorded_csv.TEXT_TABLES:
        sample = recorded_guess.first_rows(path)
        return LogTable(f"{len(sample)} columns", {}, sample, None)
    encoding, separator = given.get("simulator.encoding"), given.get("simulator.separator")
    file = CsvFile.open(path, [], encoding, separator, most=_most(given))
    dialect = file.dialect
    separator = _NAMES.get(dialect.separator, dialect.separator)
    written = f"{len(dialect.heading)} columns, separated by {separator}, in {dialect.encoding}"
    settings = {"separator": _quoted(separator), "encoding": dialect.encoding}
    return LogTable(written, {k: v for k, v in settings.items() if f"simulator.{k}" not in given}, file.sample(), file)


def _example(cells: Sequence[Any]) -> str:
    text = next((" ".join(str(cell).split()) for cell in cells if cell is not None and str(cell).strip()), "")
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def _settings(
    table: LogTable, columns: dict[str, str], given: Mapping[str, Any], name: str
) -> tuple[dict[str, str], list[str]]:
    """Overrides of the simulator by key, and what is to be said of them; a column that cannot be used is dropped."""
    settings, notes = dict(table.settings), list[str]()
    if "time" in columns and "simulator.day_first" not in given:
        kind, first = time_format(table.words(columns["time"]), name)
        notes.append(f"time: {kind}")
        if first is not None:
            settings["day_first"] = str(first).lower()
    texts = [
        str(word) for field in _NUMBERS if field in columns for word in table.words(columns[field]) if word is not None
    ]
    comma = None if "simulator.decimal" in given else decimal_comma(texts)
    if comma is not None:
        settings["decimal"] = _quoted("," if comma else ".")
        notes.append(f"numbers: decimal {'comma' if comma else 'point'}")
    if "latency_ms" in columns and "simulator.latency_unit" not in given:
        waits = [None if word is None else str(word) for word in table.words(columns["latency_ms"])]
        values = numbers(waits, given.get("simulator.decimal", "," if comma else "."), "waits", "simulator.decimal")
        seconds = recorded_guess.in_seconds(columns["latency_ms"], values[~np.isnan(values)].tolist())
        settings["latency_unit"] = "s" if seconds else "ms"
        notes.append(f"waits: taken for {'seconds' if seconds else 'milliseconds'}; else simulator.latency_unit=ms|s")
    if "satisfaction" in columns and not any(path.startswith("simulator.rated_") for path in given):
        words = _distinct(table.words(columns["satisfaction"]))
        rated = recorded_guess.rating_words(words)
        if rated is None:
            del columns["satisfaction"]
            notes.append(
                f"ratings are left out, as {', '.join(map(repr, words[:10]))} say nothing of themselves; give "
                "simulator.columns.satisfaction and simulator.rated_ok, rated_partial, rated_miss=[...]"
            )
        else:
            meaning, where = rated
            settings |= {f"rated_{rating}": _list(some) for rating, some in meaning.items()}
            meanings = "; ".join(f"{rating}: {', '.join(some)}" for rating, some in meaning.items() if some)
            notes.append(f"ratings: {meanings} (if {where})")
    return settings, notes


def _distinct(cells: Sequence[Any]) -> list[str]:
    words = {str(cell).strip() for cell in cells if cell is not None}
    return sorted(words - {"", "none", "null", "None"})


def _facts(record: Record, simulator: Recorded) -> Iterator[str]:
    """Facts about a log: what was read, what was left out, and what a run on it shows."""
    turns = np.sort(simulator.count(0, np.arange(record.users, dtype=np.int32), record.weeks))
    middle = int(turns[len(turns) // 2])
    yield (
        f"{record.turns:,} turns of {record.users:,} users in {record.weeks:,} weeks from {record.first_day} on, "
        f"{middle:,} of a user in the middle"
    )
    yield f"left out: {'; '.join(left_out(record.left_out)) or 'no row'}"
    knows = record.knows
    yield "a run shows: how often skills would have answered, with which skill, and what they would have learned"
    if "answer" in knows:
        yield "  the stored answer beside the log's at each hit, and bounds on the share of wrong ones"
    if "intent" in knows:
        yield "  how often a stored answer had been given to another intent"
    if "satisfaction" in knows:
        yield "  ratings, where an arm gives the very answer of the log"
    money = [words for field, words in (("cost_usd", "money"), ("latency_ms", "waiting time")) if field in knows]
    if money:
        yield f"  {' and '.join(money)} by the log's own figures"
    yield "it does not show: whether an answer was right, and so no utility and no verdict"
    lacks = {"answer": "answers: a hit cannot be held against what was answered",
             "intent": "intents: what an answer had been given to is not known",
             "satisfaction": "ratings: nothing is learned from any"}  # fmt: skip
    yield from (f"  no {words}" for field, words in lacks.items() if field not in knows)
    if middle < _FEW:
        yield f"  growth: with {middle:,} turns a user has hardly time to teach a skill"


def _quoted(text: str) -> str:
    """As a value of an override."""
    if _PLAIN.fullmatch(text) and not text[0].isdigit():
        return text
    escaped = re.sub(r'(\\*)"', lambda match: match[1] * 2 + '\\"', text)
    return f'"{escaped}"'


def _mapping(columns: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{field}: {_quoted(column)}' for field, column in columns.items())}}}"


def _list(words: Sequence[str]) -> str:
    return f"[{', '.join(json.dumps(word, ensure_ascii=False) for word in words)}]"
