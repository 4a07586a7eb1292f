"""A log in a CSV or TSV file: what separates its fields, how its letters are encoded, and its columns.

Spreadsheets of one country write what those of another do not read, so both are guessed from the file unless they are
given. A file without torn rows is read by pyarrow; any other line by line, so that a torn row costs only itself.
"""

import codecs
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pyarrow_csv

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import bytes_of
from skg_bench.core.grid import I64
from skg_bench.simulator.logs.recorded_columns import LogColumns
from skg_bench.simulator.logs.recorded_rows import LeftOut, check_mapped
from skg_bench.simulator.logs.recorded_size import bytes_at_most

TEXT_TABLES = (".csv", ".tsv")
_SEPARATOR_NAMES = {"tab": "\t"}
SEPARATORS = (",", ";", "\t", "|")
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "cp1252")
RAGGED = "another number of fields than the heading has"
TORN = "a quote that is opened and not closed"
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_DIFFER = ("id", "time")  # fields of which hardly any two are the same
_BIG = 2**24  # characters in one cell: a conversation may be long
_BLOCK = 2**23  # bytes that are looked at or parsed at once
_SAMPLE = 2**16  # characters from which the separator is guessed
_SAMPLED = 100  # records of it
_DECLARED = "sep="  # how the first line of a file of Excel may begin; what follows is the separator


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a file is written."""

    encoding: str  # one of ENCODINGS
    separator: str
    heading: Sequence[str]  # names of the columns
    declared: bool  # the separator stands in a line before the heading


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A file and how it is written."""

    path: Path
    dialect: Dialect
    content: bytes  # in UTF-8, without a mark

    @classmethod
    def open(
        cls,
        path: Path,
        wanted: Sequence[str],
        encoding: str | None,
        separator: str | None,
        *,
        most: int | None = None,
    ) -> "CsvFile":
        """Guesses what is not given; `wanted`: columns that the heading is expected to have; `most`: rows that are
        read.

        Raises UsageError for a file that is too large for so many, and where its letters are none of the encoding.
        """
        raw = bytes_of(path, bytes_at_most(most))
        separator = _SEPARATOR_NAMES.get(separator or "", separator)
        if separator is not None and (len(separator) != 1 or not separator.isascii()):
            raise UsageError(f"simulator.separator={separator!r} must be one character, such as ;, or tab")
        if encoding is not None and encoding not in ENCODINGS:
            raise UsageError(f"simulator.encoding={encoding!r}, valid are {', '.join(ENCODINGS)}")
        encoding = encoding or _encoding(raw)
        content = raw.removeprefix(codecs.BOM_UTF8)
        try:
            if encoding.startswith("utf-8"):
                _validate(content)
            else:
                content = raw.decode(encoding).encode()
        except UnicodeError as error:
            raise UsageError(
                f"{path} is no text in {encoding} ({error}); name its encoding: simulator.encoding="
                f"{'|'.join(ENCODINGS)}"
            ) from error
        start = content[:_SAMPLE].decode("utf-8", "ignore")
        declared = start[: len(_DECLARED)].lower() == _DECLARED and start[len(_DECLARED) + 1 :][:1] in ("\r", "\n")
        if declared:
            separator = separator or start[len(_DECLARED)]
            start = start.partition("\n")[2]
        separator = separator or _separator(start, wanted)
        heading = next(csv.reader(io.StringIO(start, newline=""), delimiter=separator), [])
        return cls(path, Dialect(encoding, separator, tuple(heading), declared), content)

    def sample(self) -> dict[str, list[str | None]]:
        """The first rows of each column."""
        start = replace(self, content=self.content[: _SAMPLE * 4].rpartition(b"\n")[0] or self.content)
        at = {str(i): i for i in range(len(self.dialect.heading))}
        read = start.line_by_line(at, LeftOut()).cells
        return {name: read[str(i)].to_pylist() for i, name in enumerate(self.dialect.heading)}

    def columns(self, wanted: Mapping[str, str], out: LeftOut) -> LogColumns:
        """Columns that are wanted, by field. Rows that are torn are left out.

        Raises UsageError for a mapping that names a column that is absent, or there twice.
        """
        heading = self.dialect.heading
        check_mapped(self.path, wanted, heading)
        at = {name: heading.index(column) for name, column in wanted.items()}
        lines = self._lines()
        ends = None if lines is None else self._record_ends(lines)
        read = None if lines is None or ends is None else self._whole(at, lines, ends, out)
        return self.line_by_line(at, out) if read is None else read

    def _lines(self) -> I64 | None:
        """End of each line; None where some end in another way than others."""
        letters = np.frombuffer(self.content, np.uint8)
        ends = _places(letters, b"\n")
        returns = sum(np.count_nonzero(part == ord("\r")) for part in _blocks(letters))
        if returns and returns != np.count_nonzero(_letter(letters, ends - 1) == ord("\r")):
            return None
        return np.append(ends, len(letters)) if len(letters) and letters[-1] != ord("\n") else ends

    def _record_ends(self, lines: I64) -> I64 | None:
        """End of each record, which may have several lines; None where a quote neither opens nor closes a field,
        so that pyarrow and the csv module might not read the file in the same way.
        """
        letters = np.frombuffer(self.content, np.uint8)
        quotes = _places(letters, b'"')
        if not len(quotes):
            return lines
        around = np.frombuffer(f'{self.dialect.separator}\n\r"'.encode(), np.uint8)
        opened, closed = _letter(letters, quotes[::2] - 1), _letter(letters, quotes[1::2] + 1)
        if len(quotes) % 2 or not (np.isin(opened, around).all() and np.isin(closed, around).all()):
            return None
        ends: I64 = lines[np.searchsorted(quotes, lines) % 2 == 0]
        return ends

    def _whole(self, at: Mapping[str, int], lines: I64, ends: I64, out: LeftOut) -> LogColumns | None:
        """All at once; None where pyarrow cannot."""
        letters, dialect = np.frombuffer(self.content, np.uint8), self.dialect
        start = np.append(0, ends[:-1] + 1)[: len(ends)]
        line = 1 + np.searchsorted(lines, start)
        filled = (ends > start) & ~((ends == start + 1) & (_letter(letters, start) == ord("\r")))
        records = np.flatnonzero(filled)[1 + dialect.declared :]  # after the heading
        if not len(records):
            return None
        ragged: list[int] = []

        def skip(_row: Any) -> str:
            ragged.append(1)
            return "skip"

        names = [str(i) for i in range(len(dialect.heading))]
        words = pa.dictionary(pa.int32(), pa.string())
        types = {names[i]: pa.string() if field in _DIFFER else words for field, i in at.items()}
        try:
            table = pyarrow_csv.read_csv(
                pa.BufferReader(native_bytes(self.content).slice(int(start[records[0]]))),
                pyarrow_csv.ReadOptions(column_names=names, block_size=_BLOCK, use_threads=False),  # would hold `skip`
                pyarrow_csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True,
                                         invalid_row_handler=skip),
                pyarrow_csv.ConvertOptions(include_columns=list(types), column_types=types),
            )  # fmt: skip
        except pa.ArrowInvalid:  # a record is longer than a block
            return None
        torn = np.zeros(0, np.int64)
        if ragged:
            separators = _places(letters, dialect.separator.encode())
            separators = separators[np.searchsorted(_places(letters, b'"'), separators) % 2 == 0]
            fields = 1 + np.searchsorted(separators, ends[records]) - np.searchsorted(separators, start[records])
            whole = fields == len(dialect.heading)
            torn = records[~whole]
            if (np.searchsorted(lines, ends[torn]) >= line[torn]).any():
                return None  # of several lines: a quote may have taken other rows with it
            records = records[whole]
        if len(table) != len(records):
            return None
        if len(torn):
            out.add(RAGGED, *line[torn].tolist())
        return LogColumns(line[records], {name: table[names[i]] for name, i in at.items()})

    def line_by_line(self, at: Mapping[str, int], out: LeftOut) -> LogColumns:
        """The fields at these places of each row."""
        lines, cells = list[int](), {name: list[str]() for name in at}
        for line, record in self._records(out):
            lines.append(line)
            for name, i in at.items():
                cells[name].append(record[i])
        return LogColumns(
            np.array(lines, np.int64),
            {name: pa.chunked_array([pa.array(texts, pa.string())]) for name, texts in cells.items()},
        )

    def _records(self, out: LeftOut) -> Iterator[tuple[int, list[str]]]:
        """The line at which each record begins, and its fields. After one that is torn the next line begins another:
        an open quote does not take what follows with it.
        """
        csv.field_size_limit(_BIG)
        lines, width = list(io.StringIO(self.content.decode(), newline="")), len(self.dialect.heading)
        begin, end = int(self.dialect.declared), int(self.dialect.declared)

        def feed() -> Iterator[str]:
            nonlocal end
            while end < len(lines):
                end += 1
                yield lines[end - 1]

        def reader() -> Iterator[list[str]]:
            return csv.reader(feed(), delimiter=self.dialect.separator, strict=True)

        records, heading = reader(), True
        while (begin := end) < len(lines):
            try:
                record = next(records)
            except csv.Error:
                out.add(TORN, begin + 1)
                end, records = begin + 1, reader()
                continue
            if heading:
                heading = False
            elif len(record) == width:
                yield begin + 1, record
            elif record:
                out.add(RAGGED, begin + 1)
                if end > begin + 1:
                    end, records = begin + 1, reader()


def native_bytes(content: bytes) -> pa.Buffer:
    """The bytes for pyarrow, in place: a thread of its that would be the last to hold an object of Python's, while the
    process ends, would abort it. Whoever calls keeps `content`.
    """
    held = pa.py_buffer(content)
    return pa.foreign_buffer(held.address, held.size)


def _places(letters: np.ndarray, letter: bytes) -> I64:
    """Places of a letter of one byte."""
    parts = [_BLOCK * i + np.flatnonzero(part == ord(letter)) for i, part in enumerate(_blocks(letters))]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _blocks(letters: np.ndarray) -> Iterator[np.ndarray]:
    return (letters[begin : begin + _BLOCK] for begin in range(0, len(letters), _BLOCK))


def _letter(letters: np.ndarray, at: I64) -> np.ndarray:
    """The letters at these places; outside of the text, line breaks."""
    inside = (at >= 0) & (at < len(letters))
    return np.where(inside, letters[np.clip(at, 0, len(letters) - 1)], ord("\n"))


def _encoding(raw: bytes) -> str:
    for mark, encoding in _MARKS.items():
        if raw.startswith(mark):
            return encoding
    try:
        _validate(raw)
    except UnicodeDecodeError:
        return "cp1252"  # what spreadsheets write in Western Europe
    return "utf-8"


def _validate(raw: bytes) -> None:
    """Raises UnicodeDecodeError unless it is UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for begin in range(0, len(raw), _BLOCK):
        decoder.decode(raw[begin : begin + _BLOCK])
    decoder.decode(b"", final=True)


def _separator(start: str, wanted: Sequence[str]) -> str:
    """The one under which the heading has the columns that are wanted, and most records as many fields as it."""

    def fit(separator: str) -> tuple[int, float, int]:
        records = [r for r in islice(csv.reader(io.StringIO(start, newline=""), delimiter=separator), _SAMPLED) if r]
        if not records:
            return 0, 0.0, 0
        heading, *others = records
        alike = sum(len(record) == len(heading) for record in others)
        return sum(name in heading for name in wanted), alike / max(len(others), 1) * (len(heading) > 1), len(heading)

    return max(SEPARATORS, key=fit)
