"""Rows of a Parquet file, which take no more memory than the file's size lets one expect.

A text that stands in a file once and is named by many rows is one text in memory too; a file that unpacks to much more
than it holds is refused before it is read.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import FAULTS, parquet_of
from skg_bench.simulator.logs.recorded_size import KEY, PLAIN

if TYPE_CHECKING:
    import pyarrow.parquet as pq

UNREADABLE = object()  # stands for a cell of a type that no text, number or time is
_UNPACKED = 2**28  # bytes that a file may unpack to, however small it is
LARGEST_RATIO = 100  # above that: so many bytes for each byte of the file; texts reach 5 to 20


def parquet_rows(
    path: Path, wanted: Callable[[Sequence[str]], Sequence[str]], most: int | None = None
) -> Iterator[dict[str, Any]]:
    """The rows, of the columns that are wanted among those that there are. `most`: values of a column that a person
    allows, however small the file is.

    Raises UsageError for a file that is torn, none, or unpacks to too much, and what `wanted` raises.
    """
    try:
        with parquet_of(path) as file:
            columns = wanted(file.schema_arrow.names)
            leaves = text_leaves(path, file, columns, most or 0)
        with parquet_of(path, read_dictionary=leaves, page_checksum_verification=True) as file:
            for batch in file.iter_batches(columns=columns):
                cells = {name: _values(batch[name]) for name in columns}
                for i in range(batch.num_rows):
                    yield {name: cells[name][i] for name in columns}
    except (pa.ArrowException, OSError, *FAULTS) as error:
        raise UsageError(f"{path} is torn or no Parquet file ({str(error).partition(chr(10))[0]})") from error


def text_leaves(path: Path, file: "pq.ParquetFile", columns: Sequence[str], allowed: int) -> list[str]:
    """The texts among the columns, those within lists and records too.

    Raises UsageError where the columns unpack to too much, and what pyarrow does of a file that is torn.
    """
    size, unpacked, values = path.stat().st_size, 0, dict[str, int]()
    texts, most_unpacked = set[str](), max(_UNPACKED, LARGEST_RATIO * size)
    schema = file.metadata.schema
    leaves = {i: schema.column(i).path for i in range(len(schema))}
    chosen = {i: name for i, name in leaves.items() if name.partition(".")[0] in columns or name in columns}
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        if group.total_byte_size <= most_unpacked:  # a reader raises what ends the process in `column` (pyarrow 26)
            next(file.iter_batches(1, [number], list(columns)), None)
        for i, name in chosen.items():
            column = group.column(i)
            unpacked += column.total_uncompressed_size
            values[name] = values.get(name, 0) + column.num_values
            texts |= {name} if column.physical_type == "BYTE_ARRAY" else set()
    if unpacked > most_unpacked:
        raise UsageError(
            f"{path} has {size:,} bytes and unpacks to {unpacked:,}; at most {LARGEST_RATIO} times its size is read: "
            "write it again without what is repeated in it"
        )
    if (most := max(values.values(), default=0)) > max(PLAIN, size, allowed):
        raise UsageError(
            f"{path} has {size:,} bytes and claims {most:,} values of a column; at most one a byte is read. If that is "
            f"right, raise the limit: {KEY}={most}"
        )
    return sorted(texts)


def _values(array: Any) -> list[Any]:
    """Python's values of an array; equal texts of a dictionary are one."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        words = _values(array.dictionary)
        return [None if i is None else words[i] for i in array.indices.to_pylist()]
    if pa.types.is_struct(kind):
        children = {kind.field(i).name: _values(child) for i, child in enumerate(array.flatten())}
        present = array.is_valid().to_pylist()
        return [
            {name: child[i] for name, child in children.items()} if whole else None for i, whole in enumerate(present)
        ]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner, lists, start = _values(array.flatten()), list[Any](), 0
        for length in pc.list_value_length(array).to_pylist():
            lists.append(None if length is None else inner[start : start + length])
            start += length or 0
        return lists
    if pa.types.is_nested(kind):
        return [UNREADABLE] * len(array)
    try:
        values: list[Any] = array.to_pylist()
    except FAULTS:
        values = [_value(scalar) for scalar in array]
    return values


def _value(scalar: Any) -> Any:
    """A time beyond what Python knows, or a text that is none, costs its row alone."""
    try:
        return scalar.as_py()
    except FAULTS:
        return UNREADABLE
