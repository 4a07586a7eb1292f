"""A plan, carried out: cohorts under arms, in one process or several, from wherever an earlier attempt was cut off.

Tasks are user ids. Events are a pure function of seed and user, so the process that carries out a task makes them.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skg_bench.core.asking import placed
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16, I32, I64, check
from skg_bench.core.launching import FILES, Launcher, Tick
from skg_bench.core.texts import Embedding
from skg_bench.core.types import Similarity
from skg_bench.engine.cohort import Cohort, Setting, cohort_of, run_cohort, write_cohort
from skg_bench.engine.ensembles import stacks
from skg_bench.engine.plan import Plan
from skg_bench.engine.pretraining import fitted
from skg_bench.engine.relabel import Relabelled
from skg_bench.engine.vectors import Rows, SimilarityTable, open_table, write_table

Progress = Callable[[int, int], None]
TABLE_LIMIT = 17_000  # messages; up to here the table of all pairs fits into 1.1 GiB
_PAIRS_A_TURN = (
    500  # pairs of messages whose products take as long as the table saves in a turn: 20 ns a pair, 10 us a turn
)
_CHUNK = 1024  # users whose events are counted at once
_COUNTED_HERE = 50_000  # users up to which starting workers takes longer than counting their events: 1.5 s at 26 weeks


@dataclass(frozen=True)
class Task:
    """Users, by ascending id, under the arms of a stack (indices)."""

    arms: tuple[int, ...]
    users: I32


def execute(
    plan: Plan,
    out: Path,
    *,
    cohort: int,
    workers: int,
    launcher: Launcher,
    progress: Progress,
    embedding: Progress | None = None,
) -> None:
    """Run all arms over all users that have no shard yet.

    `progress(done, total)` counts turns, those of earlier attempts included, and `embedding` texts before the first
    turn. Raises UsageError for unusable vectors, a torn shard, and workers that keep dying or do not start.
    """
    _sweep(out)
    plan = replace(plan, simulator=Relabelled(plan.simulator, plan.seed), arms=placed(plan.arms, out))
    vectors = plan.embedder.embed(plan.simulator.messages, embedding)
    check(vectors, len(plan.simulator.messages))
    plan = fitted(plan, out, vectors)
    counts = _counts(plan, out, workers, launcher)
    tasks, done, total = _tasks(plan, counts, out, cohort)
    progress(done, total)
    if tasks:
        pays = len(vectors) <= TABLE_LIMIT and len(vectors) ** 2 <= _PAIRS_A_TURN * (total - done)
        with _table(vectors, pays) as table:
            job = Job(plan, out, max(getattr(arm.assistant, "top_k", 1) for arm in plan.arms), vectors, table)
            try:
                launcher.carry_out(job, tasks, workers, out, lambda turns: progress(done + turns, total))
            finally:
                _sweep(out)


def _sweep(out: Path) -> None:
    """Make the folders, and remove what killed processes left: half a file, or logs of a cohort without its turns.

    Those are written last. What is run again may be cut into other cohorts, whose logs would stand beside these.
    """
    for file in out.glob(FILES):
        file.unlink(missing_ok=True)
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    for log in ("turns", "updates", "feedback", "learning"):
        (out / log).mkdir(exist_ok=True)
        for shard in (out / log).iterdir():
            if shard.suffix == ".tmp" or not (out / "turns" / shard.name).exists():
                shard.unlink(missing_ok=True)


# -------------------------------------------------------------------------------------------------- counting


def _counts(plan: Plan, out: Path, workers: int, launcher: Launcher) -> I32:
    """Number of events of each user, by id."""
    users = np.arange(plan.users, dtype=np.int32)
    chunks = [users[i : i + _CHUNK] for i in range(0, plan.users, _CHUNK)]
    workers = workers if plan.users > _COUNTED_HERE else 1
    return np.concatenate(launcher.carry_out(Counting(plan), chunks, workers, out, lambda _chunks: None))


@dataclass(frozen=True)
class Counting:
    """Counts the events of some users."""

    plan: Plan

    def begin(self) -> Callable[[I32, Tick], I32]:
        """Counts of users of these ids."""
        plan = self.plan
        return lambda users, _tick: plan.simulator.count(plan.seed, users, plan.weeks)


# ----------------------------------------------------------------------------------------------------- tasks


def _tasks(plan: Plan, counts: I32, out: Path, cohort: int) -> tuple[list[Task], int, int]:
    """What is left to do, turns done, and turns in all. Users of like volume go together, the busiest first."""
    finished = np.zeros((len(plan.arms), plan.users), np.bool_)
    for done, arm in zip(finished, plan.arms, strict=True):
        for shard in sorted((out / "turns").glob(f"{arm.name}.*.parquet")):
            done[_users_of(shard)] = True
    tasks: list[Task] = []
    by_volume = np.argsort(-counts, kind="stable")
    for stack in stacks(plan.arms):
        missing = ~finished[stack].T[by_volume]  # [users, arms of the stack]
        for pattern in np.unique(missing[missing.any(axis=1)], axis=0):
            arms = tuple(np.array(stack)[pattern].tolist())
            left = by_volume[(missing == pattern).all(axis=1)]
            size = max(1, cohort // len(arms))
            cohorts = [np.sort(left[i : i + size]).astype(np.int32) for i in range(0, len(left), size)]
            tasks += [Task(arms, users) for users in cohorts]
    # the longest first, so that workers end together; of these the largest, whose events serve the smaller ones
    tasks.sort(key=lambda task: (-counts[task.users].max(), -len(task.users)))
    turns = counts.astype(np.int64)
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
    vectors: I16  # of the world's messages
    table: "_Table | None"  # of their products; None: they are computed

    def begin(self) -> Callable[[Task, Tick], None]:
        """Runs tasks, and writes their shards."""
        embedding = Embedding(lambda: self.vectors, self.plan.embedder)
        setting = Setting(self.plan.seed, self.plan.simulator, self._similarity(), self.plan.weeks, embedding)
        made = _Made(setting)

        def run(task: Task, tick: Tick) -> None:
            logs = run_cohort(
                setting, [self.plan.arms[i] for i in task.arms], made.cohort(task.users), self.top_k, tick
            )
            write_cohort(logs, task.users, self.out)

        return run

    def _similarity(self) -> Callable[[], Similarity]:
        """Makes similarities for cohorts; the table is opened once."""
        table = None if self.table is None else self.table.opened()
        return lambda: Rows(self.vectors) if table is None else table


@dataclass
class _Made:
    """Cohorts before their first turn. The last one is kept: the next task often has the same users under other arms,
    and making events takes a quarter of the time of running one arm.
    """

    setting: Setting
    kept: Cohort | None = None

    def cohort(self, users: I32) -> Cohort:
        """Of these users, by ascending id."""
        if self.kept is None or not np.isin(users, self.kept.user).all():
            self.kept = None  # before others are made: room for both is not needed
            self.kept = cohort_of(self.setting, users)
        same = len(self.kept.user) == len(users)
        return self.kept if same else self.kept.rows(np.flatnonzero(np.isin(self.kept.user, users)))


@dataclass(frozen=True)
class _Table:
    """The file of the table of all pairs. It has no name, so that it is gone with the process that made it, however
    that ends; other processes of the same machine reach it by what that process has open.
    """

    path: Path
    stat: tuple[int, ...]  # device, inode and time: on another machine the path may be of another file

    def opened(self) -> SimilarityTable | None:
        """None where this process cannot reach it: similarities, the same ones, are then computed."""
        try:
            return open_table(self.path) if _stat(self.path) == self.stat else None
        except OSError:
            return None


def _stat(path: Path) -> tuple[int, ...]:
    stat = path.stat()
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns


@contextmanager
def _table(vectors: I16, pays: bool) -> Iterator[_Table | None]:
    """The table of all pairs in the folder for temporary files, which lives as long as the run; None: there is none."""
    if not pays:
        yield None
        return
    with ExitStack() as stack:
        table: _Table | None = None
        try:
            file = stack.enter_context(TemporaryFile())
            path = Path(f"/proc/{os.getpid()}/fd/{file.fileno()}")
            write_table(vectors, path)
            table = _Table(path, _stat(path))
        except OSError:  # no room for a gigabyte, or no Linux: the same similarities are computed as they are needed
            stack.close()
        yield table
