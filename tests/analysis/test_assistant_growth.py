"""The main experiment's verdicts follow its figures."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from experiments.assistant_growth.analysis import analyse, findings, measured
from skg_bench import run as simulate
from skg_bench.core.errors import UsageError
from skg_bench.core.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulate(["users=6", "weeks=3", f"out={tmp_path_factory.mktemp('growth') / 'run'}"])


def summary(run: Run) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run.path / "summary.json").read_text("utf-8"))
    return content


@pytest.mark.req("K01", "K02")
def test_a_claim_is_judged_by_what_is_shown_in_its_direction(run: Run) -> None:
    figures = summary(run)
    for change, verdict in (
        ({"mean": 0.02, "significant": True, "verdict": "better"}, "reproduced"),
        ({"mean": -0.02, "significant": True, "verdict": "worse"}, "not reproduced"),
        ({"mean": 0.02, "significant": False, "verdict": "inconclusive"}, "not testable here"),
        ({"mean": 0.02, "significant": True, "verdict": "not testable here"}, "not testable here"),
    ):
        changed = deepcopy(figures)
        mean = float(change["mean"])  # type: ignore[arg-type]
        changed["differences"]["skg"]["utility"] |= {**change, "low_new": mean - 0.01, "high_new": mean + 0.01}
        (finding,) = (f for f in measured(run, changed) if f.claimed == "a skillbook serves users better")
        assert finding.verdict == verdict
        assert ("the corpus was used up" in finding.words) == (change["verdict"] == verdict)
    utility = figures["differences"]["skg"]["utility"] | {"mean": 0.02, "low_new": 0.01, "high_new": 0.03}
    figures["differences"]["skg"]["cost_usd"] = utility
    cost = measured(run, figures)[0]
    assert cost.measured.value == 0.02  # type: ignore[union-attr]
    utility["low_new"] = utility["high_new"] = None
    assert measured(run, figures)[0].measured == "too few users or intents"


def test_expectations_hold_or_not_by_their_figures_and_claims_are_written(run: Run, tmp_path: Path) -> None:
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
    assert len(json.loads((tmp_path / "claims" / "assistant_growth.json").read_text("utf-8"))) == 4


def test_a_run_without_the_arms_is_refused(tmp_path: Path) -> None:
    other = simulate(["arms={skg: [], never: [policy=never]}", "users=4", "weeks=1", f"out={tmp_path / 'run'}"])
    with pytest.raises(UsageError, match="has no arm 'skg_prompted'; it has skg, never; make a run with all arms"):
        analyse(other)
