"""Several runs on one page: what differs, what is refused, and how it looks in a browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page
from typer.testing import CliRunner

from skg_bench.analysis import report, summary
from skg_bench.analysis.report.several_runs import differing_keys
from skg_bench.app.cli import app
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from tests.analysis.synthetic import make_run

Visit = Callable[..., Page]


def manifest(**changes: Any) -> dict[str, Any]:
    """A manifest with two arms, whose parts are replaced by `changes`."""
    policy = {"_target_": "a.Threshold", "threshold": 0.5}
    whole = {
        "config": {"seed": 0, "workers": 1, "policy": policy},
        "compositions": {"skg": {"policy": policy}, "never": {"policy": {"_target_": "a.Never"}}},
        "data": {}, "code": "c", "beside": [], "arms": ["skg", "never"], "versions": {"numpy": "2"},
    }  # fmt: skip
    return {**whole, **changes}


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Run:
    made = make_run(tmp_path_factory.mktemp("second") / "run", users=12, weeks=3, per_week=30.0)
    summary.write_summary(made)
    return made


def test_what_differs_is_listed_once_and_what_changes_no_result_is_not() -> None:
    policy = {"_target_": "a.Threshold", "threshold": 0.8}
    other = manifest(
        config={"seed": 0, "workers": 4, "policy": policy},
        compositions={"skg": {"policy": policy}, "never": {"policy": {"_target_": "a.Never"}}},
    )
    assert differing_keys([manifest(), other]) == [("policy.threshold", ["0.5", "0.8"])]
    assert differing_keys([manifest(), manifest(config={**manifest()["config"], "workers": 3})]) == []


def test_an_arm_that_differs_from_the_root_has_a_row_of_its_own() -> None:
    arms = manifest()["compositions"]
    other = manifest(compositions={**arms, "skg": {"policy": {"_target_": "a.Threshold", "threshold": 0.7}}})
    assert differing_keys([manifest(), other]) == [("arm skg: policy.threshold", ["0.5", "0.7"])]


def test_parameters_that_come_with_another_component_are_not_listed_beside_it() -> None:
    config = {"seed": 0, "workers": 1, "policy": {"_target_": "a.Softmax", "temperature": 2}}
    assert differing_keys([manifest(), manifest(config=config)]) == [("policy._target_", ["a.Threshold", "a.Softmax"])]


def test_versions_and_code_that_differ_are_listed() -> None:
    rows = dict(differing_keys([manifest(), manifest(code="d", versions={"numpy": "3"})]))
    assert rows == {"code": ["c", "d"], "version of numpy": ["2", "3"]}


def test_each_run_keeps_its_own_reference_level_and_verdict(run: Run, second: Run, tmp_path: Path) -> None:
    text = report.write_side_by_side([run, second]).read_text("utf-8")
    for each in (run, second):
        content = summary.read_summary(each)
        gap = content.differences[content.learner]["utility"]
        assert f">{gap.verdict}</span>" in text
        assert str(each.path) in text
    assert "2 runs. Their learners: " in text
    assert "<script>alert" not in text


def test_the_same_run_twice_and_users_of_several_runs_are_refused(run: Run, second: Run) -> None:
    with pytest.raises(UsageError, match="is given twice"):
        report.write_side_by_side([run, second, Run(run.path / ".." / run.path.name)])
    done = CliRunner().invoke(app, ["report", str(run.path), str(second.path), "--user", "1"])
    assert (done.exit_code, "go with one run" in done.stderr) == (2, True)


def test_the_page_is_named_as_seen_from_here(run: Run, second: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(second.path.parent)
    done = CliRunner().invoke(app, ["report", second.path.name, str(run.path)])
    assert done.stdout.startswith("page: side-by-side-"), done.stderr
    Path(done.stdout.strip().removeprefix("page: ")).unlink()


def test_a_run_of_another_schema_version_is_refused_and_nothing_is_written(second: Run, tmp_path: Path) -> None:
    other = tmp_path / "old"
    other.mkdir()
    text = (second.path / "manifest.json").read_text("utf-8")
    (other / "manifest.json").write_text(text.replace('"schema": ', '"schema": 9', 1))
    pages = sorted(second.path.parent.glob("side-by-side-*"))
    done = CliRunner().invoke(app, ["report", str(second.path), str(other)])
    assert done.exit_code == 2, done.stderr
    assert sorted([*second.path.parent.glob("side-by-side-*"), *tmp_path.glob("side-by-side-*")]) == pages


@pytest.mark.parametrize("width", [390, 1920])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser_a_menu_shows_another_metric_and_nothing_sticks_out(
    visit: Visit, run: Run, second: Run, width: int, scheme: str
) -> None:
    viewport = {"width": width, "height": 800}
    page = visit(report.write_side_by_side([run, second]), viewport=viewport, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shown = page.locator("[data-table^=metric-]:visible")
    assert shown.count() == 1
    page.locator("select[data-tables=metric]").select_option("hit_rate")
    assert shown.get_attribute("data-table") == "metric-hit_rate"
    assert page.locator("[data-table=curves-1] svg.chart").count() > 0
    tag = page.locator("table[data-name=runs] .tag").first
    box = tag.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= width  # the verdict is on the screen at once
