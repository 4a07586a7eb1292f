"""What would have looked like proof, on the page: three proofs, each beside arms that learn nothing."""

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from playwright.sync_api import Page

from skg_bench.analysis import report, summary
from skg_bench.analysis.comparison.claimed_proofs import ClaimedProofs, claimed_proofs
from skg_bench.analysis.report.arm_looks import looks_of
from skg_bench.analysis.report.claimed import Claimed, claimed
from skg_bench.analysis.report.typeset import typeset_value
from skg_bench.analysis.statistics.binomial import exact_share
from skg_bench.runfolder.run import Run
from tests.analysis.advised import drawn, make_advice_run
from tests.analysis.comparison.test_claimed_proofs import CONTROLS, NONE, life
from tests.analysis.report.test_browser import DRAWN, same_drawing
from tests.analysis.report.test_page import Outline

Visit = Callable[..., Page]
ARMS = {"live": drawn(12, 30, 0.8), "frozen": drawn(12, 30, 0.3), "sham": drawn(12, 30, 0.4)}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    components = {**CONTROLS, "expert": {**NONE, "seeds": "pro"}}
    arms = {**ARMS, "expert": drawn(12, 30, 0.6)}
    made = make_advice_run(tmp_path_factory.mktemp("claimed") / "run", arms, components=components, reference="frozen")
    summary.write_summary(made)
    return made


@pytest.fixture(scope="module")
def path(run: Run) -> Path:
    return report.write_page(run)


@pytest.fixture(scope="module")
def section(path: Path) -> str:
    text = path.read_text("utf-8")
    return text[text.index('<div id="claimed"') : text.index('<div id="losses"')]


def words(markup: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", markup)))


def of(run: Run) -> tuple[ClaimedProofs, Claimed]:
    proofs, content = claimed_proofs(run), summary.read_summary(run)
    assert proofs is not None
    return proofs, claimed(proofs, run, looks_of(run, content), content.learner)


@pytest.mark.req("P31", "P32", "P33", "P44", "P46", "P47", "P48")
def test_each_proof_says_with_figures_of_the_run_what_it_shows_and_what_not(run: Run, section: str) -> None:
    proofs, _ = of(run)
    assert [words(title) for title in re.findall(r'<h3 class="sub">.*?</h3>', section)] == [
        "A rising acceptance", "A pair of interactions", "Two seeds",
    ]  # fmt: skip
    text = words(section)
    assert (text.count("It shows "), text.count("It does not show ")) == (3, 3)
    live, frozen = proofs.arcs["live"], proofs.arcs["frozen"]
    for figure, unit in (
        (live.looks[0].mean, "share"), (live.looks[-1].mean, "share"), (frozen.rise.mean, "difference"),
        (live.gain.mean, "utility"), (proofs.beyond["live", "sham"].mean, "utility"), (frozen.climbs, "share"),
        (proofs.pairs["frozen"].share.mean, "share"), (proofs.pairs["live"].reverse.mean, "share"),
        (proofs.found["live", "frozen"].mean, "difference"), (proofs.seeds[0].acceptance[2].mean, "difference"),
        (proofs.seeds[0].utility[2].mean, "utility"),
    ):  # fmt: skip
        assert words(typeset_value(figure, unit, signed=unit != "share")) in text, (figure, unit)
    assert "neither arm learns" in text


def test_figures_and_tables_hold_the_arms_that_learn_and_their_controls(path: Path, section: str) -> None:
    assert re.findall(r'<figure id="f-(\w+)"', section) == ["acceptance", "worth"]
    lines = re.findall(r'<g class="arm [^"]*" data-name="(\w+)"', section.partition("</figure>")[0])
    assert sorted(lines) == ["frozen", "live", "sham"]
    tables = re.findall(r'<table class="table grid" data-name="(\w+)">', section)
    assert tables == ["acceptance", "pairs", "seeds"]
    for role in ("learns", "its book stays", "learns at random", "begins with rookie", "begins with pro"):
        assert f"<small>{role}</small>" in section
    assert '<a href="#claimed">What would have looked like proof</a>' in path.read_text("utf-8")
    assert Outline(section).open == []


def test_where_no_two_arms_differ_in_their_book_alone_the_page_says_how_to_add_one(tmp_path: Path) -> None:
    made = make_advice_run(tmp_path / "run", ARMS, components=CONTROLS, reference="frozen")
    made.config["arms"]["frozen"] = ["curator=none"]
    summary.write_summary(made)
    _, section = of(made)
    assert section.seeds_says is None
    assert section.seeds_missing == "+arms.other_book=[curator=none,seeds=pro]"
    text = report.write_page(made).read_text("utf-8")
    assert "<code>'+arms.other_book=[curator=none,seeds=pro]'</code> adds one" in text


def test_a_run_without_a_sham_has_no_such_section(tmp_path: Path) -> None:
    made = make_advice_run(
        tmp_path / "run", {arm: ARMS[arm] for arm in ("live", "frozen")}, components=CONTROLS, reference="frozen"
    )
    summary.write_summary(made)
    assert "looked like proof" not in report.write_page(made).read_text("utf-8")


@pytest.mark.req("P31")
@pytest.mark.parametrize(
    ("early", "late", "expected"),
    [
        (0.5, -0.5, "so acceptance rises and users are worse off"),
        (-0.5, 0.5, "changes by +1.000 (+1.000 to +1.000). Over"),
        (0.5, 0.5, "0.000 (0.000 to 0.000), an interval that holds 0"),
    ],
)
def test_a_rise_is_called_harm_only_where_utility_fell(
    tmp_path: Path, early: float, late: float, expected: str
) -> None:
    worths = [early] * 10 + [late] * 10
    rises = [
        replace(p, worths=(0.0, 0.0, 0.0, 0.0, worth))
        for p, worth in zip(life("10000" * 2 + "11110" * 2), worths, strict=True)
    ]
    lives = {arm: [rises if arm == "live" else life("10000" * 4)] * 2 for arm in CONTROLS}
    made = make_advice_run(tmp_path / "run", lives, components=CONTROLS, reference="frozen")
    summary.write_summary(made)
    text = words(str(of(made)[1].arc_says.not_shows))
    assert expected in text
    assert ("worse off" in text) == (late < 0)


def test_the_interval_of_one_user_is_exact() -> None:
    assert exact_share(2, 5) == pytest.approx((0.0527, 0.8534), abs=5e-5)
    assert exact_share(0, 5) == pytest.approx((0.0, 0.5218), abs=5e-5)
    assert exact_share(5, 5) == pytest.approx((0.4782, 1.0), abs=5e-5)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_the_section_fits_on_a_page_of_any_width(visit: Visit, path: Path, width: int, scheme: str) -> None:
    page = visit(path, "#claimed", color_scheme=scheme, viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for block in page.locator("#claimed .says, #claimed figure, #claimed .few").all():
        box = block.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_its_arms_are_switched_with_those_of_all_figures(visit: Visit, path: Path) -> None:
    page = visit(path)
    before = page.evaluate(DRAWN)
    page.locator("label.chip", has_text=re.compile("^live$")).click()
    assert page.locator("#f-acceptance .arm[data-name=live]:not(.off)").count() == 0
    assert page.locator("#claimed tr.off[data-arm=live]").count() == 2
    page.locator("label.chip", has_text=re.compile("^live$")).click()
    assert same_drawing(page.evaluate(DRAWN), before)
