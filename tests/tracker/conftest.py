"""A small finished run, and Opik's contract server with a memory and with ways to fail."""

import importlib.util
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import skg_bench
from tests.tracker.server import Server

SMALL = (
    "workers=1", "users=6", "weeks=3", "arms={skg: [policy.threshold=0.3], never: [policy=never, curator=none]}",
)  # fmt: skip


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> skg_bench.Run:
    """Six users, three weeks, two arms."""
    return skg_bench.run([*SMALL, f"out={tmp_path_factory.mktemp('runs') / 'small'}"])


@pytest.fixture
def run(original: skg_bench.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> skg_bench.Run:
    """A copy of it, where nothing of the environment names a server."""
    for name in ("OPIK_URL_OVERRIDE", "OPIK_API_KEY", "OPIK_WORKSPACE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    return skg_bench.Run(shutil.copytree(original.path, tmp_path / "runs" / "small"))


@pytest.fixture(scope="session")
def stub(shared: Path) -> Callable[[], Any]:
    """Starts Opik's contract server; its description is read once."""
    spec = importlib.util.spec_from_file_location("contract_server", shared / "opik" / "contract_server.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # it leaves the file to be closed by chance
        contract = module.Contract(shared / "opik" / "openapi.yaml")
    vars(module)["Contract"] = lambda _path: contract
    return lambda: module.Stub(None)


@pytest.fixture
def server(stub: Callable[[], Any]) -> Iterator[Server]:
    """Opik, as far as it matters here."""
    started = Server(stub())
    yield started
    started.stop()
