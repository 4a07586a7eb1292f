"""Whether the process of a lock is still alive, and what excludes what."""

import json
import os
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from skg_bench.core import processes as process_module
from skg_bench.core.processes import this_process
from skg_bench.runfolder import lock as module
from skg_bench.runfolder.lock import held, worked_on
from tests.processes import needs_proc
from tests.runfolder.locks import aged, elsewhere, forged, granted, locks, refused


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock is refused after one look, as no other process begins at the same moment."""
    for name, value in {"_LOOKS": 1, "_PATIENCE": 0.0}.items():
        monkeypatch.setattr(module, name, value)


def test_a_process_of_another_machine_is_judged_by_its_touches(tmp_path: Path) -> None:
    file = forged(tmp_path, elsewhere(), 40.0)
    message = refused(tmp_path)
    assert f"by process {os.getpid()} on host beta since 2026-11-24 09:12 UTC; wait for it" in message
    assert (
        "again. Its last sign of life was 40 s ago; it counts as gone, and the command goes on, 120 s after" in message
    )
    aged(file, 90.0)
    assert granted(tmp_path)
    assert not file.exists()


@pytest.mark.parametrize("skew", [-7200.0, 7200.0])
def test_only_the_clock_of_the_file_system_matters(
    skew: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system on a server two hours ahead or behind, whose clock every touch gives."""
    touch = os.utime

    def server(path: Path) -> None:
        now = time.time() + skew
        touch(path, (now, now))

    monkeypatch.setattr(os, "utime", server)
    file = tmp_path / ".lock.run.beta.1.01234567"
    file.write_text(json.dumps(asdict(elsewhere())))
    server(file)
    assert "0 s ago" in refused(tmp_path)
    now = time.time() + skew
    touch(file, (now - 130, now - 130))
    assert granted(tmp_path)


@pytest.mark.parametrize("error", [None, PermissionError])
def test_a_process_that_proc_hides_is_judged_by_its_touches(
    error: type[OSError] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(_process: int, _signal: int) -> None:
        if error is not None:
            raise error

    owner = replace(this_process(), machine="this boot 1")
    monkeypatch.setattr(process_module, "_machine", lambda _pid: owner.machine)
    monkeypatch.setattr(process_module, "_stat", lambda pid: None)
    monkeypatch.setattr(os, "kill", kill)
    file = forged(tmp_path, owner)
    assert "last sign of life" in refused(tmp_path)
    aged(file, 121.0)
    assert granted(tmp_path)


@pytest.mark.parametrize("age", [-31_536_000.0, -121.0, 121.0, 31_536_000.0])
def test_a_lock_of_another_machine_with_a_wrong_clock_does_not_block(age: float, tmp_path: Path) -> None:
    aged(forged(tmp_path, elsewhere()), age)
    assert not worked_on(tmp_path)
    assert granted(tmp_path)


def test_a_lock_that_is_a_little_ahead_is_one_of_a_living_process(tmp_path: Path) -> None:
    aged(forged(tmp_path, elsewhere()), -20.0)
    assert worked_on(tmp_path)
    assert "last sign of life was 0 s ago" in refused(tmp_path)


@needs_proc
def test_a_later_process_of_the_same_number_is_not_taken_for_the_owner(tmp_path: Path) -> None:
    forged(tmp_path, this_process())
    assert "is being run by" in refused(tmp_path)
    forged(tmp_path, replace(this_process(), start="1"))
    assert granted(tmp_path)


@pytest.mark.parametrize("machine", ["", "another boot 1"])
def test_another_container_of_the_same_host_name_is_another_machine(machine: str, tmp_path: Path) -> None:
    file = forged(tmp_path, replace(this_process(), process=2**22 - 1, machine=machine))
    assert "last sign of life" in refused(tmp_path)
    aged(file, 121.0)
    assert granted(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"\xff\x00", b"[" * 9_000, b"9" * 9_000, b" " * 20_000,
        b'{"host": "a\\u001b[2J", "process": 1, "start": "", "machine": ""}',
        b'{"host": "a", "process": 99999999999999, "start": "", "machine": "", "since": "0001-01-01T00:00+14:00"}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", [".lock.run.beta.4711.01234567", ".lock.\x1b", ".lock.part-x.y"])
def test_a_lock_that_cannot_be_read_is_judged_by_its_touches(name: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    message = refused(tmp_path, "tables")
    assert message.isprintable()
    assert "host" in message or repr(name) in message
    aged(file, 121.0)
    assert granted(tmp_path, "tables")


def test_what_is_no_file_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / ".lock.run.a").mkdir()
    (tmp_path / ".lock.run.b").symlink_to("nowhere")
    os.mkfifo(tmp_path / ".lock.run.c")
    assert granted(tmp_path)
    assert len(locks(tmp_path)) == 3


# ------------------------------------------------------------------------------------------------------- scopes

TOGETHER = {("part 0/2", "part 1/2"), ("part 0/2", "tables"), ("part 1/2", "tables"), ("part 0/3", "tables")}
SCOPES = ("run", "tables", "part 0/2", "part 1/2", "part 0/3")


@pytest.mark.parametrize("second", SCOPES)
@pytest.mark.parametrize("first", SCOPES)
def test_what_excludes_what(first: str, second: str, tmp_path: Path) -> None:
    with held(tmp_path, first):
        if {(first, second), (second, first)} & TOGETHER:
            assert granted(tmp_path, second)
        else:
            assert ("(" in refused(tmp_path, second)) == (first != "run")
    assert granted(tmp_path, second)


@pytest.mark.parametrize("scope", ["", "part", "part 1", "part 01/2", "part -1/2", "tables ", "part 1/2\n"])
def test_an_unknown_scope_is_a_fault_of_the_caller(scope: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="valid are"), held(tmp_path, scope):
        pass
    assert locks(tmp_path) == []
