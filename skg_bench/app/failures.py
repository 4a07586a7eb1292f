"""Origin of an exception of a component: arm, component, user and turn, as a note on the exception."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from traceback import walk_tb
from typing import Any

from skg_bench.assistant.pipeline import Pipeline
from skg_bench.core.arms import Arm
from skg_bench.core.errors import UsageError
from skg_bench.core.launching import Launcher, Result, Tick, WorkerJob
from skg_bench.engine.tasks import Task

_OURS = ("skg_bench.engine.", "skg_bench.assistant.pipeline.", "skg_bench.launcher.", "skg_bench.app.",
         "skg_bench.core.errors")  # fmt: skip
_ENGINE = "skg_bench.engine."
_NAMED_ALREADY = (UsageError, OSError, MemoryError)  # they say what is wrong, whatever the user and turn


@dataclass(frozen=True)
class Naming:
    """`launcher`, whose tasks name the arm, component, user and turn of an exception.

    A task that fails is run again in halves, of which nothing is kept, until one user under one arm is left: what
    happens to a user does not depend on who else is in the cohort.
    """

    launcher: Launcher
    arms: Sequence[Arm]

    def carry_out(
        self,
        job: WorkerJob[Any, Result],
        tasks: Sequence[Any],
        workers: int,
        folder: Path,
        progress: Callable[[int], None],
    ) -> list[Result]:
        names = tuple(arm.name for arm in self.arms)
        seams = tuple(_seams(arm) for arm in self.arms)
        return self.launcher.carry_out(_NamedJob(job, names, seams), tasks, workers, folder, progress)


@dataclass(frozen=True)
class _NamedJob:
    job: WorkerJob[Any, Any]
    names: tuple[str, ...]
    seams: tuple[Mapping[str, str], ...]  # of each arm: module of a component -> its seam

    def begin(self) -> Callable[[Any, Tick], Any]:
        run = self.job.begin()

        def named(task: Any, tick: Tick) -> Any:
            try:
                return run(task, tick)
            except SystemExit as error:
                raise UsageError(
                    f"{_component(error)[1]} calls sys.exit({error.code!r}), which would end the worker without a "
                    "word; raise an exception there, which is shown with arm, user and turn"
                ) from error
            except Exception as error:
                if not isinstance(task, Task) or isinstance(error, _NAMED_ALREADY):
                    raise
                smallest, cause = _smallest(run, task, error)
                cause.add_note(self._where(smallest, cause))
                raise cause from cause.__cause__

        return named

    def _where(self, task: Task, error: Exception) -> str:
        users = task.users.tolist()
        who = f"user {users[0]}" if len(users) == 1 else f"one of the {len(users)} users {users[0]} to {users[-1]}"
        arms = [self.names[at] for at in task.arms]
        module, component = _component(error)
        seams = {self.seams[at].get(module, "") for at in task.arms} - {""}
        what = " ".join((*sorted(seams), component))
        turn = _turn(error)
        at = "" if turn is None else f", turn {turn}"
        return f"arm{'s' if len(arms) > 1 else ''} {', '.join(arms)}: {what} failed for {who}{at}"


def _seams(arm: Arm) -> dict[str, str]:
    seams: dict[str, str] = {}
    for phase in arm.phases:
        assistant = phase.assistant
        parts = vars(assistant.components) if isinstance(assistant, Pipeline) else {"assistant": assistant}
        seams |= {type(part).__module__: seam for seam, part in {**parts, "llm": phase.llm}.items()}
    return seams


def _smallest(run: Callable[[Task, Tick], Any], task: Task, error: Exception) -> tuple[Task, Exception]:
    """The part of a failed task that fails by itself, with its exception."""
    halves = _halves(task)
    for half in halves:
        try:
            run(half, lambda _: None)
        except Exception as smaller:  # noqa: BLE001  whatever a component raises
            return _smallest(run, half, smaller)
    return task, error  # it cannot be cut, or fails as a whole only


def _halves(task: Task) -> list[Task]:
    task = replace(task, becomes="nothing")
    if (n := len(task.users)) > 1:
        return [replace(task, users=part) for part in (task.users[: n // 2], task.users[n // 2 :])]
    if (n := len(task.arms)) > 1:
        return [replace(task, arms=part) for part in (task.arms[: n // 2], task.arms[n // 2 :])]
    return []


def _component(error: BaseException) -> tuple[str, str]:
    """Module and name of the first function that is neither the engine's nor of what calls it."""
    # core/errors.py raises another one where it names a component: then the cause has the component's frames
    raised = [error] if error.__cause__ is None else [error, error.__cause__]
    frames = [frame for part in raised for frame, _ in walk_tb(part.__traceback__)]
    names = [(str(frame.f_globals.get("__name__")), frame.f_code.co_qualname) for frame in frames]
    outside = [(module, name) for module, name in names if not module.startswith(_OURS)]
    module, name = (outside or names[-1:])[0]
    return module, f"{module}.{name}"


def _turn(error: Exception) -> int | None:
    """The user's turn: the engine counts it in `t`."""
    frames = [f for f, _ in walk_tb(error.__traceback__) if str(f.f_globals.get("__name__")).startswith(_ENGINE)]
    return next((int(f.f_locals["t"]) for f in frames if isinstance(f.f_locals.get("t"), int)), None)
