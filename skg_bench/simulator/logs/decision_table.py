"""Logged decisions in a table, block by block: numbers, users and lists of its columns.

A Parquet file is never read whole. No row is left out: what cannot be used is refused with its row.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.core.draws import fold
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import FAULTS, parquet_of
from skg_bench.core.grid import F64, I64, Bool
from skg_bench.simulator.logs.recorded_cells import number_of
from skg_bench.simulator.logs.recorded_csv import TEXT_TABLES, CsvFile
from skg_bench.simulator.logs.recorded_parquet import LARGEST_RATIO, text_leaves
from skg_bench.simulator.logs.recorded_rows import LeftOut, user_name
from skg_bench.simulator.logs.recorded_size import MOST_ROWS, log_size

DECISION_TABLES = (*TEXT_TABLES, ".parquet")
_BATCH = 65_536  # rows
_TRUTH = {"true": "1", "false": "0"}
_ROUNDING = 1e-6  # of a sum of probabilities
_DIFFERENT, _CHANCE = 30, -20.0  # rows that tell copies from chance, and its logarithm
_PARTS = 100  # times that a part is looked for
_LARGEST, _SMALLEST = 1e40, 1e-40  # numbers, and probabilities that are not 0: products of them stay finite


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Some rows of a table."""

    path: Path
    position: I64  # [n] line of a text file, the first is 1; else row, the first is 1
    cells: Mapping[str, pa.Array]  # by column

    def __len__(self) -> int:
        return len(self.position)

    def fault(self, row: int, column: str, what: str) -> UsageError:
        """The error about a cell."""
        value = self.cells[column][row].as_py()
        shown = "is empty" if value is None or value != value or value == "" else f"is {value!r}"
        return UsageError(f"{self.path}: row {self.position[row]}: {column} {shown[:100]}; {what}")

    def numbers(self, column: str, what: str) -> F64:
        """Values of a column `[n]`, NaN where it is empty. `what`: is needed, for an error.

        Raises UsageError for what is no number, or one that is too large.
        """
        values = _floats(self.cells[column])
        if values is None or (np.abs(values) > _LARGEST).any():
            words = enumerate(self.cells[column].to_pylist())
            bad = (row for row, word in words if not abs(_number(word)) <= _LARGEST and not _empty(word))
            raise self.fault(next(bad, 0), column, what)
        return values

    def chances(self, column: str, what: str, *, zero: bool = False) -> F64:
        """Probabilities `[n]`, of which none is empty. `zero`: may they be 0?

        Raises UsageError for what is none.
        """
        values = self.numbers(column, what)
        bad = ~((values >= 0 if zero else values >= _SMALLEST) & (values <= 1))
        if bad.any():
            raise self.fault(int(bad.argmax()), column, what)
        return values

    def candidates(self, column: str, action: str) -> "CandidateLists":
        """Lists of what could have been done, and the places of what was.

        Raises UsageError for what is no list, and a row whose action is not once in its list.
        """
        lists = self.cells[column]
        if not is_list(lists):
            raise self.fault(0, column, "it holds the candidates of a row, and a list of them is needed")
        lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        if not lengths.all():
            raise self.fault(int((lengths == 0).argmax()), column, "it holds what could have been done, one at least")
        starts = np.append(0, np.cumsum(lengths)[:-1])
        taken = _plain_cells(self.cells[action]).take(pa.array(np.repeat(np.arange(len(self)), lengths)))
        try:
            same = pc.equal(_plain_cells(pc.list_flatten(lists)), taken).fill_null(False)
        except pa.ArrowException as error:
            kinds = f"{lists.type.value_type} and {taken.type}"
            raise UsageError(
                f"{self.path}: {column} and {action} are of other types: {kinds}; write them alike"
            ) from error
        mask: Bool = same.to_numpy(zero_copy_only=False)
        times = np.add.reduceat(mask.astype(np.int64), starts)
        if (times != 1).any():
            row = int((times != 1).argmax())
            raise self.fault(row, action, f"it is {times[row]} times among the {column} of its row, and once is needed")
        return CandidateLists(self, column, lengths, starts, np.flatnonzero(mask))


@dataclass(frozen=True, slots=True)
class CandidateLists:
    """Lists of n rows with N places in all."""

    block: TableBlock
    column: str
    lengths: I64  # [n]
    starts: I64  # [n] first place of each row
    place: I64  # [n] of what was done

    def values(self, column: str, what: str) -> F64:
        """Numbers of another column `[N]`, one for each candidate.

        Raises UsageError for lists of other lengths, what is no number, and one that is too large.
        """
        lists = self.block.cells[column]
        if not is_list(lists):
            raise self.block.fault(0, column, f"a list is needed, as {self.column} has lists: {what}")
        lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
        if (lengths != self.lengths).any():
            row = int((lengths != self.lengths).argmax())
            raise self.block.fault(
                row, column, f"its row has {self.lengths[row]} {self.column}; give a number for each"
            )
        values = _floats(pc.list_flatten(lists))
        if values is None or not (np.abs(values) <= _LARGEST).all():
            bad = 0 if values is None else int((~(np.abs(values) <= _LARGEST)).argmax())
            raise self.block.fault(int(np.searchsorted(self.starts, bad, "right")) - 1, column, what)
        return values

    def shares(self, column: str) -> F64:
        """A distribution over the candidates of each row `[N]`.

        Raises UsageError where numbers are no probabilities, or do not sum to 1.
        """
        values = self.values(column, "probabilities that sum to 1 are needed")
        total = np.add.reduceat(values, self.starts)
        bad = np.minimum.reduceat(values, self.starts) < 0
        bad |= np.abs(total - 1.0) > _ROUNDING
        if bad.any():
            row = int(bad.argmax())
            what = f"it sums to {total[row]:.6g}; probabilities of all {self.column} that sum to 1 are needed"
            raise self.block.fault(row, column, what)
        return values


class UserNumbers:
    """Numbers of users, in the order in which they first come."""

    def __init__(self) -> None:
        self._known = dict[Any, int]()

    def of_block(self, block: TableBlock, column: str) -> I64:
        """Numbers of the users of a block.

        Raises UsageError for a row without one.
        """
        cells = block.cells[column]
        try:
            coded = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
        except pa.ArrowException as error:
            raise block.fault(0, column, "a text or a number is needed, the same for all rows of a user") from error
        code = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        present, place = np.unique(code, return_inverse=True)
        words = (
            [
                None if i < 0 else word
                for i, word in zip(
                    present.tolist(), coded.dictionary.take(pa.array(np.maximum(present, 0))).to_pylist(), strict=True
                )
            ]
            if len(coded.dictionary)
            else [None]
        )
        if any(map(_empty, words)):
            empty = next(i for i, word in enumerate(words) if _empty(word))
            raise block.fault(int((place == empty).argmax()), column, "each row needs a user; or map no user at all")
        names = map(user_name, words)
        return np.array([self._known.setdefault(name, len(self._known)) for name in names], np.int64)[place]


class CopiedRows:
    """Finds a table in which all rows stand several times, as in a log that was exported twice."""

    def __init__(self) -> None:
        self._rows = list[I64]()
        self._count = 0

    def add(self, *columns: F64 | I64) -> None:
        """The next rows, by all that is read of them `[n]` each; no more are kept than a text table may have."""
        self._count += len(columns[0])
        if self._count > MOST_ROWS:
            self._rows.clear()
            return
        bits = (np.ascontiguousarray(each, np.float64).view(np.uint64) for each in columns)
        self._rows.append(reduce(fold, bits, np.zeros(len(columns[0]), np.uint64)).view(np.int64))

    def check(self, path: Path) -> None:
        """Raises UsageError for a table in which each row stands as often as others, more than once; a part of it, in
        its order, again and again; or each row again and again; where chance makes no such table.
        """
        if not self._rows:
            return
        rows = np.concatenate(self._rows)
        n, counts = len(rows), np.unique(rows, return_counts=True)[1]
        times = int(np.gcd.reduce(counts)) if len(counts) >= _DIFFERENT else 1
        alike = float(np.log(((counts / n) ** 2).sum()))  # of two rows that have nothing to do with one another
        for parts in range(2, _PARTS + 1) if times == 1 else ():
            again = n - n // parts
            if n % parts == 0 and again * alike < _CHANCE:
                beside = rows.reshape(-1, parts)
                if np.array_equal(rows[:again], rows[-again:]) or (beside == beside[:, :1]).all():
                    times = parts
        if times > 1:
            raise UsageError(
                f"{path}: its {n:,} rows are {n // times:,} that stand there {times} times, as in a log that was "
                "exported again into the same file; each row counts as a decision: leave the copies out"
            )


def is_list(cells: pa.Array) -> bool:
    """Does a column hold lists?"""
    kind = cells.type
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _plain_cells(cells: pa.Array) -> pa.Array:
    return cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells


def _floats(cells: pa.Array) -> F64 | None:
    """Numbers, NaN where a cell is empty; None where one is something else."""
    if pa.types.is_dictionary(cells.type):
        words = _floats(cells.dictionary)
        if words is None:
            return None
        values: F64 = np.append(words, np.nan)[cells.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
        return values
    if pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type):
        read = [(_number(word), word) for word in cells.to_pylist()]
        faulty = any(value != value and not _empty(word) for value, word in read)
        return None if faulty else np.array([value for value, _ in read], np.float64)
    kind = cells.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
            or pa.types.is_decimal(kind) or pa.types.is_null(kind)):  # fmt: skip
        return None
    floats: F64 = cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return floats


def _number(word: Any) -> float:
    """A number as a text; NaN: it is none, or empty."""
    return number_of(_TRUTH.get(str(word).strip().lower(), word))


def _empty(word: Any) -> bool:
    return word is None or word != word or (isinstance(word, str) and not word.strip())


@dataclass(frozen=True)
class DecisionTable:
    """A log with a decision a row. `blocks` gives columns of it, some rows at a time, and raises UsageError for rows
    that are torn.
    """

    path: Path
    names: tuple[str, ...]  # of its columns
    blocks: Callable[[Sequence[str]], Iterator[TableBlock]]


def decision_table(path: Path) -> DecisionTable:
    """Names of the columns of a table in CSV, TSV or Parquet.

    Raises UsageError for what is none.
    """
    if path.suffix not in DECISION_TABLES:
        raise UsageError(f"{path}: give a run folder, or a table whose name ends in {', '.join(DECISION_TABLES)}")
    size = log_size(path)
    if path.suffix == ".parquet":
        if size.rows > LARGEST_RATIO * size.size:
            raise UsageError(f"{path} has {size.size:,} bytes and claims {size.rows:,} rows; that is no log")
        with parquet_of(path) as file:
            names = tuple(file.schema_arrow.names)
    else:
        if size.rows > MOST_ROWS:
            raise UsageError(
                f"{path} has {size.rows:,} rows; a text table of {MOST_ROWS:,} is read: write it as Parquet"
            )
        names = tuple(CsvFile.open(path, [], None, None).dialect.heading)
    if again := next((name for i, name in enumerate(names) if name in names[:i]), None):
        raise UsageError(f"{path} has the column {again!r} twice; leave one of them")
    return DecisionTable(path, names, partial(_parquet_blocks if path.suffix == ".parquet" else _text_blocks, path))


def _parquet_blocks(path: Path, columns: Sequence[str]) -> Iterator[TableBlock]:
    row = 1
    try:
        with parquet_of(path) as file:
            texts = text_leaves(path, file, columns, LARGEST_RATIO * path.stat().st_size)
        with parquet_of(path, read_dictionary=texts, page_checksum_verification=True) as file:
            for batch in file.iter_batches(_BATCH, columns=list(columns)):
                position = np.arange(row, row + batch.num_rows)
                row += batch.num_rows
                yield TableBlock(path, position, {name: batch[name] for name in columns})
    except (pa.ArrowException, OSError, *FAULTS) as error:
        raise UsageError(f"{path} is torn or no Parquet file ({str(error).partition(chr(10))[0]})") from error


def _text_blocks(path: Path, columns: Sequence[str]) -> Iterator[TableBlock]:
    out = LeftOut()
    read = CsvFile.open(path, list(columns), None, None).columns({name: name for name in columns}, out)
    for why, entry in out.found.items():
        raise UsageError(f"{path}: row {entry['first'][0]} is torn: {why}; {entry['rows']:,} rows are")
    yield TableBlock(path, read.position, {name: column.combine_chunks() for name, column in read.cells.items()})
