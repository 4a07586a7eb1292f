"""The store `postgres` (extra `postgres`): a server that many machines write at once."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote, urlsplit

from skg_bench.core.errors import UsageError, install_hint
from skg_bench.core.reach import Reach, Reaches
from skg_bench.core.store import KEYS, StoreError
from skg_bench.store.shared.table import SKILLBOOK_TABLE, check_columns
from skg_bench.store.shared.waiting import Patience

if TYPE_CHECKING:
    import psycopg

# JSON and not JSONB, which sorts the keys of objects: the order of skills in a document is that of the book
_COLUMNS = {"user_id": "text", "document": "json", "version": "bigint"}
_FIND = (
    "select column_name, data_type from information_schema.columns "
    "where table_schema = current_schema() and table_name = %s order by ordinal_position"
)
_CREATE = (
    f"create table if not exists {SKILLBOOK_TABLE} "
    "(user_id text primary key, document json not null, version bigint not null)"
)  # fmt: skip
_LOAD = f"select document::text, version from {SKILLBOOK_TABLE} where user_id = %s"  # noqa: S608  a constant
_INSERT = f"insert into {SKILLBOOK_TABLE} values (%s, %s::json, 1) on conflict do nothing"  # noqa: S608
_UPDATE = f"update {SKILLBOOK_TABLE} set document = %s::json, version = version + 1 where user_id = %s and version = %s"  # noqa: S608
_PASSWORD = re.compile(r"password\s*=")  # sslpassword, too
_PAUSE = 0.05  # seconds between tries to reach a server: our choice


@dataclass(eq=False)
class Postgres:
    """A table on a server of PostgreSQL 12 or newer. The password comes from PGPASSWORD or ~/.pgpass only."""

    address: str
    seconds: float

    _connection: "psycopg.Connection[Any] | None" = field(default=None, init=False, repr=False)
    _table: bool = field(default=False, init=False, repr=False)  # is it known to be there?
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)
    reaches: ClassVar[Reaches] = {"address": Reach(("network",), harmless=())}

    def __post_init__(self) -> None:
        if find_spec("psycopg") is None:
            raise UsageError(f"store postgres needs psycopg: {install_hint('postgres')}")
        if urlsplit(self.address).password or _PASSWORD.search(unquote(self.address)):
            raise UsageError("store.address must be without a password; give it in PGPASSWORD or ~/.pgpass")
        if not self.address.startswith(("postgresql://", "postgres://")):
            raise UsageError(f"store.address={self.address!r} must begin with postgresql://")
        if not 1 <= self.seconds <= 600:
            raise UsageError(f"store.seconds={self.seconds!r} must be 1 to 600")

    def load(self, user: str) -> tuple[str, int] | None:
        rows, _, _ = self._execute(_LOAD, user)
        return rows[0] if rows else None

    def swap(self, user: str, expected: int, document: str, key: str) -> bool:
        if expected == 0:
            _, count, repeated = self._execute(_INSERT, user, document, writes=True)
        else:
            _, count, repeated = self._execute(_UPDATE, document, user, expected, writes=True)
        return count == 1 or (repeated and self._arrived(user, expected, key))

    def users(self) -> Iterator[str]:
        rows, _, _ = self._execute(f'select user_id from {SKILLBOOK_TABLE} order by user_id collate "C"')  # noqa: S608
        return (name for (name,) in rows)

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _arrived(self, user: str, expected: int, key: str) -> bool:
        """Was a write stored whose acknowledgement was lost? Its key stands in the document.

        Raises StoreError where so many others came after it that its key would be gone.
        """
        stored = self.load(user)
        if stored is None:
            return False
        document, version = stored
        if key in json.loads(document).get("batches", ()):
            return True
        if version - expected > KEYS:
            raise StoreError(
                f"{self.address}: the connection broke, and {version - expected} writes later nothing tells whether "
                "this one is stored"
            )
        return False

    def _execute(self, statement: str, *values: str | int, writes: bool = False) -> tuple[list[Any], int, bool]:
        """Rows, how many were changed, and whether an earlier try may have changed some, as its connection broke. Waits
        for a server that is away or has no connection left. Only what `writes` makes the table.
        """
        import psycopg

        patience, repeated = Patience(self.seconds), False
        while True:
            with self._lock:
                connected = False
                try:
                    connection = self._open()
                    connected = True
                    if not self._table and not self._has_table(connection):
                        if not writes:  # the database may be somebody else's
                            return [], 0, repeated
                        self._create(connection)
                        self._table = True
                    cursor = connection.execute(statement, values)
                    return cursor.fetchall() if cursor.description else [], cursor.rowcount, repeated
                except psycopg.OperationalError as error:
                    self._drop()
                    repeated = repeated or connected
                    if patience.over:
                        raise self._failure(error, unknown=repeated) from error
                except (psycopg.Error, UnicodeEncodeError) as error:
                    self._drop()
                    raise self._failure(error, unknown=False) from error
            patience.wait(_PAUSE)

    def _open(self) -> "psycopg.Connection[Any]":
        import psycopg

        if self._connection is not None:
            return self._connection
        limit = max(2, int(self.seconds))  # seconds; libpq waits at least 2
        connection = psycopg.connect(
            self.address, autocommit=True, connect_timeout=limit, tcp_user_timeout=1000 * limit,
            application_name="skg-bench",
        )  # fmt: skip
        try:
            connection.execute(f"set statement_timeout = {1000 * limit}")
            self._has_table(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _has_table(self, connection: "psycopg.Connection[Any]") -> bool:
        """Is the table there? Raises StoreError for one that is somebody else's."""
        columns = connection.execute(_FIND, (SKILLBOOK_TABLE,)).fetchall()
        if columns:
            check_columns(self.address, dict(columns), _COLUMNS)
        self._table = bool(columns)
        return self._table

    def _create(self, connection: "psycopg.Connection[Any]") -> None:
        import psycopg

        try:
            connection.execute(_CREATE)
        except psycopg.errors.UniqueViolation:  # another process was first
            return

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _failure(self, error: Exception, *, unknown: bool) -> StoreError:
        what = "nothing tells whether this is stored" if unknown else "nothing is stored"
        reason = next(iter(str(error).splitlines()), type(error).__name__)  # the rest may quote the document
        return StoreError(f"{self.address}: {what}: {reason}")
