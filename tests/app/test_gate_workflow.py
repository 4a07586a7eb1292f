"""The workflows for pull requests: who may do what, and their scripts on a small panel in checkouts of this commit."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.app.forks import PROGRAM, forks
from tests.app.gate_runs import EVEN

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS: dict[str, dict[Any, Any]] = {
    file.stem: yaml.safe_load(file.read_text("utf-8")) for file in sorted((ROOT / ".github/workflows").glob("*.yml"))
}
STEPS: list[dict[str, Any]] = [
    step for workflow in WORKFLOWS.values() for job in workflow["jobs"].values() for step in job["steps"]
]
SCRIPTS = {step["name"]: step["run"] for step in STEPS if "run" in step}
COMMIT, NUMBER = "0fedcba9" * 5, "7"
SEED = int(hashlib.sha256(f"{COMMIT} {NUMBER}".encode()).hexdigest()[:7], 16)
LOOP = "simulator.corpus=builtin_120 serving=stored router=maxsim curator=skg"
PANEL, BASELINE = f"experiment=gate users=30 weeks=1 workers=1 {' '.join(EVEN)} {LOOP}", "data/gate/small.json"


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


def checkout(source: Path, folder: Path, python: str) -> Path:
    """A clone whose .venv runs it; its runs end without tables and page, which no gate reads. A clone of a clone is a
    copy, with what Python compiled of it.
    """
    if source == ROOT:
        subprocess.run(["git", "clone", "-q", str(source), str(folder)], check=True, capture_output=True)
    else:
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("runs", ".venv"), copy_function=_linked)
    command = folder / ".venv" / "bin" / "skg-bench"
    command.parent.mkdir(parents=True)
    small = '[ "$1" != gate ] || set -- "$@" --unproven'  # so few users show no lead
    program = command.with_name("program.py")
    program.write_text(PROGRAM)
    command.write_text(f'#!/bin/sh\n{small}\nexec {python} {folder} {program} "$@"\n')
    command.chmod(0o755)
    return folder


def _linked(source: str, place: str) -> str:
    """A copy of a file; of what nobody writes again, 50 MB, the file itself."""
    if {"objects", "corpus"}.intersection(Path(source).parts):
        os.link(source, place)
    else:
        shutil.copy2(source, place)
    return place


def step(name: str, folder: Path, **more: str) -> tuple[int, str]:
    """Exit code and output of a step in a folder."""
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
    command = tmp_path / "base" / ".venv" / "bin" / "skg-bench"
    command.parent.mkdir(parents=True)
    judge = tmp_path / "judge"
    judge.mkdir()
    words = "the same bits" if code else "changed"
    command.write_text(f'#!/bin/sh\necho "{words}" | tee fixed.md\n[ "$1" = run ] || exit {code}\n')
    command.chmod(0o755)
    ended, said = step("Fixed panel", judge)
    output = judge / "output"
    assert (ended, output.exists() and output.read_text()) == (ends, "same=true\n" if same else False), said
    assert ("the fresh panel decides" in said) == (code in (1, 3))


def test_a_verdict_that_was_not_reached_is_no_error_of_its_own(tmp_path: Path) -> None:
    summary = tmp_path / "summary"
    ended, output = step("Say it", tmp_path, GITHUB_STEP_SUMMARY=str(summary))
    assert (ended, summary.exists(), (tmp_path / "verdict.md").exists()) == (0, False, False), output
    assert step("Make the text safe", tmp_path)[0] == 0
    assert step("Comment", tmp_path)[0] == 0
    (tmp_path / "fixed.md").write_text("verdict\n")
    assert step("Say it", tmp_path, GITHUB_STEP_SUMMARY=str(summary))[0] == 0
    assert summary.read_text() == (tmp_path / "verdict.md").read_text() == "verdict\n"


# ----------------------------------------------------------------------------------------------- who may do what


def test_actions_are_pinned_by_commit_with_their_version_and_leave_no_credentials() -> None:
    for name in WORKFLOWS:
        lines = (ROOT / f".github/workflows/{name}.yml").read_text("utf-8").splitlines()
        uses = [line for line in lines if "uses:" in line]
        assert uses
        pin = r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$"
        assert not [line for line in uses if not re.search(pin, line)]
    checkouts = [step for step in STEPS if step.get("uses", "").startswith("actions/checkout@")]
    assert len(checkouts) == 5
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    versions = {action.partition("@")[0]: action for step in STEPS if (action := step.get("uses"))}
    assert {step["uses"] for step in STEPS if "uses" in step} == set(versions.values())  # one of each


def test_no_job_that_runs_code_of_a_repository_has_a_token_that_may_write() -> None:
    gate, comment = WORKFLOWS["gate"], WORKFLOWS["gate_comment"]
    assert gate["permissions"] == WORKFLOWS["soak"]["permissions"] == {"contents": "read"}
    assert not [job for job in gate["jobs"].values() if "permissions" in job]
    assert "token" not in (ROOT / ".github/workflows/gate.yml").read_text("utf-8").partition("jobs:")[2]
    assert comment[True] == {"workflow_run": {"workflows": [gate["name"]], "types": ["completed"]}}  # `on` is true
    assert comment["permissions"] == {}
    (job,) = comment["jobs"].values()
    assert job["permissions"] == {"actions": "read", "pull-requests": "write"}
    assert not [step for step in job["steps"] if "checkout" in step.get("uses", "")]
    assert not [step for step in STEPS if "${{" in step.get("run", "")]  # texts of others go by the environment


def test_the_judge_runs_the_code_of_the_base_only() -> None:
    jobs = WORKFLOWS["gate"]["jobs"]
    (checkout,) = [step for step in jobs["judge"]["steps"] if step.get("uses", "").startswith("actions/checkout@")]
    assert checkout["with"]["ref"] == "${{ github.event.pull_request.base.sha }}"
    scripts = " ".join(step["run"] for step in jobs["judge"]["steps"] if "run" in step)
    commands = re.findall(r"(\S*)/\.venv/bin/skg-bench", scripts)
    assert set(commands) == {"../base", '"$1'}
    assert set(re.findall(r"before (\S+) ", scripts)) == {"../anchor", "../base", "../release"}
    assert "gate" not in [word for step in jobs["change"]["steps"] for word in step.get("run", "").split()]


def test_the_text_of_a_verdict_mentions_nobody_loads_nothing_and_is_short(tmp_path: Path) -> None:
    (tmp_path / "gate").mkdir()
    file = tmp_path / "gate" / "verdict.md"
    wicked = "@team ![x](https://evil/p.png) [a](https://evil) <img src=x> <!-- -->\x1b[2J\x00 | a | b |\n"
    file.write_bytes(wicked.encode() + b"\xff" + b"x" * 70_000)
    ended, output = step("Make the text safe", tmp_path, RUN="https://github/run/1", ATTEMPT="3")
    assert ended == 0, output
    text = (tmp_path / "verdict.md").read_text("utf-8")
    first = text.splitlines()[0]
    for sign in ("@t", "![", "](", "<", "://", "\x1b", "\x00"):
        assert sign not in first
    assert "| a | b |" in first
    assert len(text) < 51_000
    assert text.endswith("\nAs reported by attempt 3 of https://github/run/1.\n")
    file.unlink()
    file.symlink_to("/etc/hostname")
    (tmp_path / "verdict.md").unlink()
    assert step("Make the text safe", tmp_path)[0] == 0
    assert not (tmp_path / "verdict.md").exists()


# ------------------------------------------------------------------------------------------------------- panels


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What plays the commands of checkouts."""
    with forks(tmp_path_factory.mktemp("forks")) as words:
        yield words


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, python: str) -> Path:
    """The last commit, and a baseline of the small panel."""
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    folder = checkout(ROOT, tmp_path_factory.mktemp("work") / "base", python)
    command = str(folder / ".venv" / "bin" / "skg-bench")
    subprocess.run([command, "run", *PANEL.split(), "out=runs/base"], cwd=folder, check=True, capture_output=True)
    written = [command, "gate", "--baseline", BASELINE, "--update", "runs/base"]
    subprocess.run(written, cwd=folder, check=True, capture_output=True)
    git(folder, "add", BASELINE)
    git(folder, "commit", "-q", "-m", "Write a small baseline")
    return folder


@pytest.fixture(scope="module")
def change(base: Path, python: str) -> Path:
    """A change that lowers the threshold, and its runs."""
    folder = checkout(base, base.parent / "change", python)
    _lower_threshold(folder)
    code, output = step("Runs of the change", folder)
    assert code == 0, output
    return folder


def judged(folder: Path, change: Path) -> Path:
    """A folder beside the base, with the runs of a change, in which the base judges them."""
    shutil.copytree(change / "runs", folder / "runs" / "change")
    return folder


def test_nothing_changed_is_known_from_the_fixed_panel(base: Path, python: str) -> None:
    same = checkout(base, base.parent / "same", python)
    command = [str(same / ".venv" / "bin" / "skg-bench"), "run", *PANEL.split(), "out=runs/fixed"]
    subprocess.run(command, cwd=same, check=True, capture_output=True)
    judge = judged(base.parent / "judge-same", same)
    code, output = step("Fixed panel", judge)
    assert (code, (judge / "output").read_text()) == (0, "same=true\n"), output


def test_a_change_of_the_threshold_is_stopped_by_the_fresh_panel(base: Path, change: Path) -> None:
    judge = judged(base.parent / "judge-change", change)
    code, output = step("Fixed panel", judge)
    assert code == 0, output
    assert "exit code 1: the fresh panel decides" in output
    assert not (judge / "output").exists()
    code, output = step("Fresh panel", judge)
    assert code == 1, output
    assert "::error title=wrong per request" in output
    assert "reason: threshold" in (judge / "fresh.md").read_text("utf-8")
    for name in ("fresh-case.json", "fresh-base.json"):
        assert f'"seed": {SEED},' in (judge / name).read_text("utf-8")


def seed_of(folder: Path, **environment: str) -> str:
    """The seed that the fresh panels run with, told by commands that write down their words."""
    for place in (folder / "judge", folder / "base"):
        command = place / ".venv" / "bin" / "skg-bench"
        command.parent.mkdir(parents=True, exist_ok=True)
        command.write_text('#!/bin/sh\necho "$@"\n')
        command.chmod(0o755)
    (folder / "base" / BASELINE).parent.mkdir(parents=True, exist_ok=True)
    (folder / "base" / BASELINE).write_text("{}")
    names = ("Runs of the change", "Fresh panel")
    outputs = [step(name, folder / "judge", **environment)[1] for name in names]
    (seed,) = {word for word in " ".join(outputs).split() if word.startswith("seed=")}
    return seed


def test_a_commit_draws_no_other_users_and_another_pull_request_does(tmp_path: Path) -> None:
    seed = seed_of(tmp_path, GITHUB_SHA="1" * 40)
    assert seed == f"seed={SEED}"
    assert seed_of(tmp_path, GITHUB_SHA="2" * 40) == seed
    assert seed_of(tmp_path, NUMBER="8") != seed
    assert seed_of(tmp_path, BASE="3" * 40) != seed


def test_drift_fails_where_the_change_itself_does_no_harm(base: Path, change: Path, python: str) -> None:
    """The anchor's version runs on the fresh panel too. A commit of the base lowered the threshold, and no other."""
    work = base.parent / "drift"
    checkout(base, work / "anchor", python)
    _lower_threshold(checkout(base, work / "base", python))
    judge = judged(work / "judge", change)
    code, output = step("Fresh panel", judge)
    assert code == 1, output
    assert "* against the baseline: the same bits, turn by turn." in output
    assert re.findall(r"::error title=.* FAILED::against the (\w+):", output) == ["anchor"] * 3
    fresh = json.loads((judge / "fresh-base.json").read_text("utf-8"))
    assert fresh["anchor"]["made"]["compositions"]["gated"]["policy"]["threshold"] == 0.5
    assert fresh["made"]["compositions"]["gated"]["policy"]["threshold"] == 0.2


def _lower_threshold(folder: Path) -> None:
    """A commit after which more is reused, and wrongly."""
    policy = folder / "conf" / "policy" / "threshold.yaml"
    policy.write_text(policy.read_text("utf-8").replace("threshold: 0.5", "threshold: 0.2"), "utf-8")
    git(folder, "commit", "-q", "-a", "-m", "Lower the threshold")
