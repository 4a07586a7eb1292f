"""Shards, the files of a run's logs: which users each holds, and how it says that it is whole and whose it is.

Shard k of an arm holds users 256 k to 256 k + 255, by user and turn. In the footer of its Parquet file stand a digest
of the whole file, and a label: run, log, arm, k, number of rows and, in the shard of the turns, rows and digest of the
same users' other logs. The shard of the turns is written last: where it is, the others are.
"""

import hashlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import FAULTS, open_file
from skg_bench.core.temporary import replacing

LogName = Literal["turns", "updates", "feedback", "learning"]
LOGS: tuple[LogName, ...] = ("turns", "updates", "feedback", "learning")
IN_ORDER: tuple[LogName, ...] = ("updates", "feedback", "learning", "turns")  # in which they are written
SHARD_USERS = 256  # of one shard
AGAIN = "run the same command again: it makes this file again, and leaves the others as they are"

_DIGEST, _LABEL = b"skg_bench.digest", b"skg_bench.shard"  # keys in the footer
_BLOCK = 2**20  # bytes that are digested at once
_LONGEST_FOOTER = 2**26  # bytes: a thousand times what a shard has
_UNKNOWN = b"0" * 64  # stands in the place of the digest while the file is digested
_PRUNED = ["user", "turn", "time"]  # other tools leave out shards by what their smallest and largest values are


def count(users: int) -> int:
    """Number of shards of an arm with this number of users."""
    return -(-users // SHARD_USERS)


def users_of(shard: int, users: int) -> range:
    """The users of a shard, in a run with this number of users."""
    return range(shard * SHARD_USERS, min((shard + 1) * SHARD_USERS, users))


def path(folder: Path, log: LogName, arm: str, shard: int) -> Path:
    """The file of a shard in the folder of a run."""
    return folder / log / f"{arm}.{shard:07d}.parquet"


Digested = tuple[int, str]  # rows and digest of a shard


@dataclass(frozen=True)
class Label:
    """Label that a shard carries, and its digest (64 hex digits)."""

    run: str  # identity of the run
    log: LogName
    arm: str
    shard: int
    rows: int
    beside: Mapping[str, Digested]  # of turns: what there is of the other logs
    digest: str = ""


# --------------------------------------------------------------------------------------------------- writing


def write_shard(folder: Path, run: str, arm: str, shard: int, table: Callable[[LogName], pa.Table]) -> None:
    """The four logs of a shard's users, one after the other; rows may be in any order but that of a user's turn.

    Raises OSError where the folder is full, or gone: it is not made again, as the rest of the run would be elsewhere.
    """
    beside: dict[str, Digested] = {}
    for log in IN_ORDER:
        beside[log] = write_log(folder, Label(run, log, arm, shard, 0, beside if log == "turns" else {}), table(log))


def write_log(folder: Path, label: Label, table: pa.Table) -> Digested:
    """One log of a shard's users; for that of the turns, `label.beside` says what was written of the others."""
    table = canonical(table)
    with replacing(path(folder, label.log, label.arm, label.shard)) as file:
        digest = encode(table, replace(label, rows=len(table), beside=dict(label.beside)), file)
    return len(table), digest


def canonical(table: pa.Table) -> pa.Table:
    """The rows by user and turn, in one chunk, with dictionaries that depend on the rows alone: the words that are
    used, in order.
    """
    table = _in_order(table.unify_dictionaries().combine_chunks())
    columns = [_compact(c.combine_chunks()) if pa.types.is_dictionary(c.type) else c for c in table.columns]
    return pa.table(columns, schema=table.schema)


def _in_order(table: pa.Table) -> pa.Table:
    key = (table["user"].to_numpy().astype(np.int64) << 32) + table["turn"].to_numpy()  # turns may be below 0
    if bool(np.all(key[1:] >= key[:-1])):
        return table
    return table.take(pa.array(np.argsort(key, kind="stable"))).combine_chunks()


def _compact(column: pa.DictionaryArray | pa.ChunkedArray) -> pa.DictionaryArray:
    if isinstance(column, pa.ChunkedArray):  # of no rows
        column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    words, codes = column.dictionary, column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    mask = np.zeros(len(words) + 1, np.bool_)  # the last stands for null
    mask[codes] = True
    used = np.flatnonzero(mask[:-1])
    chosen = words.take(pa.array(used))
    order = pc.array_sort_indices(chosen).to_numpy()
    rank = np.full(len(words) + 1, -1, np.int32)
    rank[used[order]] = np.arange(len(used), dtype=np.int32)
    codes = rank[codes]
    none = codes < 0
    indices = pa.array(codes, mask=none) if none.any() else pa.array(codes)
    return pa.DictionaryArray.from_arrays(indices, chosen.take(pa.array(order)))


def encode(table: pa.Table, label: Label, file: BinaryIO) -> str:
    """Write the bytes of a shard to an empty file that can also be read, and give its digest."""
    words = [f.name for f in table.schema if pa.types.is_dictionary(f.type)]
    sink = _Digesting(file)
    with pq.ParquetWriter(
        sink, table.schema, compression="zstd", compression_level=1, use_dictionary=words, write_statistics=_PRUNED,
        write_page_checksum=True,
    ) as writer:  # fmt: skip
        writer.write_table(table)
        known = {name: getattr(label, name) for name in ("run", "log", "arm", "shard", "rows", "beside")}
        writer.add_key_value_metadata({_LABEL: json.dumps(known, ensure_ascii=False).encode(), _DIGEST: _UNKNOWN})
    digest = sink.digest.hexdigest()
    file.seek(_place(file))
    file.write(digest.encode())
    return digest


class _Digesting(io.RawIOBase):
    """Writes to a file what is written to it, and digests it."""

    def __init__(self, file: BinaryIO) -> None:
        self.digest, self._file = hashlib.sha256(), file

    def writable(self) -> bool:
        """Always true."""
        return True

    def write(self, data: Any) -> int:
        """All of `data`."""
        self.digest.update(data)
        return self._file.write(data)


def _place(file: BinaryIO) -> int:
    """Place of the digest: in the footer behind its key, in two bytes the kind and the length of what follows.

    Raises ValueError where there is none.
    """
    length = file.seek(max(file.seek(0, io.SEEK_END) - 8, 0))  # there stands the length of the footer, which ends there
    footer = file.seek(max(length - int.from_bytes(file.read(4), "little"), 0, length - _LONGEST_FOOTER))
    key = file.read().rfind(_DIGEST)
    if key < 0:
        raise ValueError("it has no digest")
    return footer + key + len(_DIGEST) + 2


# --------------------------------------------------------------------------------------------------- reading


def shard_label(file: Path) -> Label:
    """Label of a shard, once its bytes are found to be those that were written. They are read once in a
    process.

    Raises UsageError, which names the file, where they are not, and where it is not there.
    """
    try:
        stat = file.stat()
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} is missing; {AGAIN}") from error
    return _verified(file, (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns))


@cache
def _verified(file: Path, _stat: tuple[int, ...]) -> Label:
    try:
        file_to_read = open_file(file)
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"{file} cannot be read: {reason}; move away what stands there, and {AGAIN}") from error
    try:
        with file_to_read as opened:
            digest = _digest(opened, _place(opened))
            footer = pq.read_metadata(opened).metadata
        return Label(**json.loads(footer[_LABEL]), digest=digest)
    except (pa.ArrowException, OSError, *FAULTS) as error:
        reason = str(error).partition("\n")[0]  # pyarrow adds the whole schema
        raise UsageError(f"{file} is torn or was changed ({reason}); {AGAIN}") from error


def _digest(file: BinaryIO, place: int) -> str:
    """The digest that stands at `place`.

    Raises ValueError where it is not that of all other bytes.
    """
    sha256, left = hashlib.sha256(), place
    file.seek(0)
    while left and (part := file.read(min(left, _BLOCK))):
        sha256.update(part)
        left -= len(part)
    digest = file.read(len(_UNKNOWN))
    sha256.update(_UNKNOWN)
    while part := file.read(_BLOCK):
        sha256.update(part)
    if sha256.hexdigest() != digest.decode("ascii"):
        raise ValueError("its bytes are not those that were written")
    return sha256.hexdigest()


def belonging(folder: Path, run: str, log: LogName, arm: str, shard: int) -> Label:
    """The label of a shard that is whole and belongs to this place of this run; of other logs than turns, to the turns
    that lie beside it.

    Raises UsageError, which names the file.
    """
    file = path(folder, log, arm, shard)
    known = shard_label(file)
    if (known.run, known.log, known.arm, known.shard) != (run, log, arm, shard):
        other = "another run" if known.run != run else f"{known.log} of arm {known.arm!r}, shard {known.shard}"
        raise UsageError(f"{file} belongs to {other}; {AGAIN}")
    if log != "turns":
        turns = belonging(folder, run, "turns", arm, shard)
        if list(turns.beside.get(log, ())) != [known.rows, known.digest]:
            raise UsageError(f"{file} does not belong to the turns beside it; {AGAIN}")
    return known


def fault(folder: Path, run: str, arm: str, shard: int, digest: str | None = None) -> str:
    """Fault of the four logs of a shard; empty: none. `digest`: that of the turns, where it is known."""
    try:
        labels = [belonging(folder, run, log, arm, shard) for log in LOGS]
    except UsageError as error:
        return str(error)
    if digest is not None and labels[0].digest != digest:
        return f"{path(folder, 'turns', arm, shard)} is not the one that the run ended with; {AGAIN}"
    return ""
