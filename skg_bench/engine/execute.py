"""A plan, carried out: cohorts under arms, in one process or several, from wherever an earlier attempt was cut off."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16, I32, I64
from skg_bench.core.types import Events, Similarity, Truth
from skg_bench.engine.cohort import World, run_cohort, write_cohort
from skg_bench.engine.plan import Plan
from skg_bench.engine.vectors import TABLE_LIMIT, Rows, Table, check, open_table, write_table

Progress = Callable[[int, int], None]
_TABLE_PAYS = 150_000  # turns from which on the table of all pairs is cheaper than computing similarities
_ATTEMPTS = 3  # pools of workers, if workers die
_CHUNK = 64  # users whose events are made at once


@dataclass(frozen=True)
class Task:
    """Users (rows of the population) under one arm (index)."""

    arm: int
    rows: I64


def execute(plan: Plan, out: Path, *, cohort: int, workers: int, progress: Progress) -> Events:
    """Run all arms over all users that have no shard yet; returns the events.

    `progress(done, total)` counts turns, those of earlier attempts included. Raises UsageError for unusable vectors, a
    torn shard, and workers that keep dying.
    """
    for log in ("turns", "updates", "feedback"):
        (out / log).mkdir(parents=True, exist_ok=True)
        for left_over in (out / log).glob("*.tmp"):
            left_over.unlink(missing_ok=True)
    vectors = plan.embedder.embed(plan.simulator.messages)
    check(vectors, len(plan.simulator.messages))
    with _crew(workers) as crew:
        events = _population(plan, crew)
        tasks, done, total = _tasks(plan, events, out, cohort)
        progress(done, total)
        if tasks:
            pays = total - done >= _TABLE_PAYS and len(vectors) <= TABLE_LIMIT
            with _similarity(vectors, pays, out) as source:
                job = Job(plan, events, out, _top_k(plan), source)
                turns = {"done": done}

                def tick(n: int) -> None:
                    turns["done"] += n
                    progress(turns["done"], total)

                if crew is None:
                    for task in tasks:
                        job.run(task, tick)
                else:
                    _share(job, tasks, workers, tick)
    return events


def _top_k(plan: Plan) -> int:
    return max(getattr(arm.router, "top_k", 1) for arm in plan.arms)


# ------------------------------------------------------------------------------------------------ population


def _population(plan: Plan, crew: ProcessPoolExecutor | None) -> Events:
    """Events of all users, in order of user ids."""
    users = np.arange(plan.users, dtype=np.int32)
    chunks = [users[i : i + _CHUNK] for i in range(0, plan.users, _CHUNK)]
    if crew is None or len(chunks) == 1:
        parts = [plan.simulator.population(plan.seed, chunk, plan.weeks) for chunk in chunks]
    else:
        parts = [f.result() for f in [crew.submit(_populate, plan, chunk) for chunk in chunks]]
    return _stack(parts)


def _populate(plan: Plan, users: I32) -> Events:
    return plan.simulator.population(plan.seed, users, plan.weeks)


def _stack(parts: list[Events]) -> Events:
    width = max(p.time.shape[1] for p in parts)

    def column(get: Callable[[Events], np.ndarray], empty: int) -> np.ndarray:  # type: ignore[type-arg]
        wide = []
        for part in parts:
            array = get(part)
            out = np.full((len(array), width), empty, array.dtype)
            out[:, : array.shape[1]] = array
            wide.append(out)
        return np.concatenate(wide)

    truth = Truth(
        column(lambda e: e.truth.type, -1), column(lambda e: e.truth.intent, -1),
        column(lambda e: e.truth.answerable, 0), column(lambda e: e.truth.used_up, 0),
    )  # fmt: skip
    never = np.iinfo(np.int64).max
    return Events(
        np.concatenate([p.user for p in parts]), np.concatenate([p.n for p in parts]),
        column(lambda e: e.time, never), column(lambda e: e.text, 0), truth,
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------------- tasks


def _tasks(plan: Plan, events: Events, out: Path, cohort: int) -> tuple[list[Task], int, int]:
    """What is left to do, turns done, and turns in all. Users of like volume go together, the busiest first."""
    tasks: list[Task] = []
    done = 0
    by_volume = np.argsort(-events.n, kind="stable")
    for a, arm in enumerate(plan.arms):
        finished = np.zeros(plan.users, np.bool_)
        for shard in sorted((out / "turns").glob(f"{arm.name}.*.parquet")):
            finished[_users_of(shard)] = True
        done += int(events.n[finished].sum(dtype=np.int64))
        left = by_volume[~finished[by_volume]]
        tasks += [Task(a, np.sort(left[i : i + cohort])) for i in range(0, len(left), cohort)]
    return tasks, done, int(events.n.sum(dtype=np.int64)) * len(plan.arms)


def _users_of(shard: Path) -> I64:
    try:
        users: I64 = pq.read_table(shard, columns=["user"], partitioning=None)["user"].unique().to_numpy()
    except (pa.ArrowInvalid, OSError) as error:
        raise UsageError(f"{shard} is torn or unreadable ({error}); delete it and run again") from error
    return users


@dataclass(frozen=True)
class Job:
    """What a worker needs to run any task."""

    plan: Plan
    events: Events
    out: Path
    top_k: int
    source: "I16 | Path"  # vectors, or the file of the table

    def world(self) -> World:
        """The world of this run, as this process sees it."""
        return World(self.plan.seed, self.plan.simulator, _maker(self.source))

    def run(self, task: Task, tick: Callable[[int], None], world: World | None = None) -> None:
        """Run one task and write its shards."""
        events = self.events.rows(task.rows)
        log = run_cohort(world or self.world(), self.plan.arms[task.arm], events, self.top_k, tick)
        write_cohort(log, events, self.out)


def _maker(source: "I16 | Path") -> Callable[[], Similarity]:
    """Makes similarities for cohorts; the table is opened once."""
    if isinstance(source, Path):
        table = open_table(source)
        return lambda: table
    return lambda: Rows(source)


@contextmanager
def _similarity(vectors: I16, pays: bool, out: Path) -> Iterator["I16 | Path"]:
    """Vectors, or the path of the table of all pairs, which lives as long as the run."""
    if not pays:
        yield vectors
        return
    path = out / "similarity.tmp.npy"
    try:
        write_table(vectors, path)
        yield path
    finally:
        path.unlink(missing_ok=True)


# --------------------------------------------------------------------------------------------------- workers

_job: Job | None = None
_world: World | None = None
_ticks: "SimpleQueue[int] | None" = None


@contextmanager
def _crew(workers: int) -> Iterator[ProcessPoolExecutor | None]:
    """Processes to make events with; None: this one."""
    if workers == 1:
        yield None
        return
    with _one_blas_thread(), ProcessPoolExecutor(workers, get_context("spawn"), _watch, (os.getpid(),)) as crew:
        yield crew


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Workers inherit one BLAS thread each: the cores are taken by the workers themselves."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    before = {n: os.environ.get(n) for n in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for n, value in before.items():
            os.environ.pop(n, None)
            if value is not None:
                os.environ[n] = value


def _watch(parent: int) -> None:
    """End this worker when its parent is gone, however it went."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()


def _enlist(parent: int, job: Job, ticks: "SimpleQueue[int]") -> None:
    global _job, _world, _ticks
    _watch(parent)
    _job, _world, _ticks = job, job.world(), ticks


def _work(task: Task) -> None:
    if _job is None or _ticks is None:
        raise RuntimeError("this worker was not enlisted")
    _job.run(task, _ticks.put, _world)


def _share(job: Job, tasks: list[Task], workers: int, tick: Callable[[int], None]) -> None:
    """Tasks over processes. A worker that is killed takes its pool down; what is not done goes to a new one."""
    left = dict(enumerate(tasks))
    for _ in range(_ATTEMPTS):
        context = get_context("spawn")
        ticks: SimpleQueue[int] = context.SimpleQueue()
        try:
            with (
                _one_blas_thread(),
                ProcessPoolExecutor(min(workers, len(left)), context, _enlist, (os.getpid(), job, ticks)) as pool,
            ):
                futures: dict[Future[None], int] = {pool.submit(_work, task): i for i, task in left.items()}
                try:
                    while futures:
                        finished, _rest = wait(futures, timeout=0.1, return_when=FIRST_COMPLETED)
                        while not ticks.empty():
                            tick(ticks.get())
                        for future in finished:
                            future.result()
                            del left[futures.pop(future)]
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
            return
        except BrokenProcessPool:
            continue
    raise UsageError(
        f"workers died {_ATTEMPTS} times (killed, or out of memory?); finished shards are kept: run the same command "
        f"again to go on, with fewer workers (now {workers}) or a smaller cohort"
    )
