"""Ctrl-C once and twice, and SIGTERM: the command ends soon, says how to go on, and leaves no process."""

import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.test_cli import ENVIRONMENT, ROOT, process
from tests.processes import await_end, await_workers, needs_proc, workers

WORDS = [
    "run", "users=3", "weeks=1", "simulator.corpus=builtin_120", "arms={skg: [], never: [policy=never]}", "cohort=1",
    "workers=2", "out=here",
]  # fmt: skip
Running = subprocess.Popen[str]


def starting(running: Running, _folder: Path) -> bool:
    """The first worker has just been started."""
    return len(workers(running.pid)) > 0


def at_work(_running: Running, folder: Path) -> bool:
    """The first shard is there: the other one, tables and page are left to make."""
    return any(folder.glob("here/turns/*.parquet"))


def importing(running: Running, _folder: Path) -> bool:
    """The first process of the run has begun to import: its Python handles Ctrl-C."""
    caught = [
        line.split()[1]
        for pid in workers(running.pid)[:1]
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("SigCgt")
    ]
    return any(int(mask, 16) & 1 << signal.SIGINT - 1 for mask in caught)


def ended(
    folder: Path, when: Callable[[Running, Path], bool], send: Callable[[int], None], *more: str
) -> tuple[int, str]:
    """Exit code and standard error of a run to whose process `send` sends signals at this moment."""
    with process([*WORDS, *more], folder) as running:
        try:
            deadline = time.monotonic() + 60
            while not when(running, folder):
                assert running.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.002)
            children = workers(running.pid)
            send(running.pid)
            _, err = running.communicate(timeout=20)
        finally:
            running.kill()
        await_end(children)
        return running.returncode, err


def twice(pid: int) -> None:
    """Ctrl-C as a terminal sends it, to the whole group; and once more."""
    os.killpg(pid, signal.SIGINT)
    time.sleep(0.15)
    try:
        os.killpg(pid, signal.SIGINT)
    except ProcessLookupError:  # the first one was enough
        return


@needs_proc
@pytest.mark.parametrize("when", [pytest.param(starting, marks=pytest.mark.soak), at_work])
def test_ctrl_c_twice_ends_at_once_without_a_traceback(tmp_path: Path, when: Callable[[Running, Path], bool]) -> None:
    code, err = ended(tmp_path, when, twice)
    assert code in (130, -signal.SIGINT)  # Python gives handlers up while it ends; a shell shows 130 for both
    assert "Traceback" not in err


@needs_proc
@pytest.mark.parametrize(
    ("when", "sent"),
    [
        (starting, signal.SIGINT),
        (at_work, signal.SIGTERM),
        pytest.param(starting, signal.SIGTERM, marks=pytest.mark.soak),
        pytest.param(at_work, signal.SIGINT, marks=pytest.mark.soak),
    ],
)
def test_one_signal_ends_with_130_and_how_to_go_on_and_leaves_no_half_file(
    tmp_path: Path, when: Callable[[Running, Path], bool], sent: signal.Signals
) -> None:
    code, err = ended(tmp_path, when, lambda pid: os.killpg(pid, sent))
    assert code == 130
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    assert not [file for file in tmp_path.rglob("*") if "tmp" in file.name.split(".")]


@needs_proc
def test_ctrl_c_while_a_tracker_starts_prints_no_traceback_of_its_process(tmp_path: Path) -> None:
    tracker = ("tracker=opik", "tracker.url=http://127.0.0.1:9/api")
    code, err = ended(tmp_path, importing, lambda pid: os.killpg(pid, signal.SIGINT), *tracker)
    assert code == 130
    assert "Traceback" not in err


LATE = """
import os, signal, sys, time
from skg_bench.app.interrupts import install_handlers

class Late:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
install_handlers()
last = Late()  # at the end of Python nothing is left to interrupt
try:
    late = Late()
    del late
    time.sleep(20)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_counts_while_an_object_is_destroyed() -> None:
    """Python ignores exceptions there, and prints a traceback."""
    command = [sys.executable, "-c", LATE]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=15)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


EARLY = """
import os, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == "typer":  # as all that takes time it is imported by the command line
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
sys.meta_path.insert(0, Finder())
sys.argv[1:] = ["--help"]
from skg_bench.__main__ import main
main()
"""


def test_ctrl_c_while_the_command_line_is_imported_ends_it_without_a_traceback() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert scripts == {"skg-bench": "skg_bench.__main__:main"}
    command = [sys.executable, "-c", EARLY]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=15)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


STUCK = """
import time
from multiprocessing import get_context
from skg_bench.app.interrupts import install_handlers

if __name__ == "__main__":
    install_handlers()
    child = get_context("spawn").Process(target=time.sleep, args=(600,))
    child.start()
    try:
        print("ready", flush=True)
        child.join()
    finally:
        print("cleaning", flush=True)
        child.join()
"""


@needs_proc
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_kills_all_children_however_long_the_first_one_takes(
    tmp_path: Path, sent: signal.Signals
) -> None:
    (tmp_path / "stuck.py").write_text(STUCK)
    with subprocess.Popen(
        [sys.executable, "stuck.py"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as running:
        try:
            assert running.stdout is not None
            for line in ("ready", "cleaning"):
                assert running.stdout.readline().strip() == line
                children = await_workers(running.pid)
                running.send_signal(sent)
            _, err = running.communicate(timeout=20)
        finally:
            running.kill()
    assert len(children) == 1
    await_end(children)
    assert (running.returncode, err) == (130, "")


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    script = (
        "import signal as s; from skg_bench.app import interrupts as i; i.install_handlers(); "
        "print(s.getsignal(s.SIGINT))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert done.stdout.strip() == str(signal.SIG_IGN)
