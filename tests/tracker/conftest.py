"""A small finished run, and Opik's contract server with a memory and with ways to fail."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import skg_bench
from tests.tracker.server import Server

SMALL = (
    "workers=1", "users=5", "weeks=2", "arms={skg: [policy.threshold=0.3], never: [policy=never, curator=none]}",
)  # fmt: skip


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> skg_bench.Run:
    """Five users, two weeks, two arms: more events than one batch takes."""
    return skg_bench.run([*SMALL, f"out={tmp_path_factory.mktemp('runs') / 'small'}"])


@pytest.fixture
def run(original: skg_bench.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> skg_bench.Run:
    """A copy of it, where nothing of the environment names a server."""
    for name in ("OPIK_URL_OVERRIDE", "OPIK_API_KEY", "OPIK_WORKSPACE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    return skg_bench.Run(shutil.copytree(original.path, tmp_path / "runs" / "small"))


@pytest.fixture
def server() -> Iterator[Server]:
    """Opik, as far as it matters here."""
    started = Server()
    yield started
    started.stop()
