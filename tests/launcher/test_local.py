"""Worker processes: tasks are done once each and in order of results, whatever becomes of the processes."""

import errno
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import active_children, reduction
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import pytest

from skg_bench.core.errors import BudgetReached, UsageError
from skg_bench.launcher import local
from skg_bench.launcher.local import Local
from tests.launcher.lab import LARGE, Lab
from tests.processes import await_end, needs_proc, workers

pytestmark = pytest.mark.usefixtures("fresh_workers")


def carry_out(
    job: Lab, given: list[tuple[str, int, bytes]], n: int, folder: Path, progress: Callable[[int], None] | None = None
) -> list[int]:
    """Results of these tasks by `n` workers."""
    return Local().carry_out(job, given, n, folder, progress or (lambda _steps: None))


def tasks(*what: str) -> list[tuple[str, int, bytes]]:
    """Numbered from 1, each larger than a pipe."""
    return [(one, number, LARGE) for number, one in enumerate(what, 1)]


def empty(folder: Path) -> bool:
    """Whether no file of tasks is left, and no process."""
    return not list(folder.glob(".work.*.tmp")) and not active_children()


@pytest.mark.parametrize("n", [1, 2, 9])
def test_results_are_in_order_of_tasks_and_progress_counts_all_steps(tmp_path: Path, n: int) -> None:
    said: list[int] = []
    assert carry_out(Lab(tmp_path), tasks(*["do"] * 5), n, tmp_path, said.append) == [-1, -2, -3, -4, -5]
    assert said[-1] == 15
    assert said == sorted(said)
    assert empty(tmp_path)
    assert carry_out(Lab(tmp_path), [], n, tmp_path) == []


def test_the_file_of_tasks_is_touched_as_other_machines_take_an_old_one_for_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ages = list[float]()

    def look(_steps: int) -> None:
        for file in tmp_path.glob(".work.*.tmp"):
            ages.append(time.time() - file.stat().st_mtime)
            os.utime(file, (0, 0))

    monkeypatch.setattr(local, "_TOUCH", 0.0)
    carry_out(Lab(tmp_path), tasks("do", "do"), 2, tmp_path, look)
    assert len(ages) > 1
    assert max(ages) < 600


def test_a_task_whose_worker_dies_is_begun_again_and_the_other_worker_goes_on(tmp_path: Path) -> None:
    what = ["die once", "do", "die once", "do", "die once", "do", "die once"]
    assert carry_out(Lab(tmp_path), tasks(*what), 2, tmp_path) == [-1, -2, -3, -4, -5, -6, -7]
    assert empty(tmp_path)


def test_a_task_that_kills_every_worker_is_given_up_after_all_others_are_done(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"6 workers in a row died .* run the same command again .* \(now 2\)"):
        carry_out(Lab(tmp_path), tasks("die", "do", "do", "do"), 2, tmp_path)
    assert len(list(tmp_path.glob("begun *"))) == 4
    assert empty(tmp_path)


def test_a_worker_keeps_the_answer_that_it_waits_for_when_another_one_has_spent_the_budget(tmp_path: Path) -> None:
    with pytest.raises(BudgetReached):
        carry_out(Lab(tmp_path), tasks("be asking", "spend"), 2, tmp_path)
    assert (tmp_path / "answered").exists()
    assert empty(tmp_path)


def test_workers_that_do_not_start_are_replaced_and_given_up_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hang").touch()
    monkeypatch.setattr(local, "_START", 0.5)
    monkeypatch.setattr(local, "_DEATHS", 1)
    before = time.monotonic()
    with pytest.raises(UsageError, match="did not start within"):
        carry_out(Lab(tmp_path), tasks("do", "do"), 2, tmp_path)
    assert time.monotonic() - before < 15
    assert empty(tmp_path)


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.2])
def test_a_worker_that_dies_before_it_reads_what_it_was_given_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delay: float
) -> None:
    (tmp_path / "slow").touch()  # or a worker has done its tasks before it is killed
    begin, killed = SpawnProcess.start, list[SpawnProcess]()

    def start(process: SpawnProcess) -> None:
        begin(process)
        if len(killed) < 3:
            killed.append(process)
            threading.Timer(delay, process.kill).start()

    monkeypatch.setattr(SpawnProcess, "start", start)
    assert carry_out(Lab(tmp_path), tasks("do", "do", "do"), 2, tmp_path) == [-1, -2, -3]
    assert len(killed) == 3
    assert empty(tmp_path)


def test_what_a_worker_is_given_at_its_start_is_small_even_if_the_command_line_is_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", words := ["skg-bench", "x" * (1 << 20)])
    dump, given = reduction.dump, dict[str, io.BytesIO]()

    def watched(what: Any, file: io.BytesIO) -> None:
        dump(what, file)
        given["last"] = file

    monkeypatch.setattr(reduction, "dump", watched)
    assert carry_out(Lab(tmp_path), tasks("do", "do"), 2, tmp_path) == [-1, -2]
    assert given["last"].getbuffer().nbytes < 4096  # the least that a pipe holds
    assert sys.argv is words


def test_an_error_of_a_task_is_raised_as_it_is_with_the_workers_traceback(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="task 2 is wrong; give another one") as error:
        carry_out(Lab(tmp_path), tasks("wait", "fail"), 2, tmp_path)
    assert "in run" in error.value.__notes__[0]
    assert empty(tmp_path)


def test_an_error_that_cannot_be_sent_comes_as_text(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="OwnError: oneother"):
        carry_out(Lab(tmp_path), tasks("wait", "fail oddly"), 2, tmp_path)
    assert empty(tmp_path)


def test_a_file_of_tasks_is_private_and_nothing_else_is_unpickled(tmp_path: Path) -> None:
    with local._file(["one", "other"], tmp_path) as parts:
        (file,) = tmp_path.iterdir()
        assert file.stat().st_mode & 0o777 == 0o600
        assert [part.load() for part in parts] == ["one", "other"]
        file.write_bytes(file.read_bytes().replace(b"other", b"OTHER"))
        assert parts[0].load() == "one"
        with pytest.raises(UsageError, match=r"work\..*\.tmp was changed by another program"):
            parts[1].load()
    assert empty(tmp_path)


def test_a_file_that_cannot_be_removed_hides_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, a disk that became read-only had an error that named this file, and nothing of what went wrong."""

    def refuse(file: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(file))

    def fail() -> None:
        with local._file(["one"], tmp_path):
            monkeypatch.setattr(Path, "unlink", refuse)
            raise UsageError("what went wrong")

    with pytest.raises(UsageError, match="what went wrong"):
        fail()


def test_an_interrupted_job_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    def interrupt(steps: int) -> None:
        if steps:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(Lab(tmp_path), tasks("wait", "wait"), 2, tmp_path, interrupt)
    assert empty(tmp_path)


def test_ctrl_c_while_a_worker_starts_interrupts_when_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, whole = SpawnProcess.start, []

    def start(process: SpawnProcess) -> None:
        signal.raise_signal(signal.SIGINT)
        begin(process)
        whole.append(process)

    monkeypatch.setattr(SpawnProcess, "start", start)
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            carry_out(Lab(tmp_path), tasks("do", "do"), 2, tmp_path)
    finally:
        signal.signal(signal.SIGINT, before[0])
    assert len(whole) == 1
    assert signal.getsignal(signal.SIGTERM) == before[1]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())
    assert empty(tmp_path)


@needs_proc
def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    script = (
        "from pathlib import Path\nfrom tests.launcher.test_local import Lab, carry_out, tasks\n"
        "if __name__ == '__main__': carry_out(Lab(Path.cwd()), tasks('wait', 'wait'), 2, Path.cwd())\n"
    )
    (tmp_path / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(root)}
    parent = subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, env=environment)
    try:
        deadline = time.monotonic() + 30
        while len(list(tmp_path.glob("begun *"))) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        children = workers(parent.pid)
        assert len(children) == 2
    finally:
        parent.kill()
        parent.wait()
    await_end(children)
