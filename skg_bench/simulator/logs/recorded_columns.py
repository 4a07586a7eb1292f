"""The rows of a log as columns, however they were read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.core.foreign import LONGEST_TEXT
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.simulator.logs.recorded_rows import TURN_FIELDS, LeftOut, RecordedTurn, flaw, user_name

TEXT_FIELDS = tuple(name for name in TURN_FIELDS if name != "time")


@dataclass(frozen=True)
class LogColumns:
    """N rows."""

    position: I64  # line of a text file, the first is 1; row of a Parquet file, the first is 1; else a count
    cells: Mapping[str, pa.ChunkedArray]  # by field, words or their codes; the file's own values of `time`
    times: Sequence[Any] | None = None  # values of `time` that are no words
    delay: I64 | None = None  # seconds from an answer to its rating; None: none
    also: Sequence[Sequence[str]] | None = None  # intents that are active besides; None: none

    def __len__(self) -> int:
        return len(self.position)

    @staticmethod
    def of(read: Sequence[RecordedTurn], out: LeftOut) -> "LogColumns":
        """Columns of rows that were read one by one; those that cannot be turns are left out, and counted."""
        rows = list[RecordedTurn]()
        for row in read:
            if why := flaw(row):
                out.add(why, row.position)
            else:
                row.user = user_name(row.user)
                rows.append(row)
        cells = {name: pa.chunked_array([pa.array([_text(getattr(row, name)) for row in rows], pa.string())])
                 for name in TEXT_FIELDS}  # fmt: skip
        return LogColumns(
            np.array([row.position for row in rows], np.int64),
            {name: texts for name, texts in cells.items() if texts.null_count < len(rows)},
            [row.time for row in rows], np.array([row.delay for row in rows], np.int64),
            [row.also for row in rows] if any(row.also for row in rows) else None,
        )  # fmt: skip

    def turns(self) -> list[RecordedTurn]:
        """The rows of a table one by one."""
        cells = {name: column.cast(pa.string()).to_pylist() for name, column in self.cells.items()}
        if self.times is not None:
            cells["time"] = list(self.times)
        blank = {"user": None, "time": None}
        return [
            RecordedTurn(position, **{**blank, **dict(zip(cells, values, strict=True))})
            for position, *values in zip(self.position.tolist(), *cells.values(), strict=True)
        ]

    def blank(self, field: str) -> Bool:
        """Mask of rows without words."""
        if field not in self.cells:
            values = self.times or ()
            return np.array([_text(value) is None or not str(value).strip() for value in values], np.bool_)
        return self._empty(field).fill_null(True).to_numpy()  # type: ignore[no-any-return]

    def empty(self, field: str) -> Bool:
        """Mask of rows with a text that has no words; rows without a text are none of them."""
        if field not in self.cells:
            return np.zeros(len(self), np.bool_)
        return self._empty(field).fill_null(False).to_numpy()  # type: ignore[no-any-return]

    def _empty(self, field: str) -> pa.ChunkedArray:
        return pc.equal(pc.utf8_trim_whitespace(self.cells[field].cast(pa.string())), "")

    def too_long(self, field: str) -> Bool | None:
        """Mask of texts that are longer than any message; None: none is."""
        if field not in self.cells:
            return None
        texts = self.cells[field]
        if pa.types.is_string(texts.type) and (pc.max(pc.utf8_length(texts)).as_py() or 0) <= LONGEST_TEXT:
            return None  # without a dictionary of ids, which are all different
        column = _encoded(texts)
        over = pc.greater(pc.utf8_length(column.dictionary), LONGEST_TEXT).to_numpy(zero_copy_only=False)
        if not over.any():
            return None
        where: Bool = np.append(over, False)[column.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
        return where

    def same(self, field: str) -> I32:
        """A code for each text, in no order, -1: nothing; for columns in which hardly any two are the same."""
        if field not in self.cells:
            return np.full(len(self), -1, np.int32)
        code: I32 = _encoded(self.cells[field]).indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
        return np.where(self.blank(field), np.int32(-1), code)

    def coded(self, field: str, taken_for: Callable[[str], str | None] = str) -> tuple[tuple[str, ...], I32]:
        """Words of the rows, each once and in order, and the code of each row, -1: none."""
        if field not in self.cells:
            return (), np.full(len(self), -1, np.int32)
        return coded_texts(self.cells[field], taken_for)


def coded_texts(texts: pa.ChunkedArray, taken_for: Callable[[str], str | None] = str) -> tuple[tuple[str, ...], I32]:
    """Distinct texts in order, and the code of each, -1: nothing. `taken_for`: what a text says, None: nothing."""
    column = _encoded(texts)
    words = [taken_for(word) if word is not None and word.strip() else None for word in column.dictionary.to_pylist()]
    distinct = sorted({word for word in words if word is not None})
    rank = {word: i for i, word in enumerate(distinct)}
    code = np.array([-1 if word is None else rank[word] for word in words] + [-1], np.int32)
    return tuple(distinct), code[column.indices.fill_null(-1).to_numpy(zero_copy_only=False)]


def _encoded(texts: pa.ChunkedArray) -> pa.DictionaryArray:
    if pa.types.is_dictionary(texts.type):  # of some words: parts of many distinct ones are unified slowly
        return texts.unify_dictionaries().combine_chunks()
    return texts.combine_chunks().dictionary_encode()


def _text(value: Any) -> str | None:
    """As text; None where nothing is said."""
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return None
    return str(value)
