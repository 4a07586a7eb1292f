"""The page as a reader meets it: in a browser, from disk."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page

from skg_bench.analysis import report
from skg_bench.runfolder.run import Run
from tests.analysis.report.conftest import HOSTILE, turns_shown

Visit = Callable[..., Page]
DRAWN = """() => [...document.querySelectorAll('.chart')].flatMap(svg => [
  ...[...svg.querySelectorAll('.line, .band, .under, .lead')].map(p => p.getAttribute('d')),
  ...[...svg.querySelectorAll('text')].map(t => `${t.textContent} ${t.getAttribute('x')} ${t.getAttribute('y')}`)])"""
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def same_drawing(first: list[str], other: list[str]) -> bool:
    """Whether paths and labels agree to a tenth of a pixel, which is what the page rounds to."""
    shapes = [[NUMBER.sub("#", text) for text in drawing] for drawing in (first, other)]
    left, right = ([float(n) for text in drawing for n in NUMBER.findall(text)] for drawing in (first, other))
    return shapes[0] == shapes[1] and bool(np.allclose(left, right, rtol=0, atol=0.11))


def open_user(page: Page) -> int:
    return int(page.locator("#users tbody tr.open").get_attribute("data-user") or -1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_from_disk_with_its_verdict_and_asks_nothing_of_anyone(
    visit: Visit, page_path: Path, scheme: str
) -> None:
    page = visit(page_path, color_scheme=scheme)
    assert page.locator("h1").inner_text().startswith("skg ")
    assert page.locator(".figures svg.chart").count() >= 12
    assert page.evaluate("performance.getEntriesByType('resource').length") == 0


def test_dark_mode_turns_the_page_dark(visit: Visit, page_path: Path) -> None:
    def brightness(scheme: str) -> int:
        page = visit(page_path, color_scheme=scheme)
        colours = page.evaluate("[document.documentElement, document.body].map(e => getComputedStyle(e))"
                                ".flatMap(s => [s.backgroundColor, s.color])")  # fmt: skip
        paper, ink = colours[0], colours[3]
        return sum(map(int, re.findall(r"\d+", paper)[:3])) - sum(map(int, re.findall(r"\d+", ink)[:3]))

    assert brightness("light") > 400
    assert brightness("dark") < -400


def test_an_arm_switched_off_leaves_every_figure_and_comes_back_exactly_as_it_was(
    visit: Visit, page_path: Path
) -> None:
    page = visit(page_path)
    before = page.evaluate(DRAWN)
    lines = page.locator(".chart .arm[data-name=skg]:not(.off)").count()
    assert lines >= 11
    page.locator("label.chip", has_text=re.compile("^skg$")).click()
    assert page.locator(".chart .arm[data-name=skg]:not(.off)").count() == 0
    assert page.locator(".chart .label[data-name=skg]").count() == 0
    assert page.locator("#arms tr.off[data-arm=skg]").count() >= 1
    assert not same_drawing(page.evaluate(DRAWN), before)
    page.locator("label.chip", has_text=re.compile("^skg$")).click()
    assert same_drawing(page.evaluate(DRAWN), before)  # the script draws as the page was written


def test_all_and_none_switch_all_arms(visit: Visit, page_path: Path) -> None:
    page = visit(page_path)
    page.get_by_role("button", name="none", exact=True).click()
    assert page.locator(".chart .arm:not(.off)").count() == 0
    page.get_by_role("button", name="all", exact=True).click()
    assert page.locator(".chart .arm.off").count() == 0


def test_values_are_read_off_by_pointer_and_by_keyboard(visit: Visit, page_path: Path, run: Run) -> None:
    page = visit(page_path)
    chart = page.locator("#f-hit_rate svg")
    chart.hover(position={"x": 60, "y": 60})
    assert "week 1" in page.locator("#tip caption").inner_text()
    chart.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    caption, row = page.locator("#tip caption").inner_text(), page.locator("#tip tr", has_text="skg").inner_text()
    assert "week 4" in caption
    rows = [line.split(",") for line in (run.path / "curves.csv").read_text("utf-8").splitlines()]
    (mean,) = [float(r[4]) for r in rows if r[:3] == ["skg", "4", "hit_rate"]]
    assert f"{100 * mean:.1f}" in row
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


def test_the_table_of_differences_shows_the_metric_that_is_chosen(visit: Visit, page_path: Path) -> None:
    page = visit(page_path)
    page.locator("select[data-tables=against]").select_option("hit_rate")
    shown = page.locator("[data-table^=against-]:visible")
    assert shown.count() == 1
    assert shown.get_attribute("data-table") == "against-hit_rate"
    assert page.locator("[data-table^=effect-]:visible").get_attribute("data-table") == "effect-utility"


def test_a_user_opens_by_click_and_by_keyboard(visit: Visit, page_path: Path) -> None:
    page = visit(page_path)
    assert page.locator("#users tbody tr.open").get_attribute("data-pick") == "drawn"  # a fair one is open at first
    third = page.locator("#users tbody tr").nth(2)
    third.click()
    assert page.locator("#person h3").inner_text() == f"User {third.get_attribute('data-user')}"
    fourth = page.locator("#users tbody tr").nth(3)
    fourth.locator("button").focus()
    page.keyboard.press("Enter")
    assert page.locator("#person h3").inner_text() == f"User {fourth.get_attribute('data-user')}"
    assert fourth.locator("button").get_attribute("aria-expanded") == "true"


def test_filters_count_what_the_log_holds_and_combine(visit: Visit, page_path: Path, run: Run) -> None:
    page = visit(page_path)
    turns = run.turns("skg", ["fallback_to_llm", "answer_correct"], [open_user(page)])
    hit = ~np.array(turns["fallback_to_llm"].to_pylist())
    wrong = ~np.array(turns["answer_correct"].to_pylist())
    updates = run.updates("skg", ["op"], [open_user(page)])
    assert turns_shown(page) == len(hit)
    page.locator("[data-filter=hit]").click()
    assert turns_shown(page) == hit.sum()
    page.locator("[data-filter=wrong]").click()
    assert turns_shown(page) == (hit & wrong).sum()
    page.locator("[data-filter=hit]").click()
    assert turns_shown(page) == wrong.sum()
    page.locator("[data-filter=wrong]").click()
    page.locator("[data-filter=learned]").click()
    assert turns_shown(page) == len({t for t, op in zip(*(updates[c].to_pylist() for c in ("turn", "op")), strict=True)
                                     if op != "TAG"})  # fmt: skip
    page.locator("input[type=search]").fill("no message says this")
    assert turns_shown(page) == 0


def test_the_document_stays_small_however_long_the_timeline(visit: Visit, page_path: Path) -> None:
    page = visit(page_path)
    seen, total = page.locator(".turn").count(), turns_shown(page)
    assert seen == 30 < total
    while page.locator("#person .later").first.is_enabled():
        page.locator("#person .later").first.click()
        assert page.locator(".turn").count() <= 30
        seen += page.locator(".turn").count()
    assert seen == total


def test_a_hit_says_why_with_signals_rating_truth_and_what_was_learned(visit: Visit, page_path: Path, run: Run) -> None:
    page = visit(page_path)
    page.locator("[data-filter=hit]").click()
    turn = page.locator(".turn").first
    assert turn.locator(".why").count() == 0  # details are made when they are opened
    turn.locator("summary").click()
    why = turn.locator(".why").inner_text()
    assert "had the best combined score" in why
    assert "Truth, never shown to an arm" in why
    assert "never LLM" in why
    at = int((turn.get_attribute("id") or "").split("-t")[1])
    logged = run.turns("skg", ["combined", "shortlist"], [open_user(page)])
    combined = logged["combined"].to_pylist()[at]
    rows = turn.locator(".shortlist tbody tr")
    assert rows.count() == sum(s >= 0 for s in logged["shortlist"].to_pylist()[at])
    assert f"{max(combined):.3f}" in rows.first.inner_text()
    page.locator("[data-filter=hit]").click()
    page.locator("[data-filter=learned]").click()
    page.locator(".turn summary").first.click()
    assert "ADD" in page.locator(".turn .operations").first.inner_text()


def test_the_id_of_a_message_in_the_logs_is_an_address_on_the_page(visit: Visit, page_path: Path) -> None:
    page = visit(page_path)
    user = open_user(page)
    again = visit(page_path, f"#u{user}-t40")
    assert again.locator(f"#u{user}-t40").get_attribute("open") is not None
    assert again.locator(f"#u{user}-t40 .why").count() == 1


def test_hostile_texts_are_shown_as_they_are_and_do_nothing(visit: Visit, page_path: Path) -> None:
    page = visit(page_path)
    page.locator(".turn summary").first.click()
    assert HOSTILE in (page.locator(".turn .message").first.text_content() or "")
    assert page.locator("img").count() == 0
    assert "49" not in page.locator(".turn .message").first.inner_text()


@pytest.mark.parametrize("width", [360, 390, 768, 1366])
def test_nothing_runs_out_of_the_page_at_any_width(visit: Visit, page_path: Path, width: int) -> None:
    page = visit(page_path, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_paper_gets_light_colours_all_sections_and_no_controls(visit: Visit, page_path: Path) -> None:
    page = visit(page_path, color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    for hidden in (".kicker nav", ".switches button", "#person", ".pick", "details.more"):
        assert page.locator(hidden).first.is_hidden(), hidden
    for shown in ("h1", "#curves", "#arms", "#users", "#run", "#glossary"):
        assert page.locator(shown).is_visible(), shown
    pdf = page.pdf(prefer_css_page_size=True)
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 4
    assert len(pdf) > 50_000


def test_a_page_for_one_user_shows_all_of_that_users_turns(visit: Visit, run: Run) -> None:
    path = report.write_page(run, [5])
    page = visit(path)
    assert path.name == "report-users-5.html"
    assert page.locator("#users tbody tr").count() == 1
    assert turns_shown(page) == len(run.turns("skg", ["turn"], [5]))


def test_the_page_needs_no_script_to_show_its_findings(visit: Visit, page_path: Path) -> None:
    page = visit(page_path, java_script_enabled=False)
    assert page.locator("h1").is_visible()
    assert page.locator(".figures svg.chart .arm:not(.off) .line").count() > 20
    assert page.locator("[data-table=against-utility]").is_visible()


def test_on_a_phone_the_verdict_on_each_arm_is_on_the_screen(visit: Visit, page_path: Path) -> None:
    page = visit(page_path, viewport={"width": 390, "height": 800})
    tags = page.locator("[data-table=against-utility] .tag")
    assert tags.count() > 0
    for tag in tags.all():
        box = tag.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 390


def test_on_a_phone_names_of_arms_are_whole_and_the_words_above_them_wrap(visit: Visit, page_path: Path) -> None:
    page = visit(page_path, viewport={"width": 390, "height": 800})
    lines = page.locator("[data-table=against-utility] tbody th").evaluate_all(
        """names => names.map(name => {
            const text = document.createRange();
            text.selectNode(name.lastChild);
            return [name.textContent, text.getClientRects().length];
        })"""
    )
    assert len(lines) == 2
    assert [name for name, count in lines if count != 1] == []
    box = page.locator("[data-table=against-utility] caption").bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 390
