"""Vectors that were computed before, on disk, for all runs of this user: each text is embedded once.

One SQLite file for each model, in `$XDG_CACHE_HOME/skg_bench/vectors` (default `~/.cache`). SQLite's locks let several
processes use it at once, and its journal mends what a killed one left; nothing in it is ever unpickled. Texts are kept
as hashes only. Vectors lie in blocks, each with a checksum: a row for each text would take three times as long to read.
"""

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from time import monotonic
from typing import ClassVar
from zlib import crc32

import numpy as np

from skg_bench.core.foreign import raw_bytes
from skg_bench.core.grid import I16, U64
from skg_bench.core.reach import Reach, Reaches
from skg_bench.core.temporary import replace_whole, sweep
from skg_bench.core.text import text_hash

Embed = Callable[[Sequence[str]], I16]
TextProgress = Callable[[int, int], None]  # done texts, all texts
Known = tuple[U64, I16]  # hashes of texts `[n]` and their vectors `[n, D]`

_DIGEST = 16  # bytes of a checksum at the end of a file
_BLOCK = 256  # texts embedded, then kept, at once: what a killed run loses, and what another process waits for
_WAIT = 5.0  # seconds that SQLite itself waits while another process writes a block
_PATIENCE = 600.0  # seconds that another process may take for its block before this one goes on without the cache
_NOTHING: Known = np.zeros(0, np.uint64), np.zeros((0, 0), np.int16)
_TABLE = """CREATE TABLE IF NOT EXISTS block (
    id INTEGER PRIMARY KEY, texts BLOB NOT NULL, checksum INTEGER NOT NULL, vectors BLOB NOT NULL)"""
_HASHES = "SELECT id, texts FROM block WHERE typeof(texts) = 'blob'"
_WHOLE = "SELECT texts, checksum, vectors FROM block WHERE id = ? AND typeof(vectors) = 'blob'"
_ADD = "INSERT INTO block (texts, checksum, vectors) VALUES (?, ?, ?)"


def cache_folder() -> Path:
    """Folder of this user's caches."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "skg_bench"


def keep_bytes(file: Path, contents: bytes) -> None:
    """Write a file, for `kept_bytes`; if it cannot be written, print that and continue."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        sweep(file.parent)
        replace_whole(file, contents + _digest(contents))
    except OSError as error:
        _say(f"{file} could not be kept ({error}); it will be made again next time")


def kept_bytes(file: Path) -> bytes | None:
    """Vectors that were written; None: none, or they are damaged."""
    try:
        whole = raw_bytes(file)
    except OSError:
        return None
    contents, digest = whole[:-_DIGEST], whole[-_DIGEST:]
    return contents if digest == _digest(contents) else None


def _digest(contents: bytes) -> bytes:
    return blake2b(contents, digest_size=_DIGEST).digest()


def through(model: str, texts: Sequence[str], embed: Embed, progress: TextProgress | None = None) -> I16:
    """Vectors of `texts` `[N, D]` from the cache of `model`; what is not there is embedded once, and kept.

    `progress(done, total)` counts distinct texts that were not there. A cache that cannot be read or written is a
    warning with the number of vectors that it concerns; the vectors come all the same.
    """
    if not texts:
        return embed(texts)
    hashes: U64 = np.array([text_hash(text) for text in texts], np.uint64)
    with _opened(file(model)) as store:
        known = store.read(np.unique(hashes))
        known_hashes = set(known[0].tolist())
        missing = {key: text for key, text in zip(hashes.tolist(), texts, strict=True) if key not in known_hashes}
        left = sorted(missing, key=lambda key: (len(missing[key]), key))  # like lengths are embedded together
        parts = [known]
        for first in range(0, len(left), _BLOCK):
            if progress is not None:
                progress(first, len(left))
            parts += _block(store, {key: missing[key] for key in left[first : first + _BLOCK]}, embed)
        if left and progress is not None:
            progress(len(left), len(left))
    keys, vectors = _joined(parts)
    order = np.argsort(keys)
    return np.ascontiguousarray(vectors[order[np.searchsorted(keys[order], hashes)]])


def file(model: str) -> Path:
    """The file of a model, by its digest."""
    return cache_folder() / "vectors" / f"{blake2b(model.encode(), digest_size=16).hexdigest()}.sqlite"


def _block(store: "_Store", texts: dict[int, str], embed: Embed) -> list[Known]:
    with store.claimed():
        known = store.read(np.array(sorted(texts), np.uint64))  # another process may have been faster
        for key in known[0].tolist():
            texts.pop(key, None)
        if not texts:
            return [known]
        new = np.array(list(texts), np.uint64), embed(list(texts.values()))
        store.write(*new)
        return [known, new]


@contextmanager
def _opened(file: Path) -> "Iterator[_Store]":
    store = _Store(file)
    try:
        yield store
    finally:
        store.close()


class _Store:
    """A file of vectors; if it cannot be used, it is said so once, with a count."""

    reaches: ClassVar[Reaches] = {"file": Reach(("reads", "writes"))}

    def __init__(self, file: Path) -> None:
        self._file, self._unkept, self._why = file, 0, ""
        self._open: sqlite3.Connection | None = None
        self._connect()

    def _connect(self) -> None:
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._open = sqlite3.connect(self._file, timeout=_WAIT, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            self._why = str(error)

    def read(self, wanted: U64) -> Known:
        """Vectors that are there for `wanted`, which ascends, and perhaps more."""
        if self._open is not None:
            try:
                return _read(self._open, self._file, wanted)
            except sqlite3.OperationalError as error:  # cannot be read
                self._give_up(error)
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter: of the file's own text
                self._start_anew(error)
        return _NOTHING

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Claim that lets one process write: of two processes that need the same text, one embeds it."""
        until = monotonic() + _PATIENCE
        while self._open is not None and not self._open.in_transaction:
            try:
                self._open.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > until:
                    self._give_up(error)
        try:
            yield
        finally:
            if self._open is not None and self._open.in_transaction:
                self._open.execute("ROLLBACK")

    def write(self, texts: U64, vectors: I16) -> None:
        """Add a block; then others may write again."""
        if self._open is not None:
            keys, rows = texts.astype("<u8").tobytes(), vectors.astype("<i2").tobytes()
            try:
                self._open.execute(_TABLE)
                self._open.execute(_ADD, (keys, _checksum(keys, rows), rows))
                self._open.execute("COMMIT")
            except sqlite3.Error as error:  # the disk is full, ...
                self._give_up(error)
        if self._open is None:
            self._unkept += len(texts)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
        if self._unkept:
            _say(
                f"{self._unkept:,} vectors could not be kept in {self._file} ({self._why}): they were computed in vain"
            )

    def _give_up(self, error: Exception) -> None:
        self._why = str(error)
        if self._open is not None:
            self._open.close()
        self._open = None

    def _start_anew(self, error: Exception) -> None:
        _say(f"{self._file} is damaged ({error}): it is begun anew, and what was in it computed again")
        self._give_up(error)
        with suppress(OSError):  # then it stays, and nothing is kept
            self._file.unlink(missing_ok=True)
            self._connect()


def _read(connection: sqlite3.Connection, file: Path, wanted: U64) -> Known:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'block'").fetchone():
        return _NOTHING
    hashes: dict[int, U64] = {
        number: np.frombuffer(texts[: len(texts) // 8 * 8], "<u8").astype(np.uint64)
        for number, texts in connection.execute(_HASHES)
    }
    if not hashes:
        return _NOTHING
    keys = np.concatenate(list(hashes.values()))
    block = np.repeat(list(hashes), [len(chunk) for chunk in hashes.values()])
    mask = wanted[np.minimum(np.searchsorted(wanted, keys), len(wanted) - 1)] == keys
    parts, damaged = [], []
    for number in np.unique(block[mask]).tolist():
        texts, checksum, rows = connection.execute(_WHOLE, (number,)).fetchone() or (b"", -1, b"")
        if checksum == _checksum(texts, rows):
            block_keys = np.frombuffer(texts, "<u8").astype(np.uint64)
            parts.append((block_keys, np.frombuffer(rows, "<i2").reshape(len(block_keys), -1)))
        else:
            damaged.append(number)
    if damaged:
        _say(f"{sum(len(hashes[number]) for number in damaged):,} vectors in {file} are damaged: they are made again")
        with suppress(sqlite3.OperationalError):  # read-only: they are found damaged again next time
            connection.executemany("DELETE FROM block WHERE id = ?", [(number,) for number in damaged])
    return _joined(parts)


def _joined(parts: list[Known]) -> Known:
    full = [part for part in parts if len(part[0])]
    return (
        (np.concatenate([keys for keys, _ in full]), np.concatenate([rows for _, rows in full])) if full else _NOTHING
    )


def _checksum(keys: bytes, rows: bytes) -> int:
    return crc32(rows, crc32(keys))


def _say(line: str) -> None:
    logging.getLogger("skg_bench").warning(line)
