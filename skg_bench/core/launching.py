"""The launcher seam: how the tasks of a job are spread over processes. Results do not depend on it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
TaskIn = TypeVar("TaskIn", contravariant=True)
ResultOut = TypeVar("ResultOut", covariant=True)
Tick = Callable[[int], None]  # is given the number of steps of a task that are done


class WorkerJob(Protocol[TaskIn, ResultOut]):
    """Job of a process: all that it needs to carry out any task. It is pickled, as are tasks and results."""

    def begin(self) -> Callable[[TaskIn, Tick], ResultOut]:
        """Called once in each process; returns what carries out a task."""
        ...


class Launcher(Protocol):
    """Carries out tasks somewhere: in this process, in others of this machine, on a cluster."""

    def carry_out(
        self,
        job: WorkerJob[Task, Result],
        tasks: Sequence[Task],
        workers: int,
        folder: Path,
        progress: Callable[[int], None],
    ) -> list[Result]:
        """Runs tasks; returns their results in the order of `tasks`. Tasks are independent and may run in any order,
        in at most `workers` processes at once.

        A task may run again after its process has died; it must then give the same result and write the same files.
        All processes can reach `folder`. `progress` is given the steps done so far, summed over all tasks. An
        exception of a task ends the job and is raised here. Raises UsageError where tasks cannot be run.
        """
        ...
