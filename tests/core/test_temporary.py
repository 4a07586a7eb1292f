"""Files that are whole or absent, and what killed processes leave."""

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from skg_bench.core import processes as module
from skg_bench.core.processes import this_process
from skg_bench.core.temporary import PUBLIC_MODE, replace_whole, sweep, temporary, write_private
from tests.processes import needs_proc
from tests.runfolder.locks import aged, begin

KILLED = """
import os, sys
from pathlib import Path
from skg_bench.core.temporary import replace_whole
os.fsync = lambda handle: os.kill(os.getpid(), 9)
replace_whole(Path(sys.argv[1]), b"new")
"""
FULL = """
import resource, sys
from pathlib import Path
from skg_bench.core.temporary import replace_whole
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
replace_whole(Path(sys.argv[1]), bytes(1000))
"""


@needs_proc
def test_a_name_says_whose_it_is(tmp_path: Path) -> None:
    owner = this_process()
    name = temporary(tmp_path / "skg.3.parquet").name
    form = rf"\.skg\.3\.parquet\.{owner.host}\.{os.getpid()}-{owner.start}-[0-9a-f]{{8}}\.[0-9a-f]{{8}}\.tmp"
    assert re.fullmatch(form, name)
    assert temporary(tmp_path / "skg.3.parquet").name != name


@pytest.mark.parametrize("name", ["a" * 255, "ü" * 127, "日" * 85, os.fsdecode(b"\xff" * 200)])
def test_a_long_name_has_a_temporary_too(name: str, tmp_path: Path) -> None:
    replace_whole(tmp_path / name, b"x")
    assert [file.name for file in tmp_path.iterdir()] == [name]
    temporary(tmp_path / name).touch()
    assert sweep(tmp_path) == []
    assert len(list(tmp_path.iterdir())) == 2


def test_a_file_is_replaced_by_a_whole_one(tmp_path: Path) -> None:
    for data in (b"", b"old", bytes(100_000)):
        replace_whole(tmp_path / "file", data)
        assert (tmp_path / "file").read_bytes() == data
    assert len(list(tmp_path.iterdir())) == 1


@needs_proc
def test_what_a_killed_process_left_is_removed_and_the_file_is_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    process = begin(KILLED, file)
    process.communicate(timeout=20)
    assert process.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 2
    (removed,) = sweep(tmp_path)
    assert f".{process.pid}-" in removed.name
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_bytes() == b"old"


def test_a_full_disk_leaves_the_file_as_it_was_and_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    process = begin(FULL, file)
    assert process.communicate(timeout=20)[1].rstrip().endswith(f"File too large: '{file}'")
    assert [entry.read_bytes() for entry in tmp_path.iterdir()] == [b"old"]


def test_a_new_file_on_a_full_disk_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    code = FULL.replace("replace_whole", "write_private").replace("bytes(1000)", "'x' * 1000")
    done = begin(code, tmp_path / "sheet.csv").communicate()[1]
    assert f"'{tmp_path / 'sheet.csv'}'" in done.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_vanished_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        replace_whole(tmp_path / "absent" / "file", b"x")
    assert raised.value.filename == str(tmp_path / "absent" / "file")  # no temporary, which is gone
    with pytest.raises(FileNotFoundError):
        sweep(tmp_path / "absent")
    assert list(tmp_path.iterdir()) == []


def test_a_file_never_takes_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_whole(tmp_path / "folder", b"x")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(5, "input/output error")])
def test_an_interrupt_leaves_nothing(
    error: BaseException | type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_handle: int) -> None:
        raise error

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(error if isinstance(error, type) else type(error)):
        replace_whole(tmp_path / "file", b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("number", "raised"), [(22, False), (95, False), (5, True)])
def test_only_a_file_system_that_cannot_synchronize_folders_may_refuse_to(
    number: int, raised: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def second_fails(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", second_fails)
    if raised:
        with pytest.raises(OSError, match=f"'{tmp_path}'$"):
            replace_whole(tmp_path / "file", b"x")
    else:
        replace_whole(tmp_path / "file", b"x")
    assert len(calls) == 2
    assert (tmp_path / "file").read_bytes() == b"x"


# ------------------------------------------------------------------------------------------------------- sweep


def renamed(file: Path, change: Callable[[str], str]) -> Path:
    """A temporary of another process: its number, start or machine is another one."""
    file.touch()
    return file.rename(file.with_name(change(file.name)))


def of_the_machine(name: str) -> str:
    digest = name.split(".")[-3].rpartition("-")[2]
    return name.replace(digest, "00000000")


@needs_proc
def test_whose_process_is_gone_is_removed_and_all_else_stays(tmp_path: Path) -> None:
    owner = this_process()
    kept = [
        temporary(tmp_path / "file"), tmp_path / "file.tmp", tmp_path / ".file.tmp", tmp_path / "work.x.tmp",
        tmp_path / f".lock.run.{owner.host}.1.01234567", tmp_path / f".file.{owner.host}.1.01234567.tmp",
    ]  # fmt: skip
    for file in kept:
        file.touch()
        aged(file, 1e6)  # the first one's process is alive, however long it takes
    later = renamed(temporary(tmp_path / "file"), lambda name: name.replace(f"-{owner.start}-", "-1-"))
    absent = renamed(temporary(tmp_path / "file"), lambda name: name.replace(f".{owner.process}-", f".{2**22 - 1}-"))
    number = renamed(temporary(tmp_path / "file"), lambda name: name.replace(f".{owner.process}-", ".9999999999-"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / later.name).touch()
    (tmp_path / later.name.replace("file", "other")).mkdir()
    (tmp_path / later.name.replace("file", "link")).symlink_to("file")
    assert sweep(tmp_path) == sorted([later, absent])
    assert all(file.exists() for file in [*kept, number])
    assert len(list(tmp_path.iterdir())) == len(kept) + 4
    assert (tmp_path / "folder" / later.name).exists()


@pytest.mark.parametrize("proc", [True, False])
def test_another_machines_temporary_stays_for_an_hour(
    proc: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no machine has /proc, and where a container has the same host name."""
    if not proc:
        monkeypatch.setattr(module, "_machine", lambda _pid: "")
    file = temporary(tmp_path / "file")
    file = renamed(file, of_the_machine if proc and this_process().machine else str)
    aged(file, 3500.0)
    assert sweep(tmp_path) == []
    aged(file, 200.0)
    assert sweep(tmp_path) == [file]
    assert list(tmp_path.iterdir()) == []


def test_files_are_for_their_owner_only_unless_they_are_for_others(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        replace_whole(tmp_path / "messages", b"x")
        replace_whole(tmp_path / "verdict", b"x", mode=PUBLIC_MODE)
        write_private(tmp_path / "text", "a\nb")
    finally:
        os.umask(before)
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes == {"messages": 0o600, "verdict": 0o644, "text": 0o600}
