"""Processes as /proc shows them, and forks of one that has imported what they need."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from multiprocessing import forkserver, get_context
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest

from skg_bench.core import processes

needs_proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are watched through /proc")
_IMPORTED = (
    "skg_bench.app.run_trackers", "skg_bench.analysis.report.picture", "skg_bench.tracker.mlflow",
    "skg_bench.tracker.opik", "httpx", "httpcore", "pyarrow.dataset", "mlflow.tracking.client",
    "mlflow.store.tracking.sqlalchemy_workspace_store", "alembic.command", "sqlalchemy.dialects.sqlite",
    "skg_bench.store.sqlite", "psycopg", "tests.store.writers", "tests.processes", "skg_bench.app.launch",
    "skg_bench.simulator.answers.world", "skg_bench.router.maxsim",
)  # fmt: skip
_VARIABLES = {"MLFLOW_DISABLE_TELEMETRY": "true", "PYTHONPATH": str(Path(__file__).resolve().parents[1])}


@cache
def forks() -> ForkServerContext:
    """A context of multiprocessing in place of `spawn`, whose processes start with nothing of this one either, and in
    20 ms: a fresh Python takes 0.3 s to import a store or what a worker needs, 0.6 s for Opik, and 2.5 s for MLflow.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(list(_IMPORTED))
    with processes.starting(**_VARIABLES):
        forkserver.ensure_running()
    return context


def end_forks() -> None:
    """End the server that they are forks of, if it was started."""
    if forks.cache_info().currsize:
        server: Any = forkserver
        server._forkserver._stop()
        forks.cache_clear()


class ForkedWorkers:
    """A context of multiprocessing in place of `spawn`, as workers of a run are started by it."""

    def RawArray(self, code: str, values: Any) -> Any:  # noqa: N802  as multiprocessing calls it
        return get_context("spawn").RawArray(code, values)

    def Process(self, *, target: Callable[..., None], args: Sequence[Any], daemon: bool) -> Any:  # noqa: N802
        """A fork with the environment of who starts it, which watches the server in place of this process."""
        _parent, *given = args
        return forks().Process(target=_worked, args=(_Environment(), target, *given), daemon=daemon)


class _Environment:
    """Environment of a process when it starts another one, which has it from then on."""

    def __reduce__(self) -> Any:
        return _entered, (dict(os.environ),)


def _entered(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)


def _worked(_environment: None, serve: Callable[..., None], *given: Any) -> None:
    serve(os.getppid(), *given)


def workers(pid: int) -> list[int]:
    """Worker processes of a process, the oldest first; the resource tracker of multiprocessing is none."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # a thread or a process has just ended
            for child in task.read_text().split():
                with suppress(OSError):
                    if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                        found.append(int(child))
    return sorted(found)


def await_workers(pid: int, seconds: float = 20.0) -> list[int]:
    """Worker processes of a process, once it has any: a child bears its name only after its `exec`."""
    deadline = time.monotonic() + seconds
    while not (found := workers(pid)):
        assert time.monotonic() < deadline, f"no worker after {seconds:.0f} s"
        time.sleep(0.02)
    return found


def await_end(pids: list[int], seconds: float = 20.0) -> None:
    """Wait until none of these processes exists."""
    deadline = time.monotonic() + seconds
    while left := [pid for pid in pids if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < deadline, f"still there after {seconds:.0f} s: {left}"
        time.sleep(0.02)
