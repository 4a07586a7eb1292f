"""Law 1: wherever a run is killed, it goes on to the same rows."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from multiprocessing.context import SpawnProcess
from pathlib import Path
from threading import Thread, Timer

import numpy as np
import pytest

from skg_bench.analysis import summary
from skg_bench.engine import execute
from skg_bench.engine.excerpt import events_of_user
from skg_bench.launcher.local import Local
from skg_bench.runfolder.run import Run
from tests.laws import world
from tests.laws.conftest import USERS
from tests.processes import await_end, needs_proc
from tests.processes import workers as workers_of

pytestmark = pytest.mark.usefixtures("fresh_workers")

ARMS = ("skg", "frozen_all", "epsilon", "frequency")


def start(
    out: Path, root: Path, users: int, workers: int, cohort: int = 16, arms: Sequence[str] = ARMS
) -> "subprocess.Popen[bytes]":
    """The run as a process of its own, in small cohorts, so that there are many shards."""
    command = [sys.executable, "-m", "tests.laws.world", str(out), str(users), str(cohort), str(workers), *arms]
    return subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def shards(out: Path) -> int:
    """Finished cohorts: what is kept of each are pieces, or shards."""
    return len([*(out / "turns").glob("*.parquet"), *(out / "pieces").glob("*.piece")])


def kill_once(out: Path, root: Path, users: int, workers: int, rng: np.random.Generator) -> bool:
    """Go on until a moment by chance after the next shard, and kill; False: it had finished before."""
    process, before = start(out, root, users, workers), shards(out)
    while shards(out) == before and process.poll() is None:
        time.sleep(0.02)
    time.sleep(float(rng.uniform(0, 0.5)))
    finished = process.poll() is not None
    orphans = workers_of(process.pid) if not finished else []
    process.kill()
    process.wait()
    await_end(orphans)  # workers end when their parent is gone
    return not finished


def finish(out: Path, root: Path, users: int, workers: int) -> Run:
    """Let it run to the end."""
    process = start(out, root, users, workers)
    assert process.wait(300) == 0
    return Run(out)


def alone(out: Path, users: int) -> Run:
    """A run that nothing disturbs, with its summary."""
    run = world.run(out, users, 256, 1, ARMS)
    summary.write_summary(run)
    return run


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return alone(tmp_path_factory.mktemp("undisturbed") / "run", 30)


def compare(base: Run, out: Path, undisturbed: Run, users: int) -> None:
    """Rows of the large run, and the summary of an undisturbed run; nothing left over."""
    run = Run(out)
    assert world.differences(base, run, range(users), ARMS) == []
    left = [f.name for f in out.rglob("*") if f.is_file() and f.suffix != ".parquet" and f.name != "manifest.json"]
    assert left == []
    summary.write_summary(run)
    assert (run.path / "summary.json").read_bytes() == (undisturbed.path / "summary.json").read_bytes()


@needs_proc
def test_a_run_that_is_killed_twice_gives_the_same_rows(
    base: Run, undisturbed: Run, tmp_path: Path, root: Path
) -> None:
    rng, out, killed = np.random.default_rng(2), tmp_path / "killed", 0
    for workers in (1, 2):
        killed += kill_once(out, root, 30, workers, rng)
    assert killed
    world.run(out, 30, 16, 1, ARMS)
    compare(base, out, undisturbed, 30)


def test_a_run_that_is_killed_and_resumed_has_the_same_shards_to_the_byte(
    large: Run, tmp_path: Path, root: Path
) -> None:
    out = tmp_path / "killed"
    process = start(out, root, world.TWO, 1, 125, world.LARGE)
    while shards(out) == 0:
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert world.shards(world.run(out, world.TWO, 125, 2, world.LARGE)) == world.shards(large)


def in_time(out: Path, users: int, arms: tuple[str, ...], look: Callable[[], None]) -> None:
    """Simulate by two workers of this process, which calls `look` again and again; fails if it waits for ever."""
    world.manifest(out, users, arms)
    made, ended = world.plan(users, arms), Future[None]()

    def simulate() -> None:
        try:
            execute.execute(made, out, cohort=16, workers=2, launcher=Local(), progress=lambda *_: look())
        except Exception as error:  # noqa: BLE001  it is raised in the test
            ended.set_exception(error)
        else:
            ended.set_result(None)

    Thread(target=simulate, daemon=True).start()
    ended.result(60)


@needs_proc
def test_a_worker_that_is_killed_is_replaced(base: Run, undisturbed: Run, tmp_path: Path) -> None:
    out, victims, others = tmp_path / "killed", list[int](), set[int]()

    def look() -> None:
        if victims:
            others.update(workers_of(os.getpid()))
        elif shards(out):
            victims.extend(workers_of(os.getpid()))
            os.kill(victims[0], signal.SIGKILL)

    in_time(out, 30, ARMS, look)
    assert len(victims) == 2
    assert others - set(victims)
    compare(base, out, undisturbed, 30)


@needs_proc
def test_workers_that_are_killed_while_they_start_are_replaced(
    base: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, arms, delays = tmp_path / "killed", ("skg", "frequency"), [0.3, 0.1, 0.0]
    begin, started = SpawnProcess.start, list[SpawnProcess]()

    def start(process: SpawnProcess) -> None:
        begin(process)
        started.append(process)
        if delays:
            Timer(delays.pop(), process.kill).start()

    monkeypatch.setattr(SpawnProcess, "start", start)
    in_time(out, 30, arms, lambda: None)
    assert len(started) == 5
    assert world.differences(base, Run(out), range(30), arms) == []
    assert {file.name for file in out.iterdir()} == {*world.LOGS, "pieces", "manifest.json"}
    assert not list((out / "pieces").iterdir())


@needs_proc
def test_counts_are_the_same_if_a_worker_is_killed_while_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, started = SpawnProcess.start, list[SpawnProcess]()

    def start(process: SpawnProcess) -> None:
        begin(process)
        started.append(process)
        if len(started) == 2:
            started[0].kill()

    monkeypatch.setattr(SpawnProcess, "start", start)
    monkeypatch.setattr(execute, "_CHUNK", 40)
    plan = world.plan(100, ("skg",))
    here = execute._counts(plan, tmp_path, 2, Local())
    assert not started  # so few are counted in this process
    monkeypatch.setattr(execute, "_COUNTED_HERE", 50)
    counts = execute._counts(plan, tmp_path, 2, Local())
    assert len(started) == 3
    assert not list(tmp_path.iterdir())
    assert counts.tolist() == here.tolist()
    assert counts.tolist() == [
        int(events_of_user(plan.simulator, plan.seed, user, plan.weeks).n[0]) for user in range(100)
    ]


@pytest.mark.soak
@needs_proc
def test_a_run_that_is_killed_fifty_times_gives_the_same_rows(base: Run, tmp_path: Path, root: Path) -> None:
    rng, out, killed, runs = np.random.default_rng(3), tmp_path / "killed", 0, 0
    whole = alone(tmp_path / "undisturbed", USERS)
    while killed < 50:
        done = kill_once(out, root, USERS, 1 + killed % 2, rng)
        killed += done
        if not done:  # finished: once more, from the beginning
            compare(base, out, whole, USERS)
            runs, out = runs + 1, tmp_path / f"killed{runs}"
    finish(out, root, USERS, 2)
    compare(base, out, whole, USERS)
    assert json.loads((out / "manifest.json").read_text())["users"] == USERS
