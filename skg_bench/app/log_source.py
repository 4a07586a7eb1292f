"""Logs as they lie somewhere: which reader takes what is named, and how it is written.

`skg-bench run LOG` and `skg-bench data check LOG` find the same: a table of turns, dialogues of SGD or USS, a folder as
agentropy keeps one, a data set of the `datasets` library, or a labelled corpus.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from skg_bench.app.corpus_check import is_labelled_corpus
from skg_bench.app.overrides import override_value, parse
from skg_bench.core.errors import UsageError
from skg_bench.core.text import plural
from skg_bench.runfolder.manifest import MANIFEST
from skg_bench.simulator.logs import recorded_csv, recorded_guess
from skg_bench.simulator.logs.dataset_rows import PREFIX, DatasetSplit, holds_tables, is_dataset
from skg_bench.simulator.logs.recorded_cells import UNIX_YEARS, decimal_comma, numbers, time_format
from skg_bench.simulator.logs.recorded_csv import CsvFile
from skg_bench.simulator.logs.recorded_rows import LOG_SUFFIXES, REQUIRED, LeftOut
from skg_bench.simulator.logs.recorded_size import KEY, log_size
from skg_bench.skillbook.agentropy import SIGNALS

_NAMES = {"\t": "tab"}
_NUMBERS = ("propensity", "cost_usd", "latency_ms")
_COLUMNS = "simulator.columns."
_SAMPLE = 1000  # rows of a data set
_DIALOGUES = "dialogues_*.json"
_SGD_COLUMNS = {"dialogue_id", "turns"}  # of a data set of dialogues


Given = Mapping[str, Any]  # values of overrides by path
NamedColumns = Mapping[str, str | None]  # column by field, as overrides name them; None: the log has none


@dataclass(frozen=True)
class LogTable:
    """A file as it is found: some rows of each column, and a reader of whole columns."""

    written: str  # in words
    settings: Mapping[str, str]  # of the simulator, by key, that say how it is written
    sample: recorded_guess.Sample
    file: CsvFile | None = None  # None: no text table; its rows stand for all

    @property
    def lack(self) -> str:
        """Fault of a log without a row to guess from, in words; empty: it has some."""
        if any(len(cells) for cells in self.sample.values()):
            return ""
        if not self.file:
            return "has no rows" if self.sample else "is empty, or none of its first lines is a JSON object"
        if not self.file.content.strip():
            return "is empty"
        if not self.sample:
            return "begins with an empty line: the first has to name the columns"
        torn = LeftOut()
        self.file.line_by_line({}, torn)
        return "has no row with as many fields as its heading" if torn.rows else "has a heading and no rows"

    def words(self, column: str) -> list[Any]:
        """All cells of a column."""
        if self.file is None:
            return list(self.sample[column])
        (cells,) = self.file.columns({"time": column}, LeftOut()).cells.values()
        texts: list[Any] = cells.to_pylist()
        return texts


@dataclass(frozen=True)
class LogSource:
    """A log, or a labelled corpus: who reads it, and a table as it is found."""

    path: str
    simulator: str
    written: str  # how it is written, in words
    table: LogTable | None = None  # None: of another form
    named: NamedColumns = field(default_factory=dict)

    @property
    def guesses(self) -> Mapping[str, recorded_guess.ColumnGuess]:
        """Columns of a table, named or guessed, by field."""
        return {} if self.table is None else recorded_guess.mapping(self.table.sample, self.named)

    def overrides(self, texts: Sequence[str]) -> tuple[list[str], list[str]]:
        """Overrides that read it, with those that were given at the end, and sentences on what they take for granted.

        Raises UsageError where a column that every log needs is neither found nor given, and where a guess would be a
        toss of a coin.
        """
        key = "simulator.corpus.path" if self.simulator == "labelled" else "simulator.path"
        start = [f"simulator={self.simulator}", f"{key}={override_value(self.path)}"]
        if self.table is None:
            return [*start, *texts], []
        if lack := self.table.lack:
            raise UsageError(f"{self.path} {lack}; a log has names of columns, and a row for each turn")
        given, columns = _given(texts), {field: guess.column for field, guess in self.guesses.items()}
        for required in REQUIRED:
            if required not in columns and required not in self.named:
                rest = {name: cells for name, cells in self.table.sample.items() if name not in columns.values()}
                raise UsageError(_absent(self.path, required, self.table.sample, rest))
        settings, notes = _settings(self.table, columns, given, self.path)
        written = [f"simulator.{key}={value}" for key, value in settings.items()]
        return [*start, f"simulator.columns={override_value(columns)}", *written, *texts], notes


def is_log(word: str) -> bool:
    """Is a word of a command line a log, rather than an override?"""
    return "=" not in word and (word.startswith(PREFIX) or Path(word).suffix in LOG_SUFFIXES or Path(word).exists())


def log_source(path: str, texts: Sequence[str]) -> LogSource:
    """Reader of what lies at `path`. `texts`: overrides that say how it is written, where a guess is wrong.

    Raises UsageError for what no reader takes, and a file that cannot be read.
    """
    given, where = _given(texts), Path(path)
    presence = where.exists()  # raises OSError in a folder that is closed
    if (where / MANIFEST).is_file():
        raise UsageError(
            f"{path} is a run, and no log: the command that made it goes on with it, and `skg-bench report {path}` "
            "writes its page again"
        )
    if "simulator" in given:
        raise UsageError(f"{path} and simulator={given['simulator']}: give a log, or a simulator and simulator.path")
    for name in ("simulator.path", "simulator.corpus.path"):
        if given.get(name, path) != path:
            raise UsageError(f"{path} and {name}={given[name]}: a run replays one log; give one of them")
    if not any(name.startswith("simulator.") for name in given) and is_labelled_corpus(path):
        return LogSource(path, "labelled", "a labelled corpus")
    kind = _published(where)
    if is_dataset(path) or (kind is None and holds_tables(where)):
        return _of_dataset(path, given)
    if kind is not None:
        return LogSource(path, kind, _FORMS[kind])
    if not where.is_file():
        missing = "is a folder without a log" if presence else "is not there"
        raise UsageError(f"{path} {missing}; a log is {_READ}")
    if where.suffix not in LOG_SUFFIXES:
        raise UsageError(f"{path}: its name must end in {', '.join(LOG_SUFFIXES)}; a log is {_READ}")
    log_size(where).check(_most(given))
    table = _table(where, given)
    return LogSource(path, "recorded", table.written, table, _named(given))


def _given(texts: Sequence[str]) -> Given:
    return {override.path: override.value for override in parse(texts)}


_FORMS = {
    "sgd": "dialogues in SGD's form, without users and times",
    "uss": "dialogues of USS, with ratings, without users and times",
    "agentropy": "what agentropy keeps of users: skills, vectors, signals",
}
_READ = (
    f"a table ({', '.join(LOG_SUFFIXES)}), a folder with {_DIALOGUES} (SGD) or {SIGNALS} (agentropy), a text of USS, a "
    "folder of the datasets library, or hf:NAME"
)


def _published(path: Path) -> str | None:
    """Simulator of a published form; None: it has none."""
    if path.is_dir():
        if any(path.glob(_DIALOGUES)):
            return "sgd"
        return "agentropy" if (path / SIGNALS).is_file() or any(path.glob(f"*/{SIGNALS}")) else None
    if path.match(_DIALOGUES):
        return "sgd"
    return "uss" if path.is_file() and path.suffix == ".txt" else None


def _of_dataset(path: str, given: Given) -> LogSource:
    split = DatasetSplit(path, given.get("simulator.subset"), given.get("simulator.split"), "simulator")
    rows = [row for _, row in islice(split.rows(), _SAMPLE)]
    sample = {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
    written = f"data set {split.title} with the columns {', '.join(sample)}"
    if set(sample) >= _SGD_COLUMNS:
        return LogSource(path, "sgd", f"{written}: {_FORMS['sgd']}")
    return LogSource(path, "recorded", written, LogTable(written, {}, sample), _named(given))


def _named(given: Given) -> NamedColumns:
    """Columns that overrides name.

    Raises UsageError for one that is to be two of user, time and message.
    """
    columns = given.get("simulator.columns")
    named = dict(columns) if isinstance(columns, Mapping) else {}
    named |= {path.removeprefix(_COLUMNS): value for path, value in given.items() if path.startswith(_COLUMNS)}
    for column in named.values():
        fields = [field for field in REQUIRED if column is not None and named.get(field) == column]
        if len(fields) > 1:
            raise UsageError(
                f"simulator.columns: {column!r} is named as {' and as '.join(fields)}; a column holds one of them"
            )
    return {field: None if column is None else str(column) for field, column in named.items()}


def _absent(path: str, field: str, sample: recorded_guess.Sample, rest: recorded_guess.Sample) -> str:
    """Error with the commands that go on; `rest`: columns that are no other field."""
    key = f"simulator.columns.{field}"
    texts = [name for name, cells in rest.items() if field == "message" and recorded_guess.holds_texts(cells)]
    if len(texts) > 1:
        return f"{path}: {' and '.join(texts)} hold texts, and none is named as a message is; say which: {key}=COLUMN"
    odd = recorded_guess.unreadable_time(rest) if field == "time" else ""
    why = f", as {odd} cannot be read as one" if odd else ""
    text = f"{path}: no column looks like the {field}{why}; it has {', '.join(sample)}; say which: {key}=COLUMN"
    without = {"user": "each row goes to a pseudo-user", "time": "rows come a day apart"}
    text += f"; or {key}=null, and {without[field]}" if field in without else ""
    if field == "time":
        text += f". Times are dates, such as 2026-03-01 10:00, or Unix times of {UNIX_YEARS}; days that a spreadsheet "
        text += "program counts, such as 46082.5, are none: give the column a format of dates, and export it again"
    return text


def most_rows(texts: Sequence[str]) -> int | None:
    """Rows that overrides allow to be read."""
    return _most(_given(texts))


def _most(given: Given) -> int | None:
    """Rows that may be read; what is no number is refused where the command is composed."""
    most = given.get(KEY)
    return most if isinstance(most, int) and most > 0 else None


def _table(path: Path, given: Given) -> LogTable:
    if path.suffix not in recorded_csv.TEXT_TABLES:
        sample = recorded_guess.first_rows(path)
        return LogTable(plural(len(sample), "column"), {}, sample)
    encoding, separator = given.get("simulator.encoding"), given.get("simulator.separator")
    file = CsvFile.open(path, [], encoding, separator, most=_most(given))
    dialect = file.dialect
    separator = _NAMES.get(dialect.separator, dialect.separator)
    written = f"{plural(len(dialect.heading), 'column')}, separated by {separator}, in {dialect.encoding}"
    settings = {"separator": override_value(separator), "encoding": dialect.encoding}
    return LogTable(written, {k: v for k, v in settings.items() if f"simulator.{k}" not in given}, file.sample(), file)


def _settings(table: LogTable, columns: dict[str, str], given: Given, name: str) -> tuple[dict[str, str], list[str]]:
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
        settings["decimal"] = override_value("," if comma else ".")
        notes.append(f"numbers: decimal {'comma' if comma else 'point'}")
    if "latency_ms" in columns and "simulator.latency_unit" not in given:
        waits = [None if word is None else str(word) for word in table.words(columns["latency_ms"])]
        values = numbers(waits, given.get("simulator.decimal", "," if comma else "."), "waits", "simulator.decimal")
        unit = recorded_guess.wait_unit(columns["latency_ms"], values[~np.isnan(values)].tolist())
        if not unit:
            raise UsageError(
                f"{name}: waits in {columns['latency_ms']!r}, at most {np.nanmax(values):g}, could be seconds or "
                "milliseconds; say simulator.latency_unit=s or simulator.latency_unit=ms"
            )
        settings["latency_unit"] = unit
        notes.append(
            f"waits: taken for {'seconds' if unit == 's' else 'milliseconds'}; else simulator.latency_unit=ms|s"
        )
    if "satisfaction" in columns and not any(path.startswith("simulator.rated_") for path in given):
        words = _distinct(table.words(columns["satisfaction"]))
        rated = recorded_guess.rating_words(words)
        if rated is None:
            del columns["satisfaction"]
            notes.append(
                f"ratings are left out, as {', '.join(map(repr, words[:10]))} say nothing of themselves; give "
                "simulator.columns.satisfaction and simulator.rated_ok, rated_partial, rated_miss=[...]"
            )
        elif doubt := recorded_guess.rating_doubt(columns["satisfaction"], words):
            raise UsageError(
                f"{name}: ratings in {columns['satisfaction']!r}, such as {', '.join(words[:10])}, {doubt}; say what "
                "they mean: simulator.rated_ok=[...] simulator.rated_partial=[...] simulator.rated_miss=[...]; or "
                "leave out the column: simulator.columns.satisfaction=null"
            )
        else:
            meaning, where = rated
            settings |= {f"rated_{rating}": override_value(some) for rating, some in meaning.items()}
            meanings = "; ".join(f"{rating}: {', '.join(some)}" for rating, some in meaning.items() if some)
            notes.append(f"ratings: {meanings} (if {where})")
    return settings, notes


def _distinct(cells: Sequence[Any]) -> list[str]:
    words = {str(cell).strip() for cell in cells if cell is not None}
    return sorted(words - {"", "none", "null", "None"})
