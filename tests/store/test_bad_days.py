"""What keeps a store from storing ends within a bound, with a message that says what is not stored."""

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skg_bench.core.errors import UsageError
from skg_bench.core.store import KEYS, Store, StoreError
from skg_bench.skillbook.storing import update
from skg_bench.store.memory import InMemory
from skg_bench.store.postgres import Postgres
from skg_bench.store.sqlite import SQLite
from tests.store.writers import NOW, batch, helpful, seed, tag


def test_a_locked_file_is_waited_for_and_then_given_up(tmp_path: Path) -> None:
    store = SQLite(str(tmp_path / "books.db"), 0.2)
    seed(store, ["anna"])
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("begin immediate")
    begun = time.monotonic()
    with pytest.raises(StoreError, match=r"batch 'k' of user 'anna': .*: nothing is stored, as another program"):
        update(store, "anna", batch(tag()), key="k", now=NOW)
    assert 0.2 <= time.monotonic() - begun < 5
    assert helpful(store, "anna") == 0  # who reads does not wait
    other.execute("rollback")
    other.close()
    assert update(store, "anna", batch(tag()), key="k", now=NOW).end == "stored"
    assert helpful(store, "anna") == 1
    store.close()


def test_a_file_that_may_not_be_written_says_so(tmp_path: Path) -> None:
    store = SQLite(str(tmp_path / "books.db"), 0.2)
    seed(store, ["anna"])
    with sqlite3.connect(store.path) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    reader = SQLite(store.path, 0.2)
    reader.load("anna")
    assert reader._connection is not None
    reader._connection.execute("pragma query_only = on")  # as a file without the right to write, which root has
    with pytest.raises(StoreError, match=r"nothing is stored, as attempt to write a readonly database; allow writing"):
        reader.swap("anna", 1, "{}", "k")
    reader.close()
    assert store.load("anna") != ("{}", 2)
    store.close()


def test_a_full_disk_says_so_and_keeps_what_was_stored(tmp_path: Path) -> None:
    store = SQLite(str(tmp_path / "books.db"), 0.2)
    seed(store, ["anna"])
    before = store.load("anna")
    assert store._connection is not None
    (pages,) = store._connection.execute("pragma page_count").fetchone()
    store._connection.execute(f"pragma max_page_count = {pages}")  # a disk without room for another page
    with pytest.raises(StoreError, match=r"nothing is stored, as database or disk is full; make room on its disk"):
        store.swap("anna", 1, f'"{"x" * 100_000}"', "k")
    assert store.load("anna") == before
    store.close()


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"no database at all" * 100, "not a database; name another file"), (None, "unable to open"), ("", "folder")],
)
def test_what_is_no_database_is_refused(content: bytes | str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "books.db"
    if content is None:
        path.mkdir()
    elif content == "":
        path = tmp_path / "missing" / "books.db"
    else:
        path.write_bytes(bytes(content))  # type: ignore[arg-type]
    with pytest.raises(StoreError, match=message):
        SQLite(str(path), 0.2).load("anna")


def test_a_table_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "books.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table skg_skillbooks (user_id TEXT, skills TEXT)")
    connection.close()
    with pytest.raises(StoreError, match=r"has a table skg_skillbooks with the columns user_id TEXT, skills TEXT"):
        SQLite(str(path), 0.2).load("anna")


@pytest.mark.parametrize("path", ["", ":memory:", "file:books.db"])
def test_a_store_without_a_file_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match=r"must be a file"):
        SQLite(path, 1.0)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ('{"schema_version":"3"}', "schema_version '3'; a v2 book has '2'"),
        ('{"skills":[]}', "skills is"),
        ("[1]", "an object is needed"),
        ('{"schema_version":"2","skills":{', "no whole JSON"),
    ],
)
def test_a_document_of_another_schema_is_refused_and_stays(document: str, message: str) -> None:
    store = InMemory()
    store.swap("anna", 0, document, "k")
    with pytest.raises(
        UsageError, match=rf"document of user 'anna' is no skillbook of ACE that this version reads: .*{message}"
    ):
        update(store, "anna", batch(tag()), key="k", now=NOW)
    assert store.load("anna") == (document, 1)


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
def test_a_text_that_no_database_takes_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="nothing is stored"):
        store.swap("anna\ud800", 0, "{}", "k")
    with pytest.raises(StoreError, match="nothing is stored"):
        store.swap("anna", 0, "{", "k")
    assert list(store.users()) == []


# ------------------------------------------------------------------------------------------- PostgreSQL alone


def backends(store: Any) -> list[int]:
    """Processes of the server that serve stores."""
    import psycopg

    with psycopg.connect(store.address, autocommit=True) as connection:
        query = "select pid from pg_stat_activity where application_name = 'skg-bench' and pid <> pg_backend_pid()"
        return [pid for (pid,) in connection.execute(query).fetchall()]


@pytest.mark.req("P26")
def test_a_backend_killed_in_mid_run_costs_nothing(make: Callable[..., Any]) -> None:
    store = make("postgres", 30.0)
    seed(store, ["anna"])
    done = 0

    def write() -> None:
        nonlocal done
        for i in range(300):
            update(store, "anna", batch(tag()), key=f"w-{i}", now=NOW)
            done += 1

    writer = threading.Thread(target=write)
    writer.start()
    for at in (30, 100):
        while done < at and writer.is_alive():
            time.sleep(0.001)
        for pid in backends(store):
            os.kill(pid, signal.SIGKILL)  # the server restarts all of its processes
        time.sleep(1)
    writer.join(120)
    assert done == 300
    assert helpful(store, "anna") == 300


@pytest.mark.req("P26")
def test_a_write_whose_acknowledgement_was_lost_counts_once(
    make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    psycopg = pytest.importorskip("psycopg")
    store = make("postgres", 5.0)
    seed(store, ["anna"])
    execute, lost = psycopg.Connection.execute, list[str]()

    def losing(self: Any, query: Any, *rest: Any, **options: Any) -> Any:
        cursor = execute(self, query, *rest, **options)
        if query.startswith("update") and not lost:
            lost.append(query)
            self.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return cursor

    monkeypatch.setattr(psycopg.Connection, "execute", losing)
    assert update(store, "anna", batch(tag()), key="k", now=NOW).end == "stored"
    assert lost
    assert helpful(store, "anna") == 1


def test_a_lost_acknowledgement_that_nothing_tells_of_is_an_error(make: Callable[..., Any]) -> None:
    store: Postgres = make("postgres", 5.0)
    assert not store._arrived("anna", 1, "k")
    for version in range(KEYS + 3):
        store.swap("anna", version, '{"batches":["another"]}', "another")
    assert store._arrived("anna", 1, "another")
    assert not store._arrived("anna", 3, "k")
    with pytest.raises(StoreError, match="66 writes later nothing tells whether this one is stored"):
        store._arrived("anna", 1, "k")


def test_a_server_that_is_away_is_waited_for_and_then_given_up(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    store = Postgres(f"postgresql:///postgres?host={tmp_path}", 1.0)
    begun = time.monotonic()
    with pytest.raises(StoreError, match="nothing is stored: connection"):
        store.swap("anna", 0, "{}", "k")
    assert 1 <= time.monotonic() - begun < 10


def test_a_server_that_is_read_only_or_has_another_table_is_refused_at_once(make: Callable[..., Any]) -> None:
    psycopg = pytest.importorskip("psycopg")
    store: Postgres = make("postgres", 30.0)
    seed(store, ["anna"])
    assert store._connection is not None
    store._connection.execute("set default_transaction_read_only = on")
    begun = time.monotonic()
    with pytest.raises(StoreError, match="nothing is stored: cannot execute UPDATE in a read-only transaction"):
        store.swap("anna", 1, "{}", "k")
    assert time.monotonic() - begun < 5
    with psycopg.connect(store.address) as connection:
        connection.execute("alter table skg_skillbooks alter document type jsonb")
    with pytest.raises(StoreError, match="document jsonb, version bigint; a store needs"):
        store.load("anna")


def test_a_database_that_is_only_read_gets_no_table(make: Callable[..., Any]) -> None:
    psycopg = pytest.importorskip("psycopg")
    store: Postgres = make("postgres", 30.0)
    table = "select to_regclass('skg_skillbooks')"
    with psycopg.connect(store.address, autocommit=True) as connection:
        assert (store.load("anna"), [*store.users()]) == (None, [])
        assert connection.execute(table).fetchone() == (None,)
        assert store.swap("anna", 0, "{}", "k")
        assert connection.execute(table).fetchone() != (None,)
    assert (store.load("anna"), [*store.users()]) == (("{}", 1), ["anna"])


def test_connections_that_are_used_up_are_waited_for(make: Callable[..., Any]) -> None:
    psycopg = pytest.importorskip("psycopg")
    store: Postgres = make("postgres", 30.0)
    with psycopg.connect(store.address, autocommit=True) as connection:
        connection.execute("drop role if exists limited")
        connection.execute("create role limited login superuser connection limit 0")  # superusers are exempt
        connection.execute("alter role limited nosuperuser")
        schema = store.address.rpartition("%3D")[2]
        connection.execute(f"grant all on schema {schema} to limited")
        limited = Postgres(store.address.replace("postgres:@", "limited@"), 1.0)
        with pytest.raises(StoreError, match=r"nothing is stored: connection .* too many connections for role"):
            limited.swap("anna", 0, "{}", "k")
        patient = Postgres(limited.address, 30.0)
        free = threading.Timer(
            0.3,
            lambda: (
                psycopg.connect(store.address, autocommit=True)
                .execute("alter role limited connection limit 5")
                .connection.close()
            ),
        )
        free.start()
        assert patient.swap("anna", 0, "{}", "k")
        patient.close()
        free.join()


def test_a_password_in_an_address_is_refused_without_being_shown() -> None:
    pytest.importorskip("psycopg")
    for address in (
        "postgresql://me:hidden@host/books", "postgresql://host/books?password=hidden",
        "postgresql://host/books?passw%6frd=hidden", "host=here password = hidden",
    ):  # fmt: skip
        with pytest.raises(UsageError, match="PGPASSWORD") as refused:
            Postgres(address, 10.0)
        assert "hidden" not in str(refused.value)
