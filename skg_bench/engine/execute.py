"""A plan, carried out: cohorts under arms, in one process or several, from wherever an earlier attempt was cut off.

Tasks are user ids. Events are a pure function of salt, seed and user: the process that carries out a task makes them.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from skg_bench.asking.asking import placed
from skg_bench.core import temporary
from skg_bench.core.embedding_grid import check
from skg_bench.core.grid import I16, I32, Bool
from skg_bench.core.launching import Launcher, Tick
from skg_bench.core.texts import Embedding
from skg_bench.core.types import Similarity
from skg_bench.engine import pieces
from skg_bench.engine.checkpoint import Keeper
from skg_bench.engine.cohort import Cohort, Setting, cohort_of, run_cohort
from skg_bench.engine.controls import Ticks, check_controls, check_last_users
from skg_bench.engine.instances import run_instances
from skg_bench.engine.plan import Plan
from skg_bench.engine.pools import fitted
from skg_bench.engine.relabel import Relabelled
from skg_bench.engine.sharing_arms import users_of_instance, whole_instances
from skg_bench.engine.tasks import WHOLE, Existing, Join, Part, Task, ours, tasks_left, waves
from skg_bench.engine.vectors import Rows, SimilarityTable, open_table, write_table
from skg_bench.runfolder import shards
from skg_bench.runfolder.manifest import UNNAMED

Progress = Callable[[int, int], None]  # done turns, all turns; a turn of each arm counts
TABLE_LIMIT = 17_000  # messages; up to here the table of all pairs fits into 1.1 GiB
_PAIRS_A_TURN = (
    500  # pairs of messages whose products take as long as the table saves in a turn: 20 ns a pair, 10 us a turn
)
CHECKPOINT = 60.0  # seconds at work after which a cohort's progress is kept, and between two checkpoints
_CHUNK = 1024  # users whose events are counted at once
_COUNTED_HERE = 50_000  # users up to which starting workers takes longer than counting their events: 1.5 s at 26 weeks


def execute(
    plan: Plan,
    out: Path,
    *,
    cohort: int,
    workers: int,
    launcher: Launcher,
    progress: Progress,
    embedding: Progress | None = None,
    part: Part = WHOLE,
    run: str = UNNAMED,
) -> None:
    """Run all arms over all users, or a part of them, that have no shard yet. `run`: the key that shards carry.

    `progress(done, total)` counts turns, those of earlier attempts included, and `embedding` texts before the first
    turn. Raises UsageError for unusable vectors, and workers that keep dying or do not start; OSError for a folder that
    is full, or was moved away.
    """
    _prepare(out)
    plan, vectors = _made_ready(plan, out, embedding)
    counts = _counts(plan, out, workers, launcher)
    mine = ours(plan, part)
    missing = whole_instances(_missing(plan, out, run, mine), plan.arms, plan.users)
    existing = Existing(mine, missing, pieces.pieces_of_runs(out, run, verify=True), pieces.begun(out, run))
    whole = tasks_left(plan, counts, existing, cohort)
    done, total = whole.done, whole.total
    progress(done, total)
    with _table(vectors, _pays(vectors, total - done)) as table:
        job = Job(plan, out, run, vectors, table)
        if done < total:
            check_controls(job.setting, plan.arms, plan.users, lambda _: progress(whole.done, total))
        for wave in waves(counts, mine):
            todo = tasks_left(plan, counts, replace(existing, mine=wave), cohort)
            if todo.tasks:
                launcher.carry_out(job, todo.tasks, workers, out, partial(_more, progress, done, total))
            done += todo.total - todo.done
            if todo.joins:
                progress(done, total)  # it may say that the folder is another process's by now
                _join(job, todo.joins, workers)
            pieces.tidy(out, run)
    with suppress(FileNotFoundError):  # another part has ended the run meanwhile
        _sweep(out)  # of workers that were killed while they wrote


@contextmanager
def replay_job(plan: Plan, out: Path, turns: int) -> Iterator["Job"]:
    """Job whose settings play users of a run again, of whom nothing is written; `turns`: about how many. `out`: folder
    of the run, from which assistants take what they learned before it.

    First it removes from the run what a killed replay left there. Raises UsageError for unusable vectors.
    """
    temporary.sweep(out)
    plan, vectors = _made_ready(plan, out, None)
    with _table(vectors, _pays(vectors, turns)) as table:
        yield Job(plan, out, UNNAMED, vectors, table)


def check_end(plan: Plan, out: Path, progress: Ticks) -> None:
    """Check, when all shards are there, that assistants of somebody else kept their users apart to the end.

    Only a plan with such assistants needs it (`wants_controls`). Raises UsageError where one did not.
    """
    plan, vectors = _made_ready(plan, out, None)
    check_last_users(Job(plan, out, UNNAMED, vectors, None).setting, plan.arms, plan.users, out, progress)


def _made_ready(plan: Plan, out: Path, embedding: Progress | None) -> tuple[Plan, I16]:
    """The plan with what a run needs to begin, and the vectors of the world's messages."""
    plan = replace(plan, simulator=Relabelled(plan.simulator, plan.salted), arms=placed(plan.arms, out))
    vectors = plan.embedder.embed(plan.simulator.messages, embedding)
    check(vectors, len(plan.simulator.messages))
    return fitted(plan, out, vectors), vectors


def _pays(vectors: I16, turns: int) -> bool:
    """Does the table of all pairs save in so many turns what it takes to make?"""
    return len(vectors) <= TABLE_LIMIT and len(vectors) ** 2 <= _PAIRS_A_TURN * turns


def _more(progress: Progress, done: int, total: int, turns: int) -> None:
    progress(done + turns, total)


def _join(job: "Job", joins: Sequence[Join], workers: int) -> None:
    """Put shards together from pieces."""
    plan, here = job.plan, pieces.pieces_of_runs(job.out, job.run, verify=True)

    def join(given: tuple[Join, int]) -> None:
        each, arm = given
        chosen = pieces.apart(here, [plan.arms[i].name for i in each.arms])
        users = shards.users_of(each.shard, plan.users)
        pieces.join(job.out, job.run, plan.arms[arm].name, each.shard, users=users, pieces=chosen)

    with ThreadPoolExecutor(workers) as threads:  # Arrow does nearly all of it, without Python's lock
        list(threads.map(join, [(each, arm) for each in joins for arm in each.arms]))


def _prepare(out: Path) -> None:
    """Make the folders, and remove what processes that are gone left. From here on no folder is made: one that is gone
    was moved away.
    """
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in (*shards.LOGS, pieces.FOLDER):
        (out / folder).mkdir(mode=0o700, exist_ok=True)
    _sweep(out)


def _sweep(out: Path) -> None:
    for folder in ("", *shards.LOGS, pieces.FOLDER):
        temporary.sweep(out / folder)


def _missing(plan: Plan, out: Path, run: str, mine: Bool) -> Bool:
    """`[arms, shards]`: which of these shards are not there, whole."""
    missing = mine.copy()

    def look(arm: int, shard: int) -> None:
        name = plan.arms[arm].name
        if shards.path(out, "turns", name, shard).exists():
            missing[arm, shard] = bool(shards.fault(out, run, name, shard))

    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda each: look(*each), np.argwhere(mine).tolist()))
    return missing


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
        return lambda users, _tick: plan.simulator.count(plan.salted, users, plan.weeks)


# ----------------------------------------------------------------------------------------------------- tasks


@dataclass(frozen=True)
class Job:
    """Job of a process: all that it needs to run any task."""

    plan: Plan
    out: Path
    run: str  # key that shards carry
    vectors: I16  # of the world's messages
    table: "_Table | None"  # of their products; None: they are computed

    @property
    def top_k(self) -> int:
        """Places of the shortlists in the logs."""
        return max(arm.top_k for arm in self.plan.arms)

    def begin(self) -> Callable[[Task, Tick], None]:
        """Runs tasks, and keeps what comes out."""
        setting = self.setting()
        made = _Made(setting)

        def run(task: Task, tick: Tick) -> None:
            arms = [self.plan.arms[i] for i in task.arms]
            size = users_of_instance(arms[0], self.plan.users)
            kept = pieces.checkpoint(self.out, self.run, [arm.name for arm in arms], task.users)
            keeper = None if task.becomes == "nothing" else Keeper(kept, CHECKPOINT)
            if size > 1:
                logs = run_instances(setting, arms[0], made.cohort(task.users), self.top_k, tick, size=size)
            else:
                logs = run_cohort(setting, arms, made.cohort(task.users), self.top_k, tick, keeper=keeper)
            if task.becomes == "piece":
                pieces.write_piece(self.out, self.run, logs, task.users)
            if task.becomes == "shards":
                pieces.write_shards(self.out, self.run, logs, task.users)
            kept.unlink(missing_ok=True)

        return run

    def setting(self) -> Setting:
        """Setting of the process."""
        embedding, plan = Embedding(lambda: self.vectors, self.plan.embedder), self.plan
        return Setting(plan.salted, plan.simulator, self._similarity(), plan.weeks, embedding, plan.comparison)

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
        """Cohort of these users, by ascending id."""
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
