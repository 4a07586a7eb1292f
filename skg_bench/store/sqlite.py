"""The store `sqlite`: a file that many processes of one machine write at once."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, TypeVar

from skg_bench.core.errors import UsageError
from skg_bench.core.reach import Reach, Reaches
from skg_bench.core.store import StoreError
from skg_bench.store.shared.table import SKILLBOOK_TABLE, check_columns
from skg_bench.store.shared.waiting import Patience

T = TypeVar("T")
_COLUMNS = {"user_id": "TEXT", "document": "TEXT", "version": "INTEGER"}
_CREATE = (
    f"create table if not exists {SKILLBOOK_TABLE} (user_id TEXT primary key, "
    "document TEXT not null check (json_valid(document)), version INTEGER not null)"
)
_LOAD = f"select document, version from {SKILLBOOK_TABLE} where user_id = ?"  # noqa: S608  a constant
_INSERT = f"insert into {SKILLBOOK_TABLE} values (?, ?, 1) on conflict do nothing"  # noqa: S608
_UPDATE = f"update {SKILLBOOK_TABLE} set document = ?, version = version + 1 where user_id = ? and version = ?"  # noqa: S608
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_HINTS = {
    sqlite3.SQLITE_READONLY: "allow writing to the file and to its folder",
    sqlite3.SQLITE_FULL: "make room on its disk",
    sqlite3.SQLITE_CANTOPEN: "its folder must be there, and allow files beside it",
    sqlite3.SQLITE_NOTADB: "name another file",
    sqlite3.SQLITE_CORRUPT: "restore it from a copy",
}


@dataclass(eq=False)
class SQLite:
    """A file of SQLite. Each update is on the disk when `swap` returns, and survives a loss of power."""

    path: str
    seconds: float

    _connection: sqlite3.Connection | None = field(default=None, init=False, repr=False)
    _process: int = field(default=0, init=False, repr=False)  # that opened the connection
    _writes: bool = field(default=False, init=False, repr=False)  # is the connection one that has written?
    _inherited: list[sqlite3.Connection] = field(default_factory=list, init=False, repr=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)
    reaches: ClassVar[Reaches] = {"path": Reach(("reads", "writes"), harmless=())}

    def __post_init__(self) -> None:
        if "\0" in self.path:
            raise UsageError(f"store.path={self.path!r} has the character U+0000, which no file name has")
        if not self.path or self.path.startswith((":", "file:")):
            raise UsageError(f"store.path={self.path!r} must be a file; what is not to be kept goes to store memory")
        if not 0 <= self.seconds <= 600:
            raise UsageError(f"store.seconds={self.seconds!r} must be 0 to 600")

    def load(self, user: str) -> tuple[str, int] | None:
        rows = self._read(_LOAD, user)
        return rows[0] if rows else None

    def swap(self, user: str, expected: int, document: str, key: str) -> bool:
        if expected == 0:
            count = self._write(_INSERT, user, document)
        else:
            count = self._write(_UPDATE, document, user, expected)
        return count == 1

    def users(self) -> Iterator[str]:
        names = f"select user_id from {SKILLBOOK_TABLE} where user_id is not null order by user_id"  # noqa: S608
        return (name for (name,) in self._read(names))

    def close(self) -> None:
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def _read(self, statement: str, *values: str) -> list[Any]:
        """Rows; none where there is no table. Nothing is changed then: the file may be somebody else's."""

        def rows(connection: sqlite3.Connection) -> list[Any]:
            return connection.execute(statement, values).fetchall() if self._has_table(connection) else []

        return self._patiently(rows, "it is not read")

    def _write(self, statement: str, *values: str | int) -> int:
        """How many rows were changed. A statement is a transaction: it is done or not."""

        def count(connection: sqlite3.Connection) -> int:
            if not self._writes:
                connection.execute("pragma journal_mode = wal")
                if not self._has_table(connection):
                    connection.execute(_CREATE)
                self._writes = True
            return connection.execute(statement, values).rowcount

        return self._patiently(count, "nothing is stored")

    def _patiently(self, act: Callable[[sqlite3.Connection], T], failed: str) -> T:
        """Result of an act; waits while others write."""
        patience = Patience(self.seconds)
        while True:
            try:
                with self._lock:
                    return act(self._open())
            except (sqlite3.Error, UnicodeEncodeError) as error:
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                if code not in _BUSY or patience.over:
                    raise self._failure(error, code, failed) from error
            patience.wait()

    def _has_table(self, connection: sqlite3.Connection) -> bool:
        """Is the table there? Raises StoreError for one that is somebody else's."""
        columns = connection.execute(f"pragma table_info({SKILLBOOK_TABLE})").fetchall()
        if columns:
            check_columns(self.path, {row[1]: row[2] for row in columns}, _COLUMNS)
        return bool(columns)

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        if self._connection is not None:  # of the parent process: closing it would drop its locks
            self._inherited.append(self._connection)
            self._connection = None
        with suppress(OSError):  # SQLite says what is wrong
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))  # it holds what was learned of people
        connection = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("pragma synchronous = full")  # a WAL would else lose what was acknowledged last
            self._has_table(connection)
        except BaseException:
            connection.close()
            raise
        self._connection, self._process, self._writes = connection, os.getpid(), False
        return connection

    def _failure(self, error: Exception, code: int, failed: str) -> StoreError:
        reason = f"another program held it for {self.seconds:g} s" if code in _BUSY else str(error)
        hint = _HINTS.get(code, "try again" if code in _BUSY else "")
        what = f"{Path(self.path)}: {failed}, as {reason}"
        return StoreError(f"{what}; {hint}" if hint else what)
