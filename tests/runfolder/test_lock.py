"""Locks of a run folder, held by real processes."""

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from skg_bench.core.errors import UsageError
from skg_bench.core.processes import this_process
from skg_bench.runfolder import lock as module
from skg_bench.runfolder.lock import held
from tests.processes import needs_proc
from tests.runfolder.locks import begin, forged, granted, holder, locks, refused

# --------------------------------------------------------------------------------------------------- processes


def test_a_second_process_is_refused_and_told_which_one_is_first(tmp_path: Path) -> None:
    with holder(tmp_path, "part 3/16") as process:
        message = refused(tmp_path, "run")
        owner = f"process {process.pid} on host {this_process().host}"
        assert message.startswith(f"{tmp_path} is being run by {owner} since 2")
        assert message.endswith(" UTC (part 3/16); wait for it, or stop it, and run the same command again")
        (file,) = locks(tmp_path)  # the refused process has left none
        assert json.loads(file.read_text())["command"] == "-c"
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0
    assert locks(tmp_path) == []


@needs_proc
def test_the_lock_of_a_killed_process_is_taken_over_at_once(tmp_path: Path) -> None:
    with holder(tmp_path, "run") as process:
        process.send_signal(signal.SIGKILL)
        while ") Z " not in Path(f"/proc/{process.pid}/stat").read_text():
            time.sleep(0.01)
        assert len(locks(tmp_path)) == 1
        assert granted(tmp_path)  # though its parent has not read its exit code yet
        forged(tmp_path, replace(this_process(), process=process.pid))
    assert granted(tmp_path)


AGAIN = """
import sys
from pathlib import Path
from skg_bench.runfolder.lock import held
for _ in range(300):
    with held(Path(sys.argv[1]), "run"):
        pass
"""


def test_no_lock_is_ever_seen_that_does_not_say_whose_it_is(tmp_path: Path) -> None:
    """One of a process that is killed at that moment would stand for two minutes."""
    seen = 0
    with begin(AGAIN, tmp_path) as process:
        while process.poll() is None:
            for file in locks(tmp_path):
                with suppress(FileNotFoundError):
                    assert json.loads(file.read_text())["process"] == process.pid
                    seen += 1
    assert (process.returncode, list(tmp_path.iterdir())) == (0, [])
    assert seen > 10


def test_waiting_ends_with_the_lock_when_its_owner_ends(tmp_path: Path) -> None:
    with holder(tmp_path, "run") as process, ExitStack() as stack:
        assert process.stdin is not None
        end = threading.Timer(0.3, process.stdin.close)
        end.start()
        stack.enter_context(held(tmp_path, "tables", wait=20.0)).check()
        end.join()


RACE = """
import os, random, sys, time
from pathlib import Path
from skg_bench.runfolder import lock as module
from skg_bench.runfolder.lock import held
def slow(others):
    def listed(path, slug):  # so that others come between a look and what follows from it
        result = others(path, slug)
        time.sleep(random.choice((0.0, 0.0, 0.01)))
        return result
    return listed
module._others = slow(module._others)
folder, times = Path(sys.argv[1]), int(sys.argv[2])
count, marker = folder / "count", folder / "marker"
print("ready", flush=True)
sys.stdin.readline()
for i in range(times):
    with held(folder, sys.argv[3], wait=60.0) as lock:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        n = int(count.read_text())
        time.sleep(0.001)
        count.write_text(str(n + 1))
        lock.check()
        marker.unlink()
"""


def test_many_processes_that_want_the_same_lock_never_hold_it_at_once_and_all_get_it(tmp_path: Path) -> None:
    (tmp_path / "count").write_text("0")
    crew = [begin(RACE, tmp_path, 8, ("run", "tables")[i % 2]) for i in range(12)]
    go(crew)
    for process in crew:
        error = process.communicate(timeout=60)[1]
        assert process.returncode == 0, error
    assert (tmp_path / "count").read_text() == "96"
    assert locks(tmp_path) == []


def go(crew: "list[subprocess.Popen[str]]") -> None:
    """Let all begin at the same moment."""
    for process in crew:
        assert process.stdout is not None
        process.stdout.readline()
    for process in crew:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()


ONCE = """
import sys
from pathlib import Path
from skg_bench.runfolder.lock import Locked, held
print("ready", flush=True)
sys.stdin.readline()
try:
    with held(Path(sys.argv[1]), "run"):
        print("held", flush=True)
        sys.stdin.read()
except Locked as error:
    print(error, flush=True)
"""


@pytest.mark.parametrize("turn", range(3))
def test_of_processes_that_begin_at_the_same_moment_one_gets_the_lock(turn: int, tmp_path: Path) -> None:
    crew = [begin(ONCE, tmp_path) for _ in range(5)]
    go(crew)
    lines = [process.stdout.readline() for process in crew if process.stdout is not None]
    for process in crew:
        process.communicate(timeout=20)
    assert lines.count("held\n") == 1, lines
    owner = crew[lines.index("held\n")].pid
    assert sum(f"by process {owner} on host" in line for line in lines) == 4, lines


def test_a_forked_child_that_leaves_the_block_does_not_remove_the_lock(tmp_path: Path) -> None:
    code = """
import os, sys
from pathlib import Path
from skg_bench.runfolder.lock import held
with held(Path(sys.argv[1]), "run") as lock:
    if not (child := os.fork()):
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    lock.check()
"""
    process = begin(code, tmp_path)
    assert (process.communicate(timeout=20)[1], process.returncode) == ("", 0)
    assert locks(tmp_path) == []


# ------------------------------------------------------------------------------------------------------ holding


def test_a_folder_that_was_moved_is_noticed_and_stays_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, moved = tmp_path / "run", tmp_path / "moved"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    with held(Path("run"), "run") as lock:
        monkeypatch.chdir("/")
        lock.check()
        folder.rename(moved)
        folder.mkdir()  # as another process would that is given the old name
        with pytest.raises(UsageError, match=r"^run was moved or deleted .* Run the same command again"):
            lock.check()
        folder.rmdir()
        moved.rename(folder)
        with pytest.raises(UsageError):
            lock.check()


def test_touches_go_on_after_a_fault_and_find_that_the_file_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BEAT", 0.01)
    touches, touch = iter(range(1_000_000)), os.utime
    errors = {3: PermissionError(13, "denied"), 4: OSError(5, "input/output error"), 5: OSError(116, "stale")}

    def faulty(path: Path) -> None:
        if error := errors.pop(next(touches), None):
            raise error
        touch(path)

    monkeypatch.setattr(os, "utime", faulty)
    with held(tmp_path, "run") as lock:
        while errors:
            time.sleep(0.01)
        touch(lock.path, (0.0, 0.0))
        while lock.path.stat().st_mtime == 0.0:
            time.sleep(0.01)
        lock.check()
        lock.path.unlink()
        while not lock.gone:
            time.sleep(0.01)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_the_lock_ends_with_the_block_however_it_ends(error: type[BaseException], tmp_path: Path) -> None:
    def threads() -> list[str]:
        return [thread.name for thread in threading.enumerate()]

    def work() -> None:
        with held(tmp_path, "run"):
            assert "lock" in threads()
            raise error

    with pytest.raises(error):
        work()
    assert locks(tmp_path) == []
    assert "lock" not in threads()


def test_a_folder_that_vanished_is_no_error_at_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with held(folder, "run"):
        shutil.rmtree(folder)
    assert not folder.exists()


def test_a_process_that_never_leaves_the_block_ends_all_the_same(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from skg_bench.runfolder import lock\n"
        "sys.kept = lock.held(Path(sys.argv[1]), 'run'); sys.kept.__enter__()"
    )
    process = begin(code, tmp_path)
    assert (process.communicate(timeout=10)[1], process.returncode) == ("", 0)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    for folder in (tmp_path / "absent", Path(__file__)):
        with pytest.raises(OSError, match=f"'{folder}'$"), held(folder, "run"):
            pass
    assert not (tmp_path / "absent").exists()


def test_a_full_disk_is_named_and_no_file_is_left(tmp_path: Path) -> None:
    code = """
import resource, sys
from pathlib import Path
from skg_bench.runfolder.lock import held
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
with held(Path(sys.argv[1]), "run"):
    pass
"""
    process = begin(code, tmp_path)
    assert process.communicate(timeout=20)[1].rstrip().endswith(f"File too large: '{tmp_path}'")
    assert locks(tmp_path) == []


def test_no_value_of_the_command_line_is_written() -> None:
    words = {
        "skg-bench run": ["/usr/bin/skg-bench", "run", "llm.key=secret"],
        "skg-bench": ["skg-bench", "llm.key=secret"],
        "script.py": ["/home/anna/script.py", "secret"],
        "": [],
    }
    assert {module._command(line): line for line in words.values()} == words
    assert module._command(["/x/skg_bench/__main__.py", "run", "secret"]) == "skg-bench run"
