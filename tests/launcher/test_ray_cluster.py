"""The launcher of Ray, by a Ray of this process; `experiment faults` kills nodes of a real one."""

import os
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import skg_bench
from skg_bench.app import other_machines
from skg_bench.app.other_machines import checked_launcher
from skg_bench.core.errors import UsageError
from skg_bench.core.launching import Tick
from skg_bench.launcher import ray_cluster
from skg_bench.launcher.local import Local
from skg_bench.launcher.ray_cluster import RayCluster
from tests.app.test_cli import call
from tests.launcher.test_choice import SMALL, shards


class RayTaskError(Exception):
    """As Ray raises what a task raised."""

    def __init__(self, cause: BaseException) -> None:
        self.cause = cause


class RayError(Exception):
    """As Ray raises where a task was lost."""


class AuthenticationError(Exception):
    """As Ray raises for another token."""


@dataclass
class Fake:
    """A Ray that carries out a task when somebody waits, the one that came last first."""

    listener: socket.socket
    refuses: Exception | None = None
    lost: bool = False
    silent: bool = False  # no task ever ends
    most: int = 0  # tasks under way at once
    options: dict[str, Any] = field(default_factory=dict)
    under_way: dict[int, Callable[[], Any]] = field(default_factory=dict)
    ended: dict[int, Callable[[], Any]] = field(default_factory=dict)
    begun: int = 0
    shut: int = 0

    def module(self) -> ModuleType:
        """What `import ray` gives."""
        ray = ModuleType("ray")
        host, port = self.listener.getsockname()
        context = SimpleNamespace(gcs_address=f"{host}:{port}")
        vars(ray).update(
            init=self.init, put=lambda value: SimpleNamespace(value=value), get=self.get, remote=self.remote,
            wait=self.wait, shutdown=self.shutdown, get_runtime_context=lambda: context,
            exceptions=SimpleNamespace(RayTaskError=RayTaskError, RayError=RayError),
        )  # fmt: skip
        return ray

    def init(self, **options: Any) -> None:
        """Connects."""
        self.options = options
        if self.refuses:
            raise self.refuses

    def remote(self, **_options: Any) -> Callable[[Callable[..., Any]], Any]:
        """A function whose `remote` gives a reference."""
        return lambda function: SimpleNamespace(remote=lambda *given: self._submit(lambda: function(*given)))

    def _submit(self, task: Callable[[], Any]) -> int:
        self.begun += 1
        self.under_way[self.begun] = task
        self.most = max(self.most, len(self.under_way))
        return self.begun

    def wait(self, references: list[int], **_options: Any) -> tuple[list[int], list[int]]:
        """The last task ends."""
        if self.silent:
            return [], references
        self.ended[references[-1]] = self.under_way.pop(references[-1])
        return references[-1:], references[:-1]

    def get(self, reference: Any) -> Any:
        """A value, or what a task returns."""
        if isinstance(reference, SimpleNamespace):
            return reference.value
        if self.lost:
            raise RayError("node died")
        try:
            return self.ended.pop(reference)()
        except Exception as error:
            raise RayTaskError(error) from error

    def shutdown(self) -> None:
        """Disconnects."""
        self.shut += 1


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Fake]:
    """A Ray whose head listens, and a token."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fake = Fake(listener)
        exceptions = ModuleType("ray.exceptions")
        vars(exceptions).update(AuthenticationError=AuthenticationError)
        monkeypatch.setitem(sys.modules, "ray", fake.module())
        monkeypatch.setitem(sys.modules, "ray.exceptions", exceptions)
        monkeypatch.setenv("RAY_AUTH_MODE", "token")
        monkeypatch.chdir(tmp_path)
        yield fake


@dataclass(frozen=True)
class Lab:
    """Each task is a number, which is given back negative, in as many steps; 13 is wrong."""

    def begin(self) -> Callable[[int, Tick], int]:
        return self.run

    def run(self, number: int, tick: Tick) -> int:
        tick(number)
        if number == 13:
            raise UsageError("13 is wrong; give another number")
        return -number


def carry_out(tasks: list[int], folder: Path, workers: int = 2, progress: Callable[[int], None] = print) -> list[int]:
    return RayCluster().carry_out(Lab(), tasks, workers, folder, progress)


def test_results_are_in_order_of_tasks_and_no_more_are_under_way_than_workers(ray: Fake, tmp_path: Path) -> None:
    said: list[int] = []
    assert carry_out([1, 2, 3, 4, 5], tmp_path, progress=said.append) == [-1, -2, -3, -4, -5]
    assert (ray.begun, ray.most, ray.shut) == (5, 2, 1)
    assert said == sorted(said)
    assert said[-1] == 15
    assert not list(tmp_path.iterdir())
    assert carry_out([], tmp_path) == []


def test_an_error_of_a_task_ends_the_job_as_itself(ray: Fake, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="13 is wrong; give another number"):
        carry_out([1, 13, 2], tmp_path)
    assert ray.shut == 1
    assert not list(tmp_path.iterdir())


def test_a_task_that_is_lost_too_often_says_that_the_same_command_goes_on(ray: Fake, tmp_path: Path) -> None:
    ray.lost = True
    with pytest.raises(UsageError, match=r"lost too often.*node died.*the same command continues the run"):
        carry_out([1], tmp_path)


def test_a_head_that_is_lost_is_named(ray: Fake, tmp_path: Path) -> None:
    ray.silent = True
    ray.listener.close()
    with pytest.raises(UsageError, match=r"the head of the Ray cluster at 127.0.0.1:\d+ is lost"):
        carry_out([1], tmp_path)
    assert ray.shut == 1


def test_without_a_token_nothing_is_sent(ray: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(UsageError, match=r"RAY_AUTH_MODE=disabled is no token.*all interfaces.*get-auth-token"):
        carry_out([1], tmp_path)
    assert not ray.options


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (AuthenticationError("no"), "the head refuses the token of this command"),
        (ConnectionError("nobody listens"), r"launcher.address=None: no Ray cluster was found: nobody listens; start"),
    ],
)
def test_a_cluster_that_is_not_there_or_refuses_is_said_with_what_to_do(
    ray: Fake, tmp_path: Path, error: Exception, says: str
) -> None:
    ray.refuses = error
    with pytest.raises(UsageError, match=says):
        carry_out([1], tmp_path)


def test_without_the_package_the_message_says_how_to_install_it(
    ray: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"needs the package ray: .*\[ray\]"):
        carry_out([1], tmp_path)


@pytest.mark.parametrize("seen", ["another folder", "no folder", "nothing can be written"])
def test_a_node_that_does_not_see_the_folder_is_named(ray: Fake, tmp_path: Path, seen: str) -> None:
    key = "0" * 32
    seal = ray_cluster._Seal(str(tmp_path), str(tmp_path / "run"), key)
    if seen != "no folder":
        seal.file.parent.mkdir()
        seal.file.write_text(key if seen == "nothing can be written" else "1" * 32, "utf-8")
    if seen == "nothing can be written":
        (tmp_path / "run" / f".ray-{key}-{socket.gethostname()}-{os.getpid()}").mkdir()
    with pytest.raises(UsageError, match=r"cannot write .*run, the folder of the run: .*mount the folder"):
        seal.check()


def test_a_run_by_ray_has_the_bytes_of_a_local_one(ray: Fake) -> None:
    there = skg_bench.run([*SMALL, "launcher=ray", "workers=2", "out=there"])
    here = skg_bench.run([*SMALL, "out=here"])
    assert ray.begun > 4
    assert shards(there) == shards(here)


def test_a_node_with_other_code_or_versions_is_refused(
    ray: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = iter([{"code": "a", "numpy": "2.0"}, {"code": "a", "numpy": "2.1"}])
    monkeypatch.setattr(other_machines, "_made_of", lambda: next(machines))
    with pytest.raises(UsageError, match=r"node .* has numpy 2.1, not 2.0: install there"):
        checked_launcher(RayCluster(), []).carry_out(Lab(), [1], 1, tmp_path, print)


def test_a_launcher_of_this_machine_is_not_checked() -> None:
    local = Local()
    assert checked_launcher(local, []) is local


def test_arms_that_ask_a_model_stay_on_one_machine(ray: Fake) -> None:
    asks = "curator=reflecting,curator.llm=endpoint,curator.llm.model=m"
    arms = f"arms={{never: [policy=never], asks: [{asks}]}}"
    code, _, err = call("run", "users=2", "weeks=1", "launcher=ray", arms, "reference=never")
    assert code == 2
    assert "arms that ask a model cannot run on other machines" in err
    assert "asks; take launcher=local" in err
    assert not ray.options
