"""What makes the difference, on the page: from a real run, from runs beside it, and refused from another world."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from typer.testing import CliRunner

from skg_bench import run as simulate
from skg_bench.analysis import report, summary
from skg_bench.analysis.comparison.companion_runs import companion_runs
from skg_bench.analysis.comparison.contrasts import findings
from skg_bench.analysis.comparison.learning_effect import learning_effect
from skg_bench.analysis.comparison.order_control import order_control
from skg_bench.analysis.comparison.transfer_matrix import transfer_matrix
from skg_bench.analysis.report.typeset import typeset_value
from skg_bench.app.cli import app
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from tests.analysis.report.test_page import Outline
from tests.runs import logs_alone

Visit = Callable[..., Page]
WORLD = (
    "users=8",
    "workers=1",
    "weeks=2",
    "simulator.volume_spread=0",
    "simulator.rated_share=0.5",
    "policy.threshold=0.3",
    "experiment=learning_over_time",
)
FROZEN = "frozen_20: [freeze=all, freeze_at=20]"
BOOKS = ", ".join(f"book_{s}: ['fork=skg@{s}', book=hindsight, curator=none]" for s in (0, 20))
SHAM = "sham: ['fork=skg@20', curator=sham], again: ['fork=skg@20', curator=sham, curator.draw=1]"
ASKED = (
    "contrasts=[{kind: nothing by construction, arm: again, reference: sham, asks: other sham content},"
    "{kind: effect, arm: skg, reference: sham, asks: the right turn}]"
)
ALWAYS = "skg: [], never: [policy=never, curator=none]"


def made(tmp_path_factory: pytest.TempPathFactory, name: str, arms: str, *more: str) -> Run:
    """A run with logs alone: what is asked of it here is computed from these."""
    with logs_alone():
        return whole(tmp_path_factory, name, arms, *more)


def whole(tmp_path_factory: pytest.TempPathFactory, name: str, arms: str, *more: str) -> Run:
    out = tmp_path_factory.mktemp("proof") / name
    return simulate([*WORLD, f"arms={{{ALWAYS}, {arms}}}" if arms else f"arms={{{ALWAYS}}}", f"out={out}", *more])


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return whole(tmp_path_factory, "plain", "")


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return whole(tmp_path_factory, "over", f"{FROZEN}, {BOOKS}")


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return made(tmp_path_factory, "asking", SHAM, ASKED)


@pytest.fixture(scope="module")
def permuted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return made(tmp_path_factory, "permuted", "", "simulator.order=permuted")


@pytest.mark.req("P31")
def test_evidence_is_what_each_run_says_by_itself(plain: Run, over: Run, asking: Run, permuted: Run) -> None:
    evidence = companion_runs(plain, [over, asking, permuted])
    assert evidence.learning_effect is not None
    assert evidence.transfer_matrix is not None
    assert evidence.learning_effect[1].effect.mean.tobytes() == learning_effect(over).effect.mean.tobytes()
    assert evidence.transfer_matrix[1].worth.mean.tobytes() == transfer_matrix(over).worth.mean.tobytes()
    assert evidence.findings == tuple(findings(asking))
    assert evidence.order_control == tuple(order_control(plain, permuted))
    alone = companion_runs(plain)
    assert (alone.learning_effect, alone.transfer_matrix, alone.findings, alone.order_control) == (None, None, (), ())


def test_a_run_of_another_world_or_without_anything_to_add_is_refused(
    plain: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = made(tmp_path_factory, "other", "", "users=7", "workers=1", "simulator.rated_share=0.4")
    with pytest.raises(UsageError, match=r"another world than .*: they differ in simulator\.rated_share, users"):
        companion_runs(plain, [other])
    same = made(tmp_path_factory, "same", "", "reference=skg")
    with pytest.raises(UsageError, match="adds nothing"):
        companion_runs(plain, [same])


def test_the_page_shows_the_proof_of_its_own_run_and_switches_its_lines(over: Run, visit: Visit) -> None:
    page = visit(over.path / "report.html")
    proof = page.locator("#proof")
    table = learning_effect(over).effect
    assert (
        typeset_value(float(table.mean[0, 1]), "utility", signed=True) in proof.locator("table.grid").first.inner_text()
    )
    line = page.locator("#f-over-turns .arm.frozen")
    assert line.count() == 1
    page.get_by_role("button", name="none", exact=True).click()
    assert page.locator("#f-over-turns .arm:not(.off)").count() == 0
    assert "book of turn 20" in proof.inner_text()


def test_runs_beside_add_their_parts_and_the_metric_is_picked(
    plain: Run, over: Run, asking: Run, permuted: Run, visit: Visit
) -> None:
    assert 'id="proof"' not in (plain.path / "report.html").read_text("utf-8")
    path = report.write_page(plain, None, [over, asking, permuted])
    outline = Outline(path.read_text("utf-8"))
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    page = visit(path)
    assert page.locator("#f-over-turns .arm").count() == 1
    hits = [finding for finding in findings(asking) if finding.metric.name == "hit_rate"]
    table = page.locator("[data-table=asked-hit_rate]")
    assert not table.is_visible()
    page.locator("select[data-tables=asked]").select_option("hit_rate")
    for finding in hits:
        row = table.locator("tr", has_text=finding.contrast.asks)
        assert row.locator(".tag").inner_text() == finding.verdict
        assert typeset_value(finding.estimate.mean, "share", signed=True) in row.inner_text()
    assert "How much of the rise is order" in page.locator("#proof").inner_text()


def test_the_command_takes_runs_beside(plain: Run, permuted: Run, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(plain.path), "--beside", str(permuted.path)])
    assert done.exit_code == 0
    assert "is order" in (plain.path / "report.html").read_text("utf-8")
    wrong = CliRunner().invoke(app, ["report", str(plain.path), "--beside", str(tmp_path)])
    assert wrong.exit_code == 2


def test_contrasts_sort_within_their_kind_and_lead_to_their_turns(visit: Visit, asking: Run) -> None:
    summary.write_summary(asking)
    page = visit(report.write_page(asking))
    heading = page.locator("[data-table=asked-utility] thead button").first
    for _ in range(2):
        heading.click()
        firsts = page.locator("[data-table=asked-utility] tbody").evaluate_all(
            "bodies => bodies.map(b => b.rows[0].cells[0].firstChild.textContent.trim())"
        )
        assert firsts == ["Nothing by construction", "Effect"]
    page.locator("[data-table=asked-utility] a.turns").last.click()
    expect(page.locator("#person h3").first).to_have_text(re.compile("^Turns that skg and sham"))
