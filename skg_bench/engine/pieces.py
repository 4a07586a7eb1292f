"""Cohorts that are done, of shards that are not: their logs, kept until all users of a shard are there.

A piece is a zip file of Arrow files, one for each arm and log, with a batch of rows for each shard. Zip keeps a
checksum of each, so that a torn piece is found; its users are then run again.
"""

import hashlib
import json
import shutil
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import FAULTS, open_file
from skg_bench.core.grid import I32
from skg_bench.core.temporary import replacing
from skg_bench.engine.checkpoint import checkpoint_rows
from skg_bench.engine.logbook import Logbook
from skg_bench.runfolder import shards
from skg_bench.runfolder.shards import LogName

FOLDER = "pieces"  # in the folder of a run
_ABOUT = "about.json"
_NAME_LENGTH, _HEADER = 26, 30  # of a zip entry's own header: where lengths of its name and extra field stand; its end
_CODEC = ipc.IpcWriteOptions(compression="lz4")
_BROKEN = (zipfile.BadZipFile, struct.error, EOFError, RuntimeError, pa.ArrowException, *FAULTS)


@dataclass(frozen=True)
class Piece:
    """The file of a cohort that is done."""

    file: Path
    arms: tuple[str, ...]
    users: I32  # ascending ids

    def table(self, arm: str, shard: int, log: LogName) -> pa.Table:
        """Rows of the cohort's users in a shard. Nothing else of the file is read."""
        with open_file(self.file) as file, zipfile.ZipFile(file) as archive:
            entry = archive.getinfo(_entry(self.arms.index(arm), log))
        with pa.memory_map(str(self.file)) as mapped:
            mapped.seek(entry.header_offset + _NAME_LENGTH)
            lengths = int.from_bytes(mapped.read(2), "little") + int.from_bytes(mapped.read(2), "little")
            mapped.seek(entry.header_offset + _HEADER + lengths)
            reader = ipc.open_file(pa.BufferReader(mapped.read_buffer(entry.file_size)))
        if not reader.num_record_batches:
            return reader.schema.empty_table()
        place = int(np.searchsorted(_shards_of(self.users), shard))
        return pa.Table.from_batches([reader.get_batch(place)])


def _entry(arm: int, log: LogName) -> str:
    return f"{arm}/{log}"


def _shards_of(users: I32) -> I32:
    """Numbers of the shards that hold these users, ascending."""
    return np.unique(users // shards.SHARD_USERS)


def name(run: str, arms: Sequence[str], users: I32) -> str:
    """The file name of what is kept of a cohort, without its ending."""
    return hashlib.sha256(json.dumps([run, list(arms), users.tolist()]).encode()).hexdigest()[:24]


def checkpoint(folder: Path, run: str, arms: Sequence[str], users: I32) -> Path:
    """File of the checkpoint of a cohort while it is at work."""
    return folder / FOLDER / f"{name(run, arms, users)}.checkpoint"


def begun(folder: Path, run: str) -> list[tuple[tuple[str, ...], I32]]:
    """Arms and users of the cohorts of a run that have a checkpoint."""
    heads = ((file, checkpoint_rows(file)) for file in sorted((folder / FOLDER).glob("*.checkpoint")))
    return [head for file, head in heads if head is not None and file == checkpoint(folder, run, *head)]


def write_piece(folder: Path, run: str, logs: Sequence[Logbook], users: I32) -> None:
    """A piece, whole or not at all."""
    arms = [log.arm for log in logs]
    path = folder / FOLDER / f"{name(run, arms, users)}.piece"
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(_ABOUT, json.dumps({"run": run, "arms": arms, "users": users.tolist()}))
        for arm, log in enumerate(logs):
            for kind in shards.IN_ORDER:
                archive.writestr(_entry(arm, kind), _buffer(by_shard(log.table(kind), users)))


def write_shards(folder: Path, run: str, logs: Sequence[Logbook], users: I32) -> None:
    """The shards of users `users`, who are all that they hold."""
    for log in logs:
        beside: dict[int, dict[str, shards.Digested]] = {shard: {} for shard in _shards_of(users).tolist()}
        for kind in shards.IN_ORDER:
            for shard, table in by_shard(log.table(kind), users).items():
                label = shards.Label(run, kind, log.arm, shard, 0, beside[shard] if kind == "turns" else {})
                beside[shard][kind] = shards.write_log(folder, label, table)
            del table  # a slice keeps all of this log, and the next one needs the room


def by_shard(table: pa.Table, users: I32) -> dict[int, pa.Table]:
    """The rows of a log, which are by user, for each shard that has some of these users."""
    numbers = _shards_of(users)
    user = table["user"].to_numpy()
    first = np.searchsorted(user, numbers * shards.SHARD_USERS).tolist()
    end = np.searchsorted(user, (numbers + 1) * shards.SHARD_USERS).tolist()
    return {k: table.slice(a, b - a) for k, a, b in zip(numbers.tolist(), first, end, strict=True)}


def _buffer(parts: dict[int, pa.Table]) -> memoryview:
    """An Arrow file with a batch for each shard, or without one if there are no rows at all."""
    sink, schema = pa.BufferOutputStream(), next(iter(parts.values())).schema
    with ipc.new_file(sink, schema, options=_CODEC) as writer:
        if any(len(part) for part in parts.values()):
            for part in parts.values():
                writer.write_batch(_batch(part))
    return memoryview(sink.getvalue())


def _batch(table: pa.Table) -> pa.RecordBatch:
    """The rows of a table of one chunk, which `to_batches` leaves out if there are none."""
    return pa.RecordBatch.from_arrays([column.chunk(0) for column in table.columns], schema=table.schema)


def apart(pieces: Sequence[Piece], arms: Sequence[str]) -> list[Piece]:
    """The pieces with all of these arms; of two with a user in common the first."""
    chosen: list[Piece] = []
    taken = np.zeros(1 + max((int(piece.users.max(initial=-1)) for piece in pieces), default=-1), np.bool_)
    for piece in pieces:
        if set(arms) <= set(piece.arms) and not taken[piece.users].any():
            chosen.append(piece)
            taken[piece.users] = True
    return chosen


def pieces_of_runs(folder: Path, run: str, *, verify: bool = False) -> list[Piece]:
    """The pieces of a run that can be read. `verify`: their bytes are looked at. What is no whole piece is deleted."""
    pieces = []
    for file in sorted((folder / FOLDER).glob("*.piece")):
        try:
            with open_file(file) as opened, zipfile.ZipFile(opened) as archive:
                if not all(map(_plausible, archive.infolist())):
                    raise ValueError("it is torn")
                about = json.loads(archive.read(_ABOUT))
                names = [_ABOUT, *(_entry(arm, kind) for arm in range(len(about["arms"])) for kind in shards.IN_ORDER)]
                whole = archive.namelist() == names and not (verify and archive.testzip())
                if not whole or about["run"] != run:
                    raise ValueError("it is torn, or of another run")
            pieces.append(Piece(file, tuple(about["arms"]), np.array(about["users"], np.int32)))
        except OSError:  # it may be whole: what failed is the disk, or too many files are open
            continue
        except _BROKEN:
            file.unlink(missing_ok=True)
    return pieces


def _plausible(entry: zipfile.ZipInfo) -> bool:
    """Can it lie as it is, not compressed, in a file?"""
    stored = entry.compress_type == zipfile.ZIP_STORED and entry.compress_size == entry.file_size
    return stored and entry.header_offset >= 0


def join(folder: Path, run: str, arm: str, shard: int, *, users: range, pieces: Sequence[Piece]) -> None:
    """Write a shard, whose users `users` all are in pieces that have no user in common.

    Raises UsageError where these are gone.
    """
    inside = [piece for piece in pieces if np.isin(piece.users // shards.SHARD_USERS, shard).any()]
    covered = np.concatenate([np.zeros(0, np.int32), *(piece.users for piece in inside)])
    if not np.isin(np.arange(users.start, users.stop), covered).all():
        raise UsageError(
            f"{folder / FOLDER} has lost cohorts of arm {arm!r} that were done; run the same command again"
        )
    shards.write_shard(
        folder, run, arm, shard, lambda log: pa.concat_tables(piece.table(arm, shard, log) for piece in inside)
    )


def tidy(folder: Path, run: str) -> None:
    """Delete the pieces of which every shard is there, whole."""
    fault = cache(partial(shards.fault, folder, run))  # which reads all of a shard, and many pieces have a part of it
    for piece in pieces_of_runs(folder, run):
        if not any(fault(arm, shard) for arm in piece.arms for shard in _shards_of(piece.users).tolist()):
            piece.file.unlink(missing_ok=True)


def end(folder: Path) -> None:
    """Delete the folder of a run of which every shard is there."""
    if (folder / FOLDER).exists():
        shutil.rmtree(folder / FOLDER, ignore_errors=True)
