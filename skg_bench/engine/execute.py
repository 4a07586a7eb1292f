"""A plan, carried out: cohorts under arms, in one process or several, from wherever an earlier attempt was cut off."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16, I32, I64
from skg_bench.core.types import Events, Similarity, Truth
from skg_bench.engine.cohort import World, run_cohort, write_cohort
from skg_bench.engine.plan import Plan
from skg_bench.engine.pool import fitted
from skg_bench.engine.stack import stacks
from skg_bench.engine.vectors import Rows, check, open_table, write_table

Progress = Callable[[int, int], None]
TABLE_LIMIT = 17_000  # messages; up to here the table of all pairs fits into 1.1 GiB
_TABLE_PAYS = 150_000  # turns from which on the table of all pairs is cheaper than computing similarities
_TABLE = "similarity.tmp.npy"
_ATTEMPTS = 3  # pools of workers, if workers die
_CHUNK = 64  # users whose events are made at once


@dataclass(frozen=True)
class Task:
    """Users, with their events, under the arms of a stack (indices)."""

    arms: tuple[int, ...]
    events: Events

    @property
    def turns(self) -> int:
        """Turns of all arms."""
        return int(self.events.n.sum(dtype=np.int64)) * len(self.arms)


def execute(
    plan: Plan, out: Path, *, cohort: int, workers: int, progress: Progress, embedding: Progress | None = None
) -> Events:
    """Run all arms over all users that have no shard yet; returns the events.

    `progress(done, total)` counts turns, those of earlier attempts included, and `embedding` texts before the first
    turn. Raises UsageError for unusable vectors, a torn shard, and workers that keep dying.
    """
    _sweep(out)
    vectors = plan.embedder.embed(plan.simulator.messages, embedding)
    check(vectors, len(plan.simulator.messages))
    plan = fitted(plan, out, vectors)
    events = _population(plan, workers)
    tasks, done, total = _tasks(plan, events, out, cohort)
    progress(done, total)
    if tasks:
        pays = total - done >= _TABLE_PAYS and len(vectors) <= TABLE_LIMIT
        with _similarity(vectors, pays, out) as source:
            job = Job(plan, out, max(getattr(arm.router, "top_k", 1) for arm in plan.arms), source)
            (_alone if workers == 1 else _share)(job, tasks, workers, lambda turns: progress(done + turns, total))
        _sweep(out)
    return events


def _sweep(out: Path) -> None:
    """Make the folders, and remove what killed processes left: half a file, or logs of a cohort without its turns.

    Those are written last. What is run again may be cut into other cohorts, whose logs would stand beside these.
    """
    (out / _TABLE).unlink(missing_ok=True)
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    for log in ("turns", "updates", "feedback"):
        (out / log).mkdir(exist_ok=True)
        for shard in (out / log).iterdir():
            if shard.suffix == ".tmp" or not (out / "turns" / shard.name).exists():
                shard.unlink(missing_ok=True)


# ------------------------------------------------------------------------------------------------ population


def _population(plan: Plan, workers: int) -> Events:
    """Events of all users, in order of user ids."""
    users = np.arange(plan.users, dtype=np.int32)
    chunks = [users[i : i + _CHUNK] for i in range(0, plan.users, _CHUNK)]
    if workers == 1 or len(chunks) == 1:
        return _stack([_populate(plan, chunk) for chunk in chunks])
    try:
        with _pool(workers, _watch, os.getpid()) as pool:
            return _stack(list(pool.map(_populate, [plan] * len(chunks), chunks)))
    except BrokenProcessPool:  # a worker was killed; here it takes longer, and is sure
        return _population(plan, 1)


def _populate(plan: Plan, users: I32) -> Events:
    return plan.simulator.population(plan.seed, users, plan.weeks)


def _stack(parts: list[Events]) -> Events:
    width = max(p.time.shape[1] for p in parts)

    def column(get: Callable[[Events], np.ndarray], empty: int) -> np.ndarray:
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
        column(lambda e: e.number, 0), column(lambda e: e.time, never), column(lambda e: e.text, 0), truth,
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------------- tasks


def _tasks(plan: Plan, events: Events, out: Path, cohort: int) -> tuple[list[Task], int, int]:
    """What is left to do, turns done, and turns in all. Users of like volume go together, the busiest first."""
    finished = np.zeros((len(plan.arms), plan.users), np.bool_)
    for done, arm in zip(finished, plan.arms, strict=True):
        for shard in sorted((out / "turns").glob(f"{arm.name}.*.parquet")):
            done[_users_of(shard)] = True
    tasks: list[Task] = []
    by_volume = np.argsort(-events.n, kind="stable")
    for stack in stacks(plan.arms):
        missing = ~finished[stack].T[by_volume]  # [users, arms of the stack]
        for pattern in np.unique(missing[missing.any(axis=1)], axis=0):
            arms = tuple(np.array(stack)[pattern].tolist())
            left = by_volume[(missing == pattern).all(axis=1)]
            size = max(1, cohort // len(arms))
            tasks += [Task(arms, events.rows(np.sort(left[i : i + size]))) for i in range(0, len(left), size)]
    tasks.sort(key=lambda task: -task.events.time.shape[1])  # the longest first, so that workers end together
    turns = events.n.astype(np.int64)
    return tasks, int((finished * turns).sum()), int(turns.sum()) * len(plan.arms)


def _users_of(shard: Path) -> I64:
    try:
        users: I64 = pq.read_table(shard, columns=["user"], partitioning=None)["user"].unique().to_numpy()
    except (pa.ArrowInvalid, OSError) as error:
        raise UsageError(f"{shard} is torn or unreadable ({error}); delete it and run again") from error
    return users


@dataclass(frozen=True)
class Job:
    """What a process needs to run any task."""

    plan: Plan
    out: Path
    top_k: int
    source: "I16 | Path"  # vectors, or the file of the table

    def world(self) -> World:
        """The world of this run, as this process sees it."""
        return World(self.plan.seed, self.plan.simulator, _maker(self.source), self.plan.weeks)

    def run(self, task: Task, world: World, tick: Callable[[int], None]) -> None:
        """Run one task and write its shards; `tick` is given the number of turns made so far."""
        logs = run_cohort(world, [self.plan.arms[i] for i in task.arms], task.events, self.top_k, tick)
        write_cohort(logs, task.events, self.out)


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
    path = out / _TABLE
    source: I16 | Path = path
    try:
        write_table(vectors, path)
    except OSError:  # no room for a gigabyte: the same similarities are computed as they are needed
        source = vectors
    try:
        yield source
    finally:
        path.unlink(missing_ok=True)


# --------------------------------------------------------------------------------------------------- workers


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


@contextmanager
def _pool(workers: int, begin: Callable[..., None], *given: Any) -> Iterator[ProcessPoolExecutor]:
    """Processes that begin with `begin(*given)`, each with one BLAS thread.

    A pool that breaks ends its workers and waits for them, but not for one that was being started just then: that one
    would be waited for forever, so all that are left are killed here.
    """
    others = set(active_children())
    with _one_blas_thread(), ProcessPoolExecutor(workers, get_context("spawn"), begin, given) as pool:
        try:
            yield pool
        except BrokenProcessPool:
            for worker in set(active_children()) - others:
                worker.kill()
            raise


def _watch(parent: int) -> None:
    """End this worker when its parent is gone, however it went."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()


def _alone(job: Job, tasks: list[Task], _workers: int, progress: Callable[[int], None]) -> None:
    """Tasks one after the other, in this process."""
    world, before = job.world(), 0
    for task in tasks:
        job.run(task, world, lambda turns, before=before: progress(before + turns))  # type: ignore[misc]
        before += task.turns


class _Enlisted:
    """What a worker process keeps between tasks."""

    job: Job
    world: World
    # shared int64 counters, one a task, written by one process, so that they need no lock which a kill could keep; the
    # last one says that the run was interrupted
    turns: Any


def _enlist(parent: int, job: Job, turns: Any) -> None:
    _watch(parent)
    _Enlisted.job, _Enlisted.world, _Enlisted.turns = job, job.world(), turns


def _work(index: int, task: Task) -> None:
    def tick(turns: int) -> None:
        if _Enlisted.turns[-1]:
            raise KeyboardInterrupt
        _Enlisted.turns[index] = turns

    _Enlisted.job.run(task, _Enlisted.world, tick)


def _share(job: Job, tasks: list[Task], workers: int, progress: Callable[[int], None]) -> None:
    """Tasks over processes. A worker that is killed takes its pool down; what is not done goes to a new one."""
    left = dict(enumerate(tasks))
    context = get_context("spawn")
    turns = context.RawArray("q", len(tasks) + 1)
    for _ in range(_ATTEMPTS):
        turns[-1] = 0
        try:
            _one_pool(job, left, turns, min(workers, len(left)), lambda: progress(sum(turns[:-1])))
        except BrokenProcessPool:
            continue
        return
    raise UsageError(
        f"workers died {_ATTEMPTS} times (killed, or out of memory?); finished shards are kept: run the same command "
        f"again to go on, with fewer workers (now {workers}) or a smaller cohort"
    )


def _one_pool(job: Job, left: dict[int, Task], turns: Any, workers: int, report: Callable[[], None]) -> None:
    """Work off `left`, from which finished tasks are deleted."""
    with _pool(workers, _enlist, os.getpid(), job, turns) as pool:
        try:
            futures: dict[Future[None], int] = {pool.submit(_work, i, task): i for i, task in left.items()}
            while futures:
                finished, _ = wait(futures, timeout=0.2, return_when=FIRST_COMPLETED)
                report()
                for future in finished:
                    future.result()
                    del left[futures.pop(future)]
        except BrokenProcessPool:
            raise
        except BaseException:  # interrupted, or a task failed: those at work stop at their next turn
            turns[-1] = 1
            pool.shutdown(wait=False, cancel_futures=True)
            raise
