"""Rows of corpora as they are published: a message and its label each.

Read are tables (CSV, TSV, JSON lines, Parquet) such as BANKING77's `text,category`; a folder with a table for each
split; a folder of `seq.in` and `label`, a line a message, or of such folders, as HWU64 is given out; and data sets that
the `datasets` library reads.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pj

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import bytes_of, text_of
from skg_bench.simulator.logs.dataset_rows import DatasetSplit, chosen_split, is_dataset
from skg_bench.simulator.logs.recorded_csv import TEXT_TABLES, CsvFile, native_bytes
from skg_bench.simulator.logs.recorded_guess import first_rows
from skg_bench.simulator.logs.recorded_parquet import parquet_rows
from skg_bench.simulator.logs.recorded_rows import LOG_SUFFIXES, Cells, LeftOut, check_mapped

MESSAGE_COLUMNS = ("text", "utterance", "utt", "sentence", "query", "message")  # usual names of the column of messages
LABELS = ("label_text", "category", "intent", "label", "labels")  # and of that of intents
_HWU64 = ("answer", ("scenario", "intent"))  # HWU64's table of all annotations: both make the intent
_LINES = ("seq.in", "label")
_USUAL = "test"  # the split where there are several: as large as people will say in a run, and nothing was tuned on it
_NAME = "simulator.corpus"

Read = Callable[[LeftOut], Iterator[tuple[int, str, str]]]


@dataclass(frozen=True)
class Columns:
    """Names of columns; None: those that are usual."""

    text: str | None
    labels: Sequence[str] | None

    def known(self, have: Sequence[str]) -> bool:
        """Is it clear which columns of a table hold what?"""
        try:
            self.of(have, "")
        except UsageError:
            return False
        return True

    def of(self, have: Sequence[str], title: str) -> tuple[str, Sequence[str]]:
        """The columns of messages and of labels among those of a table.

        Raises UsageError for one that is absent, or is not known by its name.
        """
        if self.text is None and self.labels is None and {_HWU64[0], *_HWU64[1]} <= set(have):
            return _HWU64
        text = self.text or next((name for name in MESSAGE_COLUMNS if name in have), None)
        labels = self.labels or [name for name in LABELS if name in have and name != text][:1]
        if text is None or text not in have or not labels or not set(labels) <= set(have):
            raise UsageError(
                f"{title} has the columns {', '.join(have) or 'none'}; which holds messages, and which labels? Say "
                f"{_NAME}.text=COLUMN {_NAME}.label=COLUMN (or [COLUMN, COLUMN], joined)"
            )
        return text, labels


@dataclass(frozen=True)
class LabelledRows:
    """Table that was opened: its title, and position, message and label of each row; torn rows are counted."""

    title: str
    read: Read


def opened_rows(path: str, subset: str | None, split: str | None, columns: Columns) -> LabelledRows:
    """The rows of a file, of a split of a folder, or of a data set.

    Raises UsageError for what is not there or cannot be read, and for a split or column that is not there.
    """
    place = Path(path)
    if is_dataset(path):
        rows = DatasetSplit(path, subset, split, _NAME, _USUAL)
        return LabelledRows(rows.title, lambda _: _labelled(rows.rows(), columns, rows.title))
    if subset is not None:
        raise UsageError(f"{_NAME}.subset={subset} is of a data set (hf:NAME), and {path} is none")
    if not place.exists():
        raise UsageError(f"{_NAME}.path={path} does not exist; for a data set of the hub: {_NAME}.path=hf:{path}")
    splits = _splits(place)
    if not splits:
        raise UsageError(
            f"{_NAME}.path={path} is no corpus: a file ends in {', '.join(LOG_SUFFIXES)}; a folder holds "
            f"{_LINES[0]} and {_LINES[1]}, or such a folder or a table for each split"
        )
    if place in splits.values() and split is not None:
        raise UsageError(f"{_NAME}.split={split}; {path} is one split, leave it out: {_NAME}.split=null")
    file = splits[chosen_split(list(splits), split, f"{_NAME}.split", path, _USUAL)]
    title = file.name if file == place else f"{place.name}/{file.relative_to(place)}"
    return LabelledRows(title, lambda out: _pairs(file, out) if file.is_dir() else _table(file, columns, title, out))


def heading(path: str) -> list[str] | None:
    """Names of the columns of a corpus, or of what may be one; None: neither table, nor folder, nor data set.

    Raises UsageError for what cannot be read.
    """
    if is_dataset(path):
        rows: Iterator[tuple[int, Cells]] = DatasetSplit(path, None, None, _NAME, _USUAL).rows()
    else:
        splits = _splits(Path(path))
        if not splits:
            return None
        file = splits.get(_USUAL) or next(iter(splits.values()))
        if file.is_dir():
            return ["text", "label"]
        if file.suffix not in TEXT_TABLES:
            return list(first_rows(file))
        rows = _cells(file, LeftOut())
    return list(next(rows, (0, {}))[1])


def _splits(path: Path) -> dict[str, Path]:
    """Splits of a folder, by name; of a file, itself."""
    if not path.is_dir():
        return {path.stem: path} if path.is_file() and path.suffix in LOG_SUFFIXES else {}
    if _has_lines(path):
        return {path.name: path}
    inside = sorted(path.iterdir())
    return {p.stem: p for p in inside if (p.is_file() and p.suffix in LOG_SUFFIXES) or (p.is_dir() and _has_lines(p))}


def _has_lines(folder: Path) -> bool:
    return all((folder / name).is_file() for name in _LINES)


def _pairs(folder: Path, _: LeftOut) -> Iterator[tuple[int, str, str]]:
    texts, labels = (_text(folder / name).removesuffix("\n").split("\n") for name in _LINES)
    if len(texts) != len(labels):
        raise UsageError(
            f"{folder}: {_LINES[0]} has {len(texts):,} lines and {_LINES[1]} {len(labels):,}; which belongs to which "
            "is not known: get both again"
        )
    for position, (text, label) in enumerate(zip(texts, labels, strict=True), 1):
        yield position, text.strip(), label.strip()


def _table(file: Path, columns: Columns, title: str, out: LeftOut) -> Iterator[tuple[int, str, str]]:
    return _labelled(_cells(file, out), columns, title)


def _cells(file: Path, out: LeftOut) -> Iterator[tuple[int, Cells]]:
    return _separated(file, out) if file.suffix in TEXT_TABLES else _arrow(file)


def _labelled(rows: Iterator[tuple[int, Cells]], columns: Columns, title: str) -> Iterator[tuple[int, str, str]]:
    names: tuple[str, Sequence[str]] | None = None
    for position, cells in rows:
        names = names or columns.of(list(cells), title)
        text, labels = _word(cells[names[0]]), [_word(cells[name]) for name in names[1]]
        yield position, text, "_".join(labels) if all(labels) else ""


def _word(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _separated(file: Path, out: LeftOut) -> Iterator[tuple[int, Cells]]:
    """Rows by their lines; letters and separator are guessed as for logs."""
    table = CsvFile.open(file, [*MESSAGE_COLUMNS, *LABELS], None, None)
    rows = table.columns({name: name for name in table.dialect.heading}, out)
    cells = [column.cast(pa.string()).to_pylist() for column in rows.cells.values()]
    for position, *texts in zip(rows.position.tolist(), *cells, strict=True):
        yield position, dict(zip(rows.cells, texts, strict=True))


def _arrow(file: Path) -> Iterator[tuple[int, Cells]]:
    def wanted(names: Sequence[str]) -> Sequence[str]:
        check_mapped(file, {name: name for name in names}, names)
        return names

    try:
        if file.suffix == ".parquet":
            yield from enumerate(parquet_rows(file, wanted), 1)
            return
        content = bytes_of(file)
        table = pj.read_json(pa.BufferReader(native_bytes(content)), pj.ReadOptions(use_threads=False))
    except (pa.ArrowInvalid, OSError) as error:
        raise UsageError(f"{file} is torn or no {file.suffix[1:]} file ({' '.join(str(error).split())})") from error
    yield from enumerate(table.to_pylist(), 1)


def _text(file: Path) -> str:
    return text_of(file).removeprefix("\ufeff")
