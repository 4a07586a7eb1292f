"""Tasks on a Ray cluster: spread over its nodes, and begun again where a process or a node is lost."""

import os
import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal
from uuid import uuid4

from skg_bench.core.errors import UsageError, install_hint
from skg_bench.core.launching import Result, Task, WorkerJob
from skg_bench.core.reach import Reach, Reaches

_LOOK = 2.0  # seconds between looks at the head while no task ends
_USE_TOKENS = (
    "Ray carries out whatever reaches its ports, on all interfaces of each machine: use a token. Once, for all nodes: "
    "`ray get-auth-token --generate`, then `export RAY_AUTH_MODE=token` for the head, the nodes and the same command"
)
_TOGETHER = "mount the folder of the command at the same place on every node, then give the same command"


@dataclass(frozen=True)
class RayCluster:
    """Processes of a Ray cluster that runs. Its nodes see the same files at the same places, and have the same code."""

    address: str | None = None  # HOST:PORT of the head; None: of the cluster of which this machine is a node
    retries: int = 20  # how often a task is begun again, as its process or node was lost
    other_machines: ClassVar[Literal[True]] = True
    reaches: ClassVar[Reaches] = {"address": Reach(("network",))}

    def carry_out(
        self,
        job: WorkerJob[Task, Result],
        tasks: Sequence[Task],
        workers: int,
        folder: Path,
        progress: Callable[[int], None],
    ) -> list[Result]:
        """Results in order of tasks; `workers` are under way at once. Progress counts the steps of tasks that ended.

        In `folder` lies a file while tasks run, by which a node sees that its folder is this one. Raises UsageError
        without Ray, a token or a cluster, for a node without the folder, a task that is lost too often, and a head
        that is lost.
        """
        if not tasks:
            return []
        with _connected(self.address) as (ray, head), _seal(folder) as seal:
            steps: dict[int, int] = {}
            results: dict[int, Result] = {}
            remote = ray.remote(num_cpus=1, max_retries=self.retries)(_carry_out)
            shared, left = [ray.put(job)], deque(enumerate(tasks))
            running: dict[Any, int] = {}  # by reference of what comes out
            while left or running:
                while left and len(running) < workers:
                    at, task = left.popleft()
                    running[remote.remote(shared, task, seal)] = at
                ended, _ = ray.wait(list(running), num_returns=1, timeout=_LOOK)
                if not ended:
                    _check_head(head)
                for reference in ended:
                    at = running.pop(reference)
                    results[at], steps[at] = _result(ray, reference)
                    progress(sum(steps.values()))
        return [results[at] for at in range(len(tasks))]


@dataclass(frozen=True)
class _Seal:
    """The folder of a run, and a file in it that only the driver's folder has."""

    here: str  # folder of the command
    folder: str
    key: str

    @property
    def file(self) -> Path:
        return Path(self.folder) / f".ray-{self.key}"

    def check(self) -> None:
        """Raises UsageError where this process sees another folder, or cannot write there."""
        try:
            os.chdir(self.here)
            if self.file.read_text("utf-8") != self.key:
                raise FileNotFoundError(f"{self.file} is another one")
            mine = self.file.with_name(f"{self.file.name}-{socket.gethostname()}-{os.getpid()}")
            mine.write_text("", "utf-8")
            mine.unlink()
        except OSError as error:
            raise UsageError(
                f"node {socket.gethostname()} cannot write {self.folder}, the folder of the run: {error}; {_TOGETHER}"
            ) from error


@contextmanager
def _seal(folder: Path) -> Iterator[_Seal]:
    seal = _Seal(str(Path.cwd()), str(folder.resolve()), uuid4().hex)
    seal.file.write_text(seal.key, "utf-8")
    try:
        yield seal
    finally:
        with suppress(OSError):
            seal.file.unlink()


@contextmanager
def _connected(address: str | None) -> Iterator[tuple[Any, tuple[str, int]]]:
    """Ray, and where its head listens."""
    try:
        import ray
        from ray.exceptions import AuthenticationError
    except ImportError as error:
        raise UsageError(f"launcher=ray needs the package ray: {install_hint('ray')}") from error
    if os.environ.get("RAY_AUTH_MODE") != "token":
        raise UsageError(
            f"launcher=ray: RAY_AUTH_MODE={os.environ.get('RAY_AUTH_MODE', '')} is no token. {_USE_TOKENS}"
        )
    try:
        ray.init(address=address or "auto", log_to_driver=False, configure_logging=False)
    except AuthenticationError as error:
        raise UsageError(f"the head refuses the token of this command. {_USE_TOKENS}") from error
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UsageError(
            f"launcher.address={address}: no Ray cluster was found: {error}; start one, `ray start --head` here and "
            "`ray start --address=HOST:PORT` on each node, then give the same command"
        ) from error
    try:
        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        yield ray, (host, int(port))
    finally:
        ray.shutdown()


def _check_head(head: tuple[str, int]) -> None:
    """Raises UsageError where the head does not listen any more: Ray itself would end this process after a minute."""
    try:
        socket.create_connection(head, timeout=_LOOK).close()
    except OSError as error:
        raise UsageError(
            f"the head of the Ray cluster at {head[0]}:{head[1]} is lost: {error}; start it again and give the same "
            "command, which continues the run"
        ) from error


def _result(ray: Any, reference: Any) -> Any:
    """Result of a task; raises the exception of a task."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, Exception):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        raise UsageError(
            f"a task was lost too often, or cannot be run on a node: {error}; the same command continues the run"
        ) from error


_begun: dict[str, Callable[..., Any]] = {}  # of this process, by key of a seal


def _carry_out(shared: list[Any], task: Any, seal: _Seal) -> tuple[Any, int]:
    """Result of a task and its steps, in a process of a node."""
    import ray

    seal.check()
    if seal.key not in _begun:
        _begun.clear()
        _begun[seal.key] = ray.get(shared[0]).begin()
    steps = 0

    def tick(done: int) -> None:
        nonlocal steps
        steps = done

    result = _begun[seal.key](task, tick)
    return result, steps
