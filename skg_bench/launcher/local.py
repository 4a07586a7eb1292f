"""Tasks over worker processes, each of which is started, given its tasks, watched and replaced on its own.

No wait of the parent depends on what a worker does. Whatever is large lies in a file, and only messages of a few bytes
go from the parent to a worker: writing more than a pipe holds to a process that has died before it read blocks for ever
(CPython issue 118981). A worker is watched by its process id, and its start is limited in time.
"""

import hashlib
import os
import pickle
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, ClassVar, Generic

from skg_bench.core import processes
from skg_bench.core.errors import BudgetReached, UsageError
from skg_bench.core.foreign import open_file
from skg_bench.core.launching import Result, Task, Tick, WorkerJob
from skg_bench.core.reach import Reach, Reaches
from skg_bench.core.temporary import temporary

_START = 120.0  # seconds that a worker has to start and to read its job
_DEATHS = 3  # times the number of workers: so many may die in a row without a finished task between them
_POLL = 0.2  # seconds between looks at workers that say nothing
_TOUCH = 60.0  # seconds between touches of the file, which another machine takes for left behind after an hour
_END = 5.0  # seconds that workers have to end by themselves when all is done
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # they take the cores
_LAST = 0.2  # seconds in which a process whose pipe has ended tells its exit code
_UNDER_WAY = 12.0  # seconds that they have once a budget is spent; a prompt may take 10 s (llm.seconds)


@dataclass(frozen=True)
class Local:
    """Processes of this machine, which start clean (core.processes); with one worker, this process."""

    variables: Sequence[str] = ()  # of the environment, which workers see beside those that each child does
    reaches: ClassVar[Reaches] = {"variables": Reach(("environment",), harmless=([],))}

    def carry_out(
        self,
        job: WorkerJob[Task, Result],
        tasks: Sequence[Task],
        workers: int,
        folder: Path,
        progress: Callable[[int], None],
    ) -> list[Result]:
        """Results in order of tasks, which are begun in that order.

        In `folder` lies a file while workers run. A task whose worker dies is begun again by another one. Raises
        UsageError for workers that keep dying or do not start.
        """
        if workers > 1 and tasks:
            return _shared(job, tasks, min(workers, len(tasks)), folder, progress, variables=self.variables)
        run, steps, results = job.begin(), [0] * len(tasks), []
        for index, task in enumerate(tasks):

            def tick(done: int, index: int = index) -> None:
                steps[index] = done
                progress(sum(steps))

            results.append(run(task, tick))
        return results


def _shared(
    job: WorkerJob[Task, Result], tasks: Sequence[Task], workers: int, folder: Path,
    progress: Callable[[int], None], *, variables: Sequence[str],
) -> list[Result]:  # fmt: skip
    # one counter a task, written by one process, so that they need no lock which a killed process could keep
    steps = get_context("spawn").RawArray("q", len(tasks))
    with _file([job, *tasks], folder) as (whole, *parts):
        crew = _Crew[Result](workers, whole, parts, steps, variables)
        touched = time.monotonic()
        try:
            while len(crew.results) < len(tasks):
                crew.look()
                progress(sum(steps))
                if time.monotonic() - touched > _TOUCH:
                    touched = time.monotonic()
                    with suppress(OSError):  # the folder was moved, which `progress` says
                        os.utime(whole.path)
            crew.end(_END)
        except BudgetReached:
            crew.end(_UNDER_WAY)  # the answers that other workers wait for are paid for, and are to be kept
            raise
        finally:
            crew.end(0.0)
    return [crew.results[index] for index in range(len(tasks))]


# ------------------------------------------------------------------------------------------------------ file


@dataclass(frozen=True)
class _Part:
    """A pickled value in a file that this run has written, with its hash: nothing else is unpickled."""

    path: str
    offset: int
    size: int
    digest: bytes

    def load(self) -> Any:
        with open_file(self.path) as file:
            file.seek(self.offset)
            data = file.read(self.size)
        if hashlib.sha256(data).digest() != self.digest:
            raise UsageError(
                f"{self.path} was changed by another program; let no program write there, and run the command again"
            )
        return pickle.loads(data)  # noqa: S301  its hash is that of what was written


@contextmanager
def _file(values: Sequence[object], folder: Path) -> Iterator[list[_Part]]:
    """A file of pickled values, which only this user can read, for as long as the block takes."""
    path = temporary(folder / "work")
    try:
        parts = []
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            for value in values:
                data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
                parts.append(_Part(str(path), file.tell(), len(data), hashlib.sha256(data).digest()))
                file.write(data)
        yield parts
    finally:
        with suppress(OSError):  # on a disk that became read-only it stays, and the error of the block is raised
            path.unlink()


# ---------------------------------------------------------------------------------------------------- parent


@dataclass
class _Worker:
    """A process, the pipe to it, and what it is doing."""

    process: SpawnProcess
    pipe: Connection
    deadline: float  # by which it has to answer; infinite once it has
    ready: bool = False
    task: int | None = None  # the one at work

    def lost(self) -> bool:
        """Is it dead, or has it not answered in time? It may have left a message."""
        return self.process.exitcode is not None or time.monotonic() > self.deadline

    def end(self, seconds: float) -> None:
        """Wait so long for its end, then kill it. A killed process that does not end is left to the system."""
        self.pipe.close()
        self.process.join(seconds)
        self.process.kill()
        self.process.join(_END)


@dataclass
class _Crew(Generic[Result]):
    """The workers of a job; `steps` are the counters of the tasks."""

    size: int
    job: _Part
    tasks: Sequence[_Part]
    steps: Any
    variables: Sequence[str] = ()
    results: dict[int, Result] = field(default_factory=dict)
    workers: list[_Worker] = field(default_factory=list)
    left: deque[int] = field(init=False)
    deaths: int = 0  # since the last finished task

    def __post_init__(self) -> None:
        self.left = deque(range(len(self.tasks)))

    def look(self) -> None:
        """Start workers that are missing, wait a moment for messages, replace dead workers, and hand out tasks."""
        while len(self.workers) < min(self.size, len(self.tasks) - len(self.results)):
            self._start()
        senders = wait([worker.pipe for worker in self.workers], _POLL)
        for worker in self.workers.copy():
            lost = worker.lost()  # before its messages are read: a worker that has ended has said all
            if worker.pipe in senders and self._hear(worker):
                continue
            if lost or worker.pipe in senders:
                self._bury(worker)
        for worker in self.workers:
            if worker.ready and worker.task is None and self.left:
                worker.task = self.left.popleft()
                with suppress(OSError):  # it is dead, which the next look finds
                    worker.pipe.send((worker.task, self.tasks[worker.task]))

    def _start(self) -> None:
        here, remote = processes.pipe()
        given = (os.getpid(), remote, self.job, self.steps)
        process = get_context("spawn").Process(target=_serve, args=given, daemon=True)
        with processes.starting(self.variables, **_ONE_THREAD):
            process.start()
            self.workers.append(_Worker(process, here, time.monotonic() + _START))
        remote.close()  # the end of the worker is then the end of the pipe

    def _hear(self, worker: _Worker) -> bool:
        """Take a message; returns whether there was one."""
        try:
            kind, value = worker.pipe.recv()
        except (EOFError, OSError):
            return False
        if kind == "failed":
            raise value
        if kind == "done" and worker.task is not None:
            self.results[worker.task], worker.task, self.deaths = value, None, 0
        worker.ready, worker.deadline = True, float("inf")
        return True

    def _bury(self, worker: _Worker) -> None:
        """Buries a worker. Its unfinished task is begun again after all others: it may be what kills workers."""
        self.workers.remove(worker)
        worker.end(_LAST)
        if worker.task is not None:
            self.steps[worker.task] = 0
            self.left.append(worker.task)
        self.deaths += 1
        if self.deaths >= _DEATHS * self.size:
            raise UsageError(
                f"{self.deaths} workers in a row died ({_cause(worker.process.exitcode)}) or did not start "
                f"within {_START:.0f} s; finished shards are kept: run the same command again to go on, with fewer "
                f"workers (now {self.size}) or a smaller cohort"
            )

    def end(self, seconds: float) -> None:
        """End all workers: those that do not end within these seconds are killed."""
        for worker in self.workers:
            worker.pipe.close()
            if not seconds:
                worker.process.kill()
        deadline = time.monotonic() + seconds
        while self.workers:
            self.workers[-1].end(max(0.0, deadline - time.monotonic()))
            self.workers.pop()


def _cause(code: int | None) -> str:
    """The end of a process in words, by its exit code."""
    if code is None or code <= 0:
        return "killed, or out of memory?"
    return f"the last one by itself, with code {code}: what it wrote stands above"


# ---------------------------------------------------------------------------------------------------- worker


def _serve(parent: int, pipe: Connection, job: _Part, steps: Any) -> None:
    """The process of a worker: one task after the other, until the parent closes the pipe or is gone."""
    _watch(parent)
    processes.collect_seldom()
    processes.load_pandas_late()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            run = job.load().begin()
        except Exception as error:  # noqa: BLE001  it is raised in the parent
            pipe.send(("failed", _portable(error)))
            return
        pipe.send(("ready", None))
        while True:
            index, task = pipe.recv()
            pipe.send(_answer(run, task, index, steps))


def _answer(run: Callable[[Any, Tick], Any], task: _Part, index: int, steps: Any) -> tuple[str, Any]:
    def tick(done: int) -> None:
        steps[index] = done

    try:
        return "done", run(task.load(), tick)
    except Exception as error:  # noqa: BLE001  it is raised in the parent
        return "failed", _portable(error)


def _portable(error: Exception) -> Exception:
    """The exception with its traceback as a note; its text in another one if it cannot be pickled."""
    text = traceback.format_exc()
    error.add_note(f"In a worker process:\n{text}")
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301  it was pickled just now
    except Exception:  # noqa: BLE001  whatever it raises, it cannot be sent
        return RuntimeError(f"a task failed:\n{text}")
    return error


def _watch(parent: int) -> None:
    """End this worker when its parent is gone, however it went."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()
