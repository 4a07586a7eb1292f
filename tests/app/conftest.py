"""A real run, small, made once."""

from pathlib import Path

import pytest

import skg_bench

TINY = ("workers=1", "users=4", "weeks=2", "arms={skg: [policy.threshold=0.3], never: [policy=never]}")


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> skg_bench.Run:
    """Four users, two weeks, two arms."""
    return skg_bench.run([*TINY, f"out={tmp_path_factory.mktemp('runs') / 'tiny'}"])


@pytest.fixture
def tiny() -> tuple[str, ...]:
    """Overrides of `tiny_run`, its folder aside."""
    return TINY


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
