"""The workflow of the night: it calls what the Makefile has, reads only, and keeps the output of a failure."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW: dict[Any, Any] = yaml.safe_load((ROOT / ".github/workflows/soak.yml").read_text("utf-8"))
JOB: dict[str, Any] = WORKFLOW["jobs"]["soak"]
STEPS: list[dict[str, Any]] = JOB["steps"]
SCRIPT = next(step for step in STEPS if step.get("name") == "Long tests")


def soak(folder: Path, code: int) -> int:
    """Exit code of the step in a folder whose `make soak` says a line and ends with `code`.

    Where `make` runs these tests, it tells one below to name its folders as well.
    """
    (folder / "Makefile").write_text(f"soak:\n\t@echo $(PYTHON) ran; exit {code}\n")
    script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", SCRIPT["run"]]
    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run(script, cwd=folder, env=alone, capture_output=True, check=False).returncode


def test_it_runs_every_night_and_on_demand_and_may_only_read() -> None:
    events = WORKFLOW[True]  # yaml takes the key `on` for a truth value
    assert set(events) == {"schedule", "workflow_dispatch"}
    assert [len(event["cron"].split()) for event in events["schedule"]] == [5]
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert "permissions" not in JOB


def test_its_steps_call_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = [name for step in STEPS for name in re.findall(r"\bmake ([a-z-]+)", step.get("run", ""))]
    assert targets == ["soak"]
    assert all(re.search(rf"^{name}:", makefile, re.MULTILINE) for name in targets)


def test_a_failure_ends_the_step_and_its_output_is_kept(tmp_path: Path) -> None:
    assert soak(tmp_path, 0) == 0
    assert soak(tmp_path, 1) != 0
    assert (tmp_path / "soak.log").read_text().startswith("python ran\n")
    upload = STEPS[-1]
    assert upload["if"] == "failure() || cancelled()"
    results = SCRIPT["env"]["PYTEST_ADDOPTS"].partition("--junit-xml=")[2]
    assert upload["with"]["path"].split() == ["soak.log", results]
