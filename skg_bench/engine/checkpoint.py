"""Checkpoints: a cohort's rollout and logs in one file, from which another process goes on to the same bits.

A checkpoint is a line that says whose it is, a line of plain data (runfolder/saving.py), the memory of the arrays, and
a digest of it all. It appears whole or not at all; one that was cut or changed counts as absent, as does one of another
form; one of another run has another name (engine/pieces.py). What is dead between two turns is not saved, nor are
donors while they are simulated.
"""

import json
import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from io import BufferedReader
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from skg_bench.core.foreign import open_file
from skg_bench.core.grid import I32
from skg_bench.core.temporary import replacing
from skg_bench.engine.logbook import Logbook
from skg_bench.runfolder.blocks import Array, Bytes, room
from skg_bench.runfolder.saving import Flat, Surroundings, UnsavableError, flattened, restored

_FORMAT = 2
_HEAD = 2**27  # bytes that the first line may have: ten million users
_CHUNK = 2**22  # bytes
_PATIENCE = 100  # a checkpoint waits as many times as long as the one before took
_DIGEST = 32  # bytes
_LOG = logging.getLogger("skg_bench")


@dataclass(frozen=True, slots=True)
class Position:
    """Position of a rollout in its turns."""

    again: bool = False  # the second time through, of arms with `book=hindsight`
    turn: int = 0  # the next
    made: int = 0  # turns made before, of all rows


class Resumable(Protocol):
    """A rollout whose turns can be saved, and gone on with by another process."""

    @property
    def position(self) -> Position:
        """The next turn."""
        ...

    def kept(self) -> dict[str, Any]:
        """All that its turns have changed."""
        ...

    def take_up(self, kept: dict[str, Any]) -> None:
        """Go on from what `kept` of another rollout gave.

        Raises ValueError for a rollout of other users.
        """
        ...

    def surroundings(self) -> Surroundings:
        """Objects that another process has too; they are named in a checkpoint, not saved."""
        ...


R = TypeVar("R", bound=Resumable)


class Keeper:
    """Keeps the checkpoint of one cohort at `path`, at most one in `every` seconds. Who made the keeper deletes it."""

    def __init__(self, path: Path, every: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._every, self._clock = path, every, clock
        self._due = 0.0

    def resumed(
        self, arms: Sequence[str], users: I32, begin: Callable[[], tuple[R, Logbook]]
    ) -> tuple[R, Logbook] | None:
        """The rollout and the logs of the checkpoint; None: there is no good one of these arms and users `[n]`.

        `begin` makes them before the first turn, with texts of their own.
        """
        head = checkpoint_rows(self._path)
        if head is None or head[0] != tuple(arms) or not np.array_equal(head[1], users):
            return None
        rollout, log = begin()
        try:
            with open_file(self._path) as file:
                kept = _read(file, rollout.surroundings())
            _take_up(kept, rollout, log)
        except (UnsavableError, OSError, MemoryError, ValueError, TypeError, LookupError, AttributeError) as error:
            _LOG.debug("%s is no checkpoint to go on from (%s); its users begin anew", self._path, error)
            return None
        return rollout, log

    def watch(self, log: Logbook, arms: Sequence[str], users: I32) -> Callable[[Resumable], None]:
        """Function that a rollout calls between turns: now and then it saves."""
        head = {"format": _FORMAT, "arms": list(arms), "users": users.tolist()}
        self._due = self._clock() + self._every
        return partial(self._look, log, json.dumps(head).encode() + b"\n")

    def _look(self, log: Logbook, head: bytes, rollout: Resumable) -> None:
        if (now := self._clock()) < self._due:
            return
        wait = self._every
        try:
            _write(self._path, head, flattened(_kept(rollout, log), rollout.surroundings()))
        except UnsavableError as error:
            _LOG.debug("no checkpoint of %s: %s", self._path, error)
            wait = float("inf")  # it will not be another time
        except (OSError, MemoryError) as error:
            _LOG.debug("no checkpoint of %s: %s", self._path, error)
        end = self._clock()
        self._due = end + max(wait, _PATIENCE * (end - now))


def checkpoint_rows(path: Path) -> tuple[tuple[str, ...], I32] | None:
    """Arms and user ids of a checkpoint, from its first line; None: there is no checkpoint of this form."""
    try:
        with open_file(path) as file:
            line = file.readline(_HEAD)
        head = json.loads(line)
        if head["format"] != _FORMAT or not line.endswith(b"\n"):
            return None
        return tuple(str(arm) for arm in head["arms"]), np.array(head["users"], np.int32)
    except (OSError, ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return None


# -------------------------------------------------------------------------------------------------- contents


def _kept(rollout: Resumable, log: Logbook) -> dict[str, Any]:
    """All that the turns before have changed. The lists of the log become short: a million turns have millions of
    arrays.
    """
    log.updates, log.feedbacks, log.jobs = (_joined(rows) for rows in (log.updates, log.feedbacks, log.jobs))
    end = int(log.start[rollout.position.turn]) if log.filled else 0  # nothing is logged of the first time through
    columns = {name: log.columns[name][:end] for name in sorted(log.filled)}
    rows = {"updates": log.updates, "feedbacks": log.feedbacks, "jobs": log.jobs}
    return {"rollout": rollout.kept(), "columns": columns, "filled": log.filled, "rows": rows}


def _joined(parts: list[dict[str, Array]]) -> list[dict[str, Array]]:
    """All parts as one, which the log makes of them anyway; as they are where their numbers are of other kinds, as the
    order in which these are joined may matter.
    """
    if len(parts) < 2:
        return parts
    whole = {}
    for name in parts[0]:
        arrays = [part[name] for part in parts]
        if len({array.dtype.kind for array in arrays}) > 1:
            return parts
        whole[name] = np.concatenate(arrays)
    return [whole]


def _take_up(kept: dict[str, Any], rollout: Resumable, log: Logbook) -> None:
    """Raises UnsavableError for a checkpoint of another rollout or with other columns."""
    for name, column in kept["columns"].items():
        rows = log.columns[name][: len(column)]
        if rows.shape != column.shape or rows.dtype != column.dtype:
            raise UnsavableError(f"column {name} has shape {column.shape}, valid is {rows.shape}")
        rows[...] = column
    log.filled, rows = kept["filled"], kept["rows"]
    log.updates, log.feedbacks, log.jobs = rows["updates"], rows["feedbacks"], rows["jobs"]
    rollout.take_up(kept["rollout"])


# ------------------------------------------------------------------------------------------------------ file


def _write(path: Path, head: bytes, flat: Flat) -> None:
    """Raises OSError, and leaves the checkpoint of before as it was, except as `replacing` says."""
    sizes = [[len(block.data), block.skew] for block in flat.blocks]
    try:
        plain = json.dumps({"root": flat.root, "nodes": flat.nodes, "blocks": sizes}, separators=(",", ":")).encode()
    except ValueError as error:
        raise UnsavableError(str(error)) from error
    digest = sha256()
    with replacing(path) as file:
        parts: list[bytes | memoryview] = [head, plain, b"\n", *(block.data.data for block in flat.blocks)]
        for part in parts:
            digest.update(part)
            file.write(part)
        file.write(digest.digest())


def _read(file: BufferedReader, known: Surroundings) -> dict[str, Any]:
    """Raises UnsavableError for a file that is torn, or that another process cannot have written."""
    left = os.fstat(file.fileno()).st_size - _DIGEST
    end, digest = left, sha256()
    while left > 0 and (part := file.read(min(left, _CHUNK))):
        digest.update(part)
        left -= len(part)
    if left or file.read() != digest.digest():
        raise UnsavableError("its digest is another")
    file.seek(0)
    file.readline()
    try:
        plain = json.loads(file.readline())
        blocks = [_block(file, end, size, skew) for size, skew in plain["blocks"]]
        root, nodes = plain["root"], plain["nodes"]
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise UnsavableError(f"it is not whole: {error}") from error
    kept: dict[str, Any] = restored(root, nodes, blocks, known)
    return kept


def _block(file: BufferedReader, end: int, size: int, skew: int) -> Bytes:
    if not 0 <= size <= end - file.tell():
        raise ValueError(f"a block of {size} bytes")
    block = room(size, skew)
    file.readinto(block.data)
    return block
