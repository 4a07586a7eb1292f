"""`skillbook push` and `pull`: books of a run into a store, and those of a store into files."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import skg_bench
from skg_bench.app.skillbook.files import read_ace_book
from skg_bench.app.stored import at_address
from skg_bench.runfolder.run import Run
from tests.app.test_cli import call
from tests.runs import logs_alone
from tests.store.writers import add, batch


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> skg_bench.Run:
    """Three users of the Guardian, whose skillbooks begin with seeds."""
    folder = tmp_path_factory.mktemp("runs") / "guardian"
    words = ["experiment=guardian", "users=3", "weeks=3", "~arms", "+arms.rookie=[seeds=rookie]", "reference=rookie"]
    with logs_alone():
        return skg_bench.run([*words, "contrasts=[]", f"out={folder}"])


@pytest.mark.req("P10", "P12")
def test_books_of_a_run_come_back_from_a_store_as_they_were(run: skg_bench.Run, tmp_path: Path) -> None:
    address, arm = str(tmp_path / "books.db"), run.arms[0]
    code, out, _ = call("skillbook", "push", str(run.path), address, "--arm", arm)
    assert code == 0
    assert f"3 skillbooks of arm {arm} stored" in " ".join(out.split())
    assert call("skillbook", "pull", str(tmp_path / "books"), address)[0] == 0
    files = sorted(path.name for path in (tmp_path / "books").iterdir())
    assert files == ["user-0.json", "user-1.json", "user-2.json"]
    assert call("skillbook", "convert", str(run.path), "--arm", arm, "--to", "v2", "--out", str(tmp_path / "x"))[0] == 0
    for name in files:
        pulled, converted = (read_ace_book(tmp_path / folder / name) for folder in ("books", "x"))
        assert pulled.batches == (f"{run.manifest['identity']}/{arm}/{name[5]}",)
        assert replace(pulled, batches=()) == converted
        assert pulled.skills
        assert list(pulled.skills) == list(converted.skills)
    assert call("skillbook", "show", str(tmp_path / "books" / "user-0.json"))[0] == 0


def test_books_that_are_stored_already_are_not_stored_again(run: skg_bench.Run, tmp_path: Path) -> None:
    address, arm = str(tmp_path / "books.db"), run.arms[0]
    code, out, _ = call("skillbook", "push", str(run.path), address, "--arm", arm, "--user", "1")
    assert (code, "1 skillbook of arm" in " ".join(out.split())) == (0, True)
    with at_address(address) as books:
        books.update("user-1", batch(add("Buys at noon.")), key="later")
        before = books.store.load("user-1")
        code, out, _ = call("skillbook", "push", str(run.path), address, "--arm", arm)
        assert code == 0
        assert "2 skillbooks" in out
        assert "1 was stored there before" in out
        assert books.store.load("user-1") == before
        books.store.swap("user-1", 2, '{"schema_version":"2"}', "another")
        code, _, error = call("skillbook", "push", str(run.path), address, "--arm", arm)
        assert code == 2
        assert "another skillbook of user-1, which stays; push into another store; stored are 0 new" in error


def test_users_of_any_name_get_files_of_their_own_in_the_folder(tmp_path: Path) -> None:
    address, names = str(tmp_path / "books.db"), ["../x", "..", "a/b", "Zoë", "a b"]
    with at_address(address) as books:
        for name in names:
            books.update(name, batch(add("Buys at noon.")), key="k")
    assert call("skillbook", "pull", str(tmp_path / "books"), address)[0] == 0
    assert len(list((tmp_path / "books").iterdir())) == 5
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["books"]
    assert call("skillbook", "pull", str(tmp_path / "some"), address, "--user", "a b")[0] == 0
    assert [path.name for path in (tmp_path / "some").iterdir()] == ["a b.json"]


def test_what_cannot_be_moved_is_refused_and_leaves_nothing(run: skg_bench.Run, tmp_path: Path) -> None:
    missing, empty, out = str(tmp_path / "missing.db"), str(tmp_path / "empty.db"), str(tmp_path / "books")
    at_address(empty).users()
    for words, message in (
        (("push", str(tmp_path), empty, "--arm", "skg"), "is no run"),
        (("push", str(run.path), empty, "--arm", "nobody"), "has no arm"),
        (("push", str(run.path), empty, "--arm", run.arms[0], "--user", "9"), "has users 0 to 2"),
        (("pull", out, missing), "is no file; name a file that `skillbook push` has made"),
        (("pull", out, empty), "holds no skillbooks"),
        (("pull", out, empty, "--user", "anna"), "has no skillbook of 'anna'"),
        (("pull", str(tmp_path), empty), "is there already"),
    ):
        code, _, error = call("skillbook", *words)
        assert (code, message in error) == (2, True), error
    assert not Path(missing).exists()
    assert not Path(out).exists()


def test_users_of_an_unfinished_run_who_are_not_played_yet_have_no_skillbook(tmp_path: Path) -> None:
    """Empty skillbooks were stored for them, and stayed when the run was finished: *stored there before*."""
    folder, address = str(tmp_path / "run"), str(tmp_path / "books.db")
    words = ["users=257", "weeks=1", "~arms", "+arms.all=[curator=everything]"]
    words += ["reference=all", "contrasts=[]", f"out={folder}", "workers=1"]
    with logs_alone():
        assert call("run", *words, "part=1/2")[0] == 0
        there = Run(folder).numbers("all")
        assert there in ([0], [1])
        (missing, made) = (256, 0) if there == [0] else (0, 256)
        for command in (["push", folder, address], ["convert", folder, "--out", str(tmp_path / "books")]):
            code, _, error = call("skillbook", *command, "--arm", "all")
            assert (code, f"user {missing}: this user is not played yet; finish the run" in error) == (2, True)
        assert not Path(address).exists()
        assert call("skillbook", "show", folder, "--arm", "all", "--user", str(missing))[0] == 2
        assert call("skillbook", "push", folder, address, "--arm", "all", "--user", str(made))[0] == 0
        skg_bench.run(words)
    code, out, _ = call("skillbook", "push", folder, address, "--arm", "all")
    assert (code, "256 skillbooks of arm all stored" in out, "1 was stored there before" in out) == (0, True, True)


def test_a_database_of_somebody_else_stays_as_it_is_when_it_is_read(tmp_path: Path) -> None:
    """It got a table and a journal of another kind, and `pull` said that nothing is written."""
    file = tmp_path / "places.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("create table places (url text)")
    before = file.read_bytes()
    code, _, error = call("skillbook", "pull", str(tmp_path / "books"), str(file))
    assert (code, "holds no skillbooks; nothing is written" in error) == (2, True)
    with at_address(str(file)) as books:
        assert (books.load("anna"), books.prompt("anna"), books.users()) == (None, "", [])
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["places.db"]


def test_one_skillbook_is_no_plural(run: skg_bench.Run, tmp_path: Path) -> None:
    address = str(tmp_path / "books.db")
    call("skillbook", "push", str(run.path), address, "--arm", run.arms[0], "--user", "1")
    assert "/books, 1 skillbook\n" in call("skillbook", "pull", str(tmp_path / "books"), address)[1]


def test_a_name_that_is_too_long_for_a_file_is_told_before_anything_is_written(tmp_path: Path) -> None:
    address = str(tmp_path / "books.db")
    with at_address(address) as books:
        for user in ("ä" * 41, "ä" * 42, "anna"):
            books.update(user, batch(add("Buys at noon.")), key="k")
    code, _, error = call("skillbook", "pull", str(tmp_path / "books"), address)
    assert (code, "the name of user 'ääää" in error, "name the others with --user" in error) == (2, True, True)
    assert not (tmp_path / "books").exists()
    named = ["--user", "ä" * 41, "--user", "anna"]
    assert call("skillbook", "pull", str(tmp_path / "books"), address, *named)[0] == 0
    assert len([*(tmp_path / "books").iterdir()]) == 2
