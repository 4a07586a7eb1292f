"""`skg_bench.open_store`: skillbooks of an application."""

from pathlib import Path
from threading import Event

import pytest

import skg_bench
from skg_bench.app.stored import StoredBooks, at_address
from skg_bench.core.errors import UsageError
from skg_bench.core.store import StoreError
from skg_bench.skillbook.prompt_layout import TRUNCATED
from skg_bench.store.memory import InMemory
from skg_bench.store.sqlite import SQLite
from tests.app.test_cli import call
from tests.store.writers import add, batch, seed, tag


@pytest.mark.req("P12", "P16")
def test_a_skillbook_is_a_text_for_prompts_and_an_object_with_its_version_for_learning(tmp_path: Path) -> None:
    with skg_bench.open_store(path=str(tmp_path / "books.db")) as books:
        assert books.prompt("anna") == ""
        assert books.load("anna") is None
        first = books.update("anna", batch(add("Buys at night.", "Wait a day.")), key="first")
        assert (first.end, first.version) == ("stored", 1)
        read = books.load("anna")
        assert read is not None
        assert read.version == 1
        assert "[context-00001] context (impulse)\nIssue: Buys at night.\nInsight: Wait a day." in books.prompt("anna")
        books.update("anna", batch(add("Buys at noon.")), key="meanwhile")
        assert books.update("anna", batch(tag()), key="second", read=read).version == 3
        assert books.users() == ["anna"]
        assert len(books.prompt("anna", limit=100)) <= 100
        assert books.prompt("anna", limit=60) == TRUNCATED
    assert skg_bench.open_store(path=str(tmp_path / "books.db")).prompt("anna").count("Issue: ") == 2


@pytest.mark.req("P12", "P16")
def test_a_prompt_does_not_wait_for_a_slow_store() -> None:
    ended = Event()

    class Slow(InMemory):
        def load(self, user: str) -> tuple[str, int] | None:
            ended.wait(60)
            return super().load(user)

    with pytest.raises(StoreError, match=r"of user 'anna' was not read within 0.1 s"):
        StoredBooks(Slow()).prompt("anna", seconds=0.1)
    ended.set()


@pytest.mark.parametrize("address", ["sqlite:///books.db", "mysql://me:secret@host/books"])
def test_an_address_of_another_kind_is_no_file(address: str) -> None:
    """It was taken for the name of a file in a folder called `sqlite:`."""
    with pytest.raises(UsageError, match=r"://\.\.\. is no store; valid are the path of a file of SQLite") as error:
        at_address(address)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_seconds_that_are_none_are_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match=r"seconds=.* must be a number from 0 on"):
        StoredBooks(InMemory()).prompt("anna", seconds=seconds)


def test_what_is_wrong_with_a_document_is_raised_where_its_text_is_asked_for() -> None:
    store = InMemory()
    store.swap("anna", 0, '{"schema_version":"9"}', "k")
    with pytest.raises(UsageError, match="schema_version '9'"):
        StoredBooks(store).prompt("anna")


def test_a_store_is_named_by_its_yaml_with_other_parameters() -> None:
    assert isinstance(skg_bench.open_store("memory").store, InMemory)
    store = skg_bench.open_store("sqlite", seconds=2.0).store
    assert isinstance(store, SQLite)
    assert (store.path, store.seconds) == ("skillbooks.db", 2.0)
    assert skg_bench.open_store("memory", era="v1").update("a", batch(), key="k").end == "stored"
    with pytest.raises(UsageError, match="did you mean 'sqlite'"):
        skg_bench.open_store("sqlit")
    with pytest.raises(UsageError, match=r"store.pth: .* takes no such parameter; did you mean 'path'"):
        skg_bench.open_store(pth="x")
    with pytest.raises(UsageError, match="era='v3'"):
        skg_bench.open_store(era="v3")  # type: ignore[arg-type]


def test_an_address_is_a_file_unless_it_is_a_servers() -> None:
    assert isinstance(at_address("books.db").store, SQLite)
    try:
        store = at_address("postgresql://localhost/books").store
    except UsageError as error:
        assert "needs psycopg" in str(error)  # noqa: PT017  where it is not installed
    else:
        assert type(store).__name__ == "Postgres"


def test_stores_and_their_parameters_are_listed_and_no_run_has_one() -> None:
    assert "WAL" not in call("list", "store")[1]
    assert call("list", "store")[1].count("store ") >= 1
    assert "at most that long a write waits" in " ".join(call("list", "store.sqlite")[1].split())
    code, _, error = call("run", "store=sqlite", "--dry-run")
    assert code == 2
    assert "store" in error


def test_a_store_that_was_seeded_elsewhere_is_read() -> None:
    store = InMemory()
    seed(store, ["anna"])
    assert "Buys at night." in StoredBooks(store).prompt("anna")
