"""The panel of losses: bars that lead from the ceiling to what was reached, and the same figures as a table."""

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from playwright.sync_api import Page

from skg_bench.analysis import summary
from skg_bench.analysis.report.arm_looks import looks
from skg_bench.analysis.report.typeset import typeset_value
from skg_bench.analysis.report.waterfall import LOSS_WORDS, ArmLosses, panels
from skg_bench.analysis.summary import Summary
from skg_bench.analysis.summary.figures import NO_FIGURE
from skg_bench.analysis.summary.losses import ORDER
from skg_bench.runfolder.run import Run

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def figures(run: Run) -> Summary:
    return summary.read_summary(run)


@pytest.fixture(scope="module")
def drawn(run: Run, figures: Summary) -> list[ArmLosses]:
    return panels(figures, looks(run.arms, "never", run.manifest["compositions"], {}))


def parsed(panel: ArmLosses) -> ET.Element:
    return ET.fromstring(str(panel.drawing).replace("<svg", f'<svg xmlns="{SVG[1:-1]}"', 1))  # noqa: S314  our own


def test_every_cause_is_in_words_for_the_reader() -> None:
    assert set(LOSS_WORDS) == set(ORDER)


def test_bars_hang_on_one_another_from_the_ceiling_down_to_what_was_reached(drawn: list[ArmLosses]) -> None:
    for panel in drawn:
        root = parsed(panel)
        rects = [(float(r.attrib["x"]), float(r.attrib["width"])) for r in root.iter(f"{SVG}rect")]
        ceiling, reached = (float(m.attrib["x1"]) for m in root.iter(f"{SVG}line") if m.get("class") == "level")
        assert len(rects) == len(ORDER)
        assert rects[0][0] + rects[0][1] == pytest.approx(ceiling, abs=0.2)
        for (left, _), (after, width) in pairwise(rects):
            assert width == 0.8 or after + width == pytest.approx(left, abs=0.2)
        assert rects[-1][0] == pytest.approx(reached, abs=0.2)


def test_a_bars_width_is_its_loss(drawn: list[ArmLosses], figures: Summary) -> None:
    losses = {cause: loss.mean or 0.0 for cause, loss in figures.waterfall["skg"].losses.items()}
    widths = [float(r.attrib["width"]) for r in parsed(drawn[0]).iter(f"{SVG}rect")]
    biggest = max(ORDER, key=lambda cause: losses[cause])
    scale = widths[ORDER.index(biggest)] / losses[biggest]
    for cause, width in zip(ORDER, widths, strict=True):
        assert width == pytest.approx(max(losses[cause] * scale, 0.8), abs=0.3)


def test_the_table_says_the_same_in_numbers(drawn: list[ArmLosses], figures: Summary) -> None:
    for panel in drawn:
        fall = figures.waterfall[panel.look.arm]
        assert panel.reached == typeset_value(figures.arms[panel.look.arm]["utility"].mean, "utility")
        for cause, row in zip(ORDER, panel.rows, strict=True):
            loss, against = fall.losses[cause], (fall.differences or {}).get(cause, NO_FIGURE)
            assert row.loss == typeset_value(loss.mean, "utility")
            assert row.turns == typeset_value(loss.n_turns / figures.turns, "share")
            assert row.difference == typeset_value(against.mean, "utility", signed=True)


def test_the_drawing_is_said_for_those_who_do_not_see_it(drawn: list[ArmLosses]) -> None:
    description = parsed(drawn[0]).attrib["aria-label"]
    assert description.startswith("skg: from 1.000 to ")
    assert all(label in description for label, _ in LOSS_WORDS.values())


def test_the_learner_is_shown_first_and_any_arm_can_be_chosen(visit: Callable[..., Page], page_path: Path) -> None:
    page = visit(page_path)
    falls = page.locator("[data-table^=waterfall-]:visible")
    assert (falls.count(), falls.get_attribute("data-table")) == (1, "waterfall-skg")
    page.locator("select[data-tables=waterfall]").select_option("never")
    assert (falls.count(), falls.get_attribute("data-table")) == (1, "waterfall-never")
    assert page.locator("[data-table^=against-]:visible").get_attribute("data-table") == "against-utility"


def test_paper_and_readers_without_script_get_the_learners_losses(visit: Callable[..., Page], page_path: Path) -> None:
    page = visit(page_path, color_scheme="dark", java_script_enabled=False)
    page.emulate_media(media="print")
    fall = page.locator("[data-table=waterfall-skg]")
    assert fall.locator("svg rect").count() == len(ORDER)
    assert fall.is_visible()
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide == 0


def test_hostile_arm_names_stay_text(run: Run, figures: Summary) -> None:
    hostile = Summary.from_json(figures.to_json().replace('"skg"', '"<b>&\'x"'))
    (panel, *_) = panels(hostile, looks(["<b>&'x", "never"], "never", {}, {}))
    assert "<b>" not in panel.drawing
    assert re.search('aria-label="&lt;b&gt;', panel.drawing)
