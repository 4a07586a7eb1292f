"""A real run, small, made once; the panel of a gate, and its baseline file."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

import skg_bench
from skg_bench.app import gate, launch
from skg_bench.app.run_identity import provenance
from tests.app.gate_runs import PANEL
from tests.app.test_cli import call
from tests.runs import logs_alone

TINY = ("workers=1", "users=4", "weeks=2", "arms={skg: [policy.threshold=0.3], never: [policy=never]}")


@pytest.fixture(scope="session")
def tiny_run(once: Callable[..., Path]) -> skg_bench.Run:
    """Four users, two weeks, two arms."""
    return skg_bench.Run(once("tiny", lambda folder: skg_bench.run([*TINY, f"out={folder}"])))


@pytest.fixture
def tiny() -> tuple[str, ...]:
    """Overrides of `tiny_run`, its folder aside."""
    return TINY


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def play(once: Callable[..., Path]) -> Callable[..., Path]:
    """The logs of a run of the panel with these overrides, made once, as if from a clean tree."""

    def run(*overrides: str) -> Path:
        def make(out: Path) -> None:
            with logs_alone(), pytest.MonkeyPatch.context() as patch:
                patch.setattr(launch, "provenance", lambda: {**provenance(), "dirty": None})
                skg_bench.run([*PANEL, *overrides, f"out={out}"])

        return once(f"panel-{sha256(' '.join(overrides).encode()).hexdigest()[:16]}", make)

    return run


@pytest.fixture
def unproven(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with --unproven: a small panel of SKG's loop is not ahead of `never`, and is gated all the same."""
    monkeypatch.setattr(gate, "_refuse_unproven", lambda *_: None)


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree without uncommitted files."""
    monkeypatch.setattr(gate, "uncommitted", list)


@pytest.fixture
def baseline(play: Callable[..., Path], tmp_path: Path, clean: None, unproven: None) -> Path:
    file = tmp_path / "gate" / "baseline.json"
    code, out, _ = call("gate", "--baseline", str(file), "--update", str(play()))
    assert code == 0
    assert "arm skg, 40 users; anchor: " in out
    assert "; margins: lead keeps 50%, utility 0.01, utility_late 0.02, err_per_request 0.005" in out
    return file
