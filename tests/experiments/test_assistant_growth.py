"""The main experiment's verdicts follow its figures."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.assistant_growth.analysis import analyse, findings
from skg_bench import run as simulate
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    size = ["experiment=assistant_growth", "users=3", "workers=1", "weeks=1", "simulator.messages_per_day=5"]
    return simulate([*size, f"out={tmp_path_factory.mktemp('growth') / 'run'}"])


def summary(run: Run) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run.path / "summary.json").read_text("utf-8"))
    return content


def test_expectations_hold_or_not_by_their_figures_and_the_page_is_written(run: Run, tmp_path: Path) -> None:
    figures, curves = summary(run), (run.path / "curves.csv").read_text("utf-8")
    by_text = {expectation.expectation: expectation for expectation in findings(figures, curves)}
    assert by_text["never hits nothing, skg_band learns nothing"].holds
    figures["arms"]["skg_band"]["skills"]["mean"] = 0.5
    assert not findings(figures, curves)[0].holds
    report = analyse(run)
    report.write(tmp_path, "assistant_growth")
    assert report.holds == all(expectation.holds for expectation in by_text.values())
    page = (tmp_path / "assistant_growth.md").read_text("utf-8")
    assert page.count("| yes |") + page.count("| no |") == len(by_text)


def test_a_run_without_the_arms_is_refused(tmp_path: Path) -> None:
    other = simulate(
        ["arms={skg: [], never: [policy=never]}", "users=4", "workers=1", "weeks=1", f"out={tmp_path / 'run'}"]
    )
    with pytest.raises(UsageError, match="has no arm 'skg_prompted'; it has skg, never; make a run with all arms"):
        analyse(other)
