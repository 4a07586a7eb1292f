"""The workflow for pull requests: its own scripts, on a small panel, in checkouts of the last commit."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
STEPS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".github/workflows/gate.yml").read_text("utf-8"))["jobs"]["gate"][
    "steps"
]
SCRIPTS = {step["name"]: step["run"] for step in STEPS if "run" in step}
COMMIT, NUMBER = "0fedcba9" * 5, "7"
SEED = int(hashlib.sha256(f"{COMMIT} {NUMBER}".encode()).hexdigest()[:7], 16)
PANEL, BASELINE = "experiment=gate users=40 weeks=1", "data/gate/small.json"


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


def checkout(source: Path, folder: Path) -> Path:
    """A clone whose .venv runs it."""
    subprocess.run(["git", "clone", "-q", str(source), str(folder)], check=True, capture_output=True)
    command = folder / ".venv" / "bin" / "skg-bench"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nPYTHONPATH={folder} exec {sys.executable} -P -m skg_bench "$@"\n')
    command.chmod(0o755)
    return folder


def step(name: str, folder: Path, **more: str) -> tuple[int, str]:
    """Exit code and output of a step in the checkout of the change."""
    environment = {**os.environ, "PANEL": PANEL, "BASELINE": BASELINE, "BASE": COMMIT, "NUMBER": NUMBER}
    environment |= {"GITHUB_OUTPUT": str(folder / "output"), **more}
    script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", SCRIPTS[name]]
    done = subprocess.run(script, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("code", "same", "ends"), [(0, True, 0), (1, False, 0), (2, False, 2), (3, False, 0), (139, False, 139)]
)
def test_the_fixed_panel_decides_by_the_exit_code_and_not_by_what_was_said(
    code: int, same: bool, ends: int, tmp_path: Path
) -> None:
    command = tmp_path / ".venv" / "bin" / "skg-bench"
    command.parent.mkdir(parents=True)
    words = "the same bits" if code else "changed"
    command.write_text(f'#!/bin/sh\necho "{words}" | tee fixed.md\n[ "$1" = run ] || exit {code}\n')
    command.chmod(0o755)
    ended, said = step("Fixed panel", tmp_path)
    output = tmp_path / "output"
    assert (ended, output.exists() and output.read_text()) == (ends, "same=true\n" if same else False), said
    assert ("the fresh panel decides" in said) == (code in (1, 3))


def test_a_verdict_that_was_not_reached_is_no_error_of_its_own(tmp_path: Path) -> None:
    summary = tmp_path / "summary"
    ended, output = step("Say it", tmp_path, GITHUB_STEP_SUMMARY=str(summary), OWN="false")
    assert (ended, summary.exists()) == (0, False), output
    (tmp_path / "fixed.md").write_text("verdict\n")
    said = {"GITHUB_STEP_SUMMARY": str(summary), "OWN": "false", "GITHUB_RUN_ATTEMPT": "3"}
    assert step("Say it", tmp_path, **said)[0] == 0
    verdict, _, attempts = summary.read_text().partition("\n\n")
    assert verdict == "verdict"
    assert re.fullmatch(r"Pushes of this branch that were gated: .+; attempt at this one: 3\.\n", attempts)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The last commit, and a baseline of the small panel."""
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    folder = checkout(ROOT, tmp_path_factory.mktemp("work") / "base")
    command = str(folder / ".venv" / "bin" / "skg-bench")
    subprocess.run([command, "run", *PANEL.split(), "out=runs/base"], cwd=folder, check=True, capture_output=True)
    written = [command, "gate", "--baseline", BASELINE, "--update", "runs/base"]
    subprocess.run(written, cwd=folder, check=True, capture_output=True)
    git(folder, "add", BASELINE)
    git(folder, "commit", "-q", "-m", "Write a small baseline")
    return folder


def test_nothing_changed_is_known_from_the_fixed_panel(base: Path) -> None:
    change = checkout(base, base.parent / "same")
    code, output = step("Fixed panel", change)
    assert (code, (change / "output").read_text()) == (0, "same=true\n"), output


def test_a_change_of_the_threshold_is_stopped_by_the_fresh_panel(base: Path) -> None:
    change = checkout(base, base.parent / "change")
    policy = change / "conf" / "policy" / "threshold.yaml"
    policy.write_text(policy.read_text("utf-8").replace("threshold: 0.5", "threshold: 0.2"), "utf-8")
    git(change, "commit", "-q", "-a", "-m", "Lower the threshold")
    code, output = step("Fixed panel", change)
    assert code == 0, output
    assert "exit code 1: the fresh panel decides" in output
    assert not (change / "output").exists()
    code, output = step("Fresh panel", change)
    assert code == 1, output
    assert "::error title=wrong per request" in output
    assert "reason: threshold" in (change / "fresh.md").read_text("utf-8")
    for name in ("fresh-case.json", "fresh-base.json"):
        assert f'"seed": {SEED},' in (change / name).read_text("utf-8")


def seed_of(folder: Path, **environment: str) -> str:
    """The seed that the fresh panel runs with, told by a command that writes down its words and then ends."""
    for name in ("base", "change"):
        command = folder / name / ".venv" / "bin" / "skg-bench"
        command.parent.mkdir(parents=True, exist_ok=True)
        command.write_text('#!/bin/sh\necho "$@"\nexit 9\n')
        command.chmod(0o755)
    (folder / "base" / BASELINE).parent.mkdir(parents=True, exist_ok=True)
    (folder / "base" / BASELINE).write_text("{}")
    code, output = step("Fresh panel", folder / "change", **environment)
    assert code == 9, output
    return next(word for word in output.split() if word.startswith("seed="))


def test_a_commit_draws_no_other_users_and_another_pull_request_does(tmp_path: Path) -> None:
    seed = seed_of(tmp_path, GITHUB_SHA="1" * 40)
    assert seed == f"seed={SEED}"
    assert seed_of(tmp_path, GITHUB_SHA="2" * 40) == seed
    assert seed_of(tmp_path, NUMBER="8") != seed
    assert seed_of(tmp_path, BASE="3" * 40) != seed


def test_drift_is_measured_on_the_fresh_panel_too(base: Path) -> None:
    """The anchor's version runs on it, and the base's update leaves it there."""
    work = base.parent / "drift"
    for name in ("anchor", "base", "change"):
        checkout(base, work / name)
    policy = work / "anchor" / "conf" / "policy" / "threshold.yaml"
    policy.write_text(policy.read_text("utf-8").replace("threshold: 0.5", "threshold: 0.7"), "utf-8")
    git(work / "anchor", "commit", "-q", "-a", "-m", "Another threshold")
    code, output = step("Fresh panel", work / "change")
    assert "against the anchor" in output
    assert code in (1, 3), output
    fresh = json.loads((work / "change" / "fresh-base.json").read_text("utf-8"))
    assert fresh["anchor"]["made"]["compositions"]["skg"]["policy"]["threshold"] == 0.7
    assert fresh["made"]["compositions"]["skg"]["policy"]["threshold"] == 0.5
