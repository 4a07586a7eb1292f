"""A launcher of which one process, started clean, does the tasks of many runs: it imports once what they need."""

import os
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from skg_bench.core import processes
from skg_bench.core.launching import Result, Task, WorkerJob
from skg_bench.launcher.local import Local


@dataclass(frozen=True)
class Lasting:
    """Tasks of one worker are done here, those of more by that process."""

    def carry_out(
        self,
        job: WorkerJob[Task, Result],
        tasks: Sequence[Task],
        workers: int,
        folder: Path,
        progress: Callable[[int], None],
    ) -> list[Result]:
        """Results in order of tasks, whose progress is told when all have ended."""
        if workers == 1 or not tasks:
            return Local().carry_out(job, tasks, workers, folder, progress)
        work = pickle.dumps((job, list(tasks)))
        with processes.starting():
            ended = _process().submit(_done, work, sys.path, processes.environment())
        steps, results = ended.result()
        progress(steps)
        return results


LASTING = Lasting()


@cache
def _process() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"))


def end() -> None:
    """End the process, if it was started: tests of other modules count the processes that there are."""
    if _process.cache_info().currsize:
        _process().shutdown()
        _process.cache_clear()


def _done(work: bytes, path: Sequence[str], environment: Mapping[str, str]) -> tuple[int, list[Any]]:
    """Steps and results of the tasks of a job."""
    sys.path[:] = path  # a package may lie elsewhere than when the process began
    os.environ.update(environment)
    job, tasks = pickle.loads(work)  # noqa: S301  pickled by the test
    run, steps, results = job.begin(), [0] * len(tasks), []
    for index, task in enumerate(tasks):

        def tick(done: int, index: int = index) -> None:
            steps[index] = done

        results.append(run(task, tick))
    return sum(steps), results
