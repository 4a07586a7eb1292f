"""Finding one's way on the page, in a browser: sorted tables, addresses, from a bar to its turns, files to keep."""

import csv
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from skg_bench.analysis import report, summary
from skg_bench.analysis.report.chart import NO_LINES, SINGLE_WEEKS
from skg_bench.runfolder.run import Run
from tests.analysis.report.conftest import turns_shown
from tests.analysis.synthetic import World, make_run

Visit = Callable[..., Page]


def column(page: Page, table: str, n: int) -> list[str]:
    """First line of the cells of a column, downwards."""
    rows = page.locator(f"{table} tbody tr")
    cells = rows.locator(f"xpath=./*[{n + 1}]").all_inner_texts()
    return [cell.strip().split("\n")[0] for cell in cells]


def numbers(texts: Sequence[str]) -> list[float]:
    return [float(text.replace("−", "-").rstrip("\u202f%")) for text in texts if text != "–"]


def saved(page: Page, button: Locator) -> tuple[str, bytes]:
    """Name and content of the file that a button makes."""
    with page.expect_download() as waiting:
        button.click()
    return waiting.value.suggested_filename, waiting.value.path().read_bytes()


def test_navigation_words_are_the_headings_that_they_lead_to(visit: Visit, page_path: Path) -> None:
    page = visit(page_path)
    links = page.locator(".kicker nav a")
    assert links.count() >= 7
    for link in links.all():
        target = page.locator(link.get_attribute("href") or "")
        assert target.locator("h2").first.inner_text() == link.inner_text()


def test_arms_are_code_in_sentences(visit: Visit, page_path: Path) -> None:
    page = visit(page_path)
    assert page.locator("h1 code").all_inner_texts() == ["skg", "never"]
    assert "the LLM alone (never)" in page.locator("h1").inner_text()
    assert "`" not in page.locator("body").inner_text()


def test_a_table_sorts_by_click_and_by_keyboard_and_back(visit: Visit, page_path: Path) -> None:
    page = visit(page_path)
    turns = page.get_by_role("columnheader", name="Turns", exact=True).locator("button").last
    turns.click()
    down = numbers(column(page, "#users", 3))
    assert down == sorted(down, reverse=True)
    assert len(set(down)) > 3
    turns.focus()
    page.keyboard.press("Enter")
    assert numbers(column(page, "#users", 3)) == sorted(down)
    assert page.locator("#users th[aria-sort]").get_attribute("aria-sort") == "ascending"
    page.locator("#users thead th").first.locator("button").click()
    users = column(page, "#users", 0)
    assert users == sorted(users, key=lambda name: int(name.split()[1]))  # 2 before 10
    assert page.locator("#users tbody tr.open").count() == 1
    errors = page.locator(".levels thead th", has_text="Wrong per hit")
    n = page.locator(".levels thead th").all_inner_texts().index("Wrong per hit")
    for last in ("never", "never"):  # nothing measured comes last in both directions
        errors.locator("button").click()
        assert column(page, ".levels", 0)[-1].startswith(last)
    assert numbers(column(page, ".levels", n)) == sorted(numbers(column(page, ".levels", n)))


def test_every_user_and_turn_has_an_address(visit: Visit, page_path: Path) -> None:
    page = visit(page_path, "#user=3&turn=40")
    assert page.locator("#person h3").inner_text() == "User 3"
    assert page.locator("#u3-t40").get_attribute("open") is not None
    assert page.locator("#u3-t40 .permalink").get_attribute("href") == "#user=3&turn=40"
    other = page.locator("#users tbody tr:not(.open)").first.get_attribute("data-user")
    page.locator(f"#users tr[data-user='{other}'] td").nth(2).click()
    expect(page).to_have_url(re.compile(f"#user={other}$"))  # the page may know it before the browser says so
    page.go_back()
    expect(page.locator("#person h3").first).to_have_text("User 3")


def test_a_press_on_one_row_that_ends_on_another_opens_nobody_and_breaks_nothing(visit: Visit, page_path: Path) -> None:
    page = visit(page_path, "#user=3")
    first, second = (page.locator("#users tbody tr:not(.open)").nth(place).locator("td").nth(2) for place in (0, 1))
    first.hover()
    page.mouse.down()
    second.hover()
    page.mouse.up()
    assert page.locator("#person h3").inner_text() == "User 3"
    assert page.url.endswith("#user=3")


@pytest.mark.parametrize("fragment", ["#user=999", "#user=3&turn=99999"])
def test_an_address_that_the_page_does_not_hold_says_which_command_makes_it(
    visit: Visit, page_path: Path, fragment: str
) -> None:
    panel = visit(page_path, fragment).locator("#person").inner_text()
    user = fragment.split("=")[1].split("&")[0]
    assert "is not on this page" in panel or "Not on this page" in panel
    assert f"skg-bench report {page_path.parent} --user {user}" in panel


@pytest.mark.parametrize("fragment", ["#arm=constructor&lost=constructor", "#arm=skg&against=nobody", "#user=x", "#x"])
def test_an_address_of_nothing_breaks_nothing(visit: Visit, page_path: Path, fragment: str) -> None:
    page = visit(page_path, fragment)
    assert page.locator("#person h3").is_visible()


def test_a_bar_of_losses_leads_to_its_turns(visit: Visit, page_path: Path, run: Run) -> None:
    page = visit(page_path)
    users = [int(row.get_attribute("data-user") or -1) for row in page.locator("#users tbody tr").all()]
    causes = run.turns("skg", ["cause"], users)["cause"].to_pylist()
    bar = page.get_by_role("link", name=re.compile("^Turns of skg lost to: Not captured"))
    bar.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#person h3").first).to_have_text(re.compile("^Not captured"))
    assert turns_shown(page) == causes.count("capture") > 0
    page.locator(".turn summary").first.click()
    page.locator(".turn .permalink").first.click()
    expect(page.locator("#person h3").first).to_have_text(re.compile("^User "))
    assert page.locator(".turn[open]").count() == 1


def test_a_bar_of_difference_leads_to_the_turns_answered_differently(visit: Visit, page_path: Path, run: Run) -> None:
    page = visit(page_path)
    users = [int(row.get_attribute("data-user") or -1) for row in page.locator("#users tbody tr").all()]
    right = [np.array(run.turns(arm, ["answer_correct"], users)["answer_correct"].to_pylist(), bool)
             for arm in ("skg", "never")]  # fmt: skip
    page.locator("[data-table=against-utility] tr[data-arm=skg] a.turns").click()
    expect(page.locator("#person h3").first).to_have_text(re.compile("^Turns that"))
    assert turns_shown(page) == (right[0] != right[1]).sum() > 0
    page.locator("[data-filter=flip-1]").click()
    assert turns_shown(page) == (~right[0] & right[1]).sum()


def test_a_bar_of_weeks_leads_to_its_week(visit: Visit, page_path: Path, run: Run) -> None:
    page = visit(page_path)
    users = [int(row.get_attribute("data-user") or -1) for row in page.locator("#users tbody tr").all()]
    days = {user: {time.day for time in run.turns("skg", ["time"], [user])["time"].to_pylist()} for user in users}
    there = next(user for user in users if {20, 21, 22} & days[user])  # of January, in the third of five weeks
    row = page.locator(f"#users tr[data-user='{there}']")
    box = row.locator(".sparks").bounding_box() or {"width": 0.0, "height": 0.0}
    row.locator(".sparks").click(position={"x": box["width"] * 0.5, "y": box["height"] / 2})
    expect(page).to_have_url(re.compile(f"#user={there}&week=3$"))
    assert any(day.startswith("Week 3") for day in page.locator(".timeline h4").all_inner_texts())


def test_a_figure_is_saved_as_csv_svg_and_png(visit: Visit, page_path: Path, run: Run) -> None:
    page = visit(page_path, color_scheme="dark")
    page.locator("label.chip", has_text=re.compile("^frozen_30$")).click()
    figure = page.locator("#f-hit_rate")
    name, text = saved(page, figure.get_by_role("button", name="CSV"))
    assert name == "f-hit_rate.csv"
    rows = list(csv.DictReader(text.decode("utf-8-sig").splitlines()))
    assert {row["arm"] for row in rows} == {"skg", "never", "ceiling k=1", "ceiling k=2", "ceiling k=3"}
    curves = list(csv.DictReader((run.path / "curves.csv").read_text("utf-8").splitlines()))
    (logged,) = [row for row in curves if (row["arm"], row["metric"], row["period"]) == ("skg", "hit_rate", "4")]
    (drawn,) = [row for row in rows if (row["arm"], row["week"]) == ("skg", "4")]
    assert float(drawn["mean"]) == pytest.approx(float(logged["mean"]), abs=1e-6)

    name, text = saved(page, figure.get_by_role("button", name="SVG"))
    root = ET.fromstring(text)  # noqa: S314  our own file
    assert name == "f-hit_rate.svg"
    assert "class" not in {key for node in root.iter() for key in node.attrib}  # its styles stand in it
    lines = [node.attrib["stroke"] for node in root.iter("{http://www.w3.org/2000/svg}path")]
    assert "rgb(92, 176, 245)" in lines  # the learner's colour on dark paper
    assert "frozen_30" not in text.decode().split("aria-label")[1].split(">", 1)[1]

    name, picture = saved(page, figure.get_by_role("button", name="PNG"))
    assert name == "f-hit_rate.png"
    assert picture.startswith(b"\x89PNG")
    assert int.from_bytes(picture[16:20], "big") == 1260
    assert len(picture) > 10_000  # not an empty sheet


def test_a_table_is_saved_as_csv_with_intervals_in_columns_of_their_own(visit: Visit, page_path: Path) -> None:
    page = visit(page_path)
    name, text = saved(page, page.get_by_role("button", name="Save the table arms as CSV"))
    rows = list(csv.DictReader(text.decode("utf-8-sig").splitlines()))
    assert name == "arms.csv"
    assert {row["Arm"] for row in rows} == {"skg", "frozen_30", "never"}
    assert [row["Wrong per hit"] for row in rows if row["Arm"] == "never"] == [""]
    for row in rows:
        float(row["Utility per request"])
        assert " to " in row["Utility per request: interval"]


def test_hostile_names_of_arms_are_texts_everywhere_and_no_formulas(visit: Visit, tmp_path: Path) -> None:
    names = ["a<img src=x onerror=window.pwned=1>", "=1+1", "`never`"]
    run = make_run(tmp_path / "run", users=4, weeks=2, reference=names[1],
                   arms={names[0]: World(hit=0.5), names[1]: World(hit=0.2), names[2]: World(hit=0.0)})  # fmt: skip
    summary.write_summary(run)
    path = report.write_page(run)
    assert visit(path, viewport={"width": 390, "height": 800}).evaluate("document.documentElement.scrollWidth") <= 390
    page = visit(path)
    assert page.locator("h1 code").first.inner_text() == names[0]
    page.locator("[data-table=against-utility] tbody tr a.turns").first.click()
    expect(page.locator("#person h3").first).to_have_text(re.compile("^Turns that"))
    assert names[1] in page.locator("#person h3").inner_text()
    page.locator("#f-hit_rate svg").hover(position={"x": 60, "y": 60})
    _, text = saved(page, page.locator("#f-hit_rate").get_by_role("button", name="CSV"))
    assert "\r\n'=1+1," in text.decode()
    saved(page, page.locator("#f-hit_rate").get_by_role("button", name="SVG"))
    assert page.locator("img").count() == 0


def test_an_arm_that_cannot_differ_is_left_out_of_the_figures_and_named(visit: Visit, tmp_path: Path) -> None:
    arms = {"skg": World(), "idle": World(hit=0.0, overrides=("curator.capture=band",)), "never": World(hit=0.0)}
    run = make_run(tmp_path / "run", users=4, weeks=2, reference="never", arms=arms)
    summary.write_summary(run)
    page = visit(report.write_page(run))
    assert page.locator(".chip input").evaluate_all("boxes => boxes.map(b => b.value)") == ["skg", "never"]
    assert page.locator(".chart [data-name=idle], .glance th:text-is('idle')").count() == 0
    assert "idle (curator.capture=band)" in page.locator(".undrawn").inner_text()
    assert page.locator(".levels tr[data-arm=idle]").is_visible()


def test_switching_all_arms_off_says_so_in_the_figure(visit: Visit, page_path: Path) -> None:
    page = visit(page_path)
    figure = page.locator("#f-correct .empty")
    assert figure.text_content() == ""
    page.get_by_role("button", name="none", exact=True).click()
    assert figure.text_content() == "No arm that is switched on has a line here."


def test_a_figure_of_single_weeks_says_so_as_long_as_no_line_is_switched_on(visit: Visit, tmp_path: Path) -> None:
    arms = {"skg": World(hit=0.08), "often": World(hit=0.9), "never": World(hit=0.0)}
    run = make_run(tmp_path / "run", users=4, weeks=2, reference="never", arms=arms)
    summary.write_summary(run)
    page = visit(report.write_page(run))
    figure = page.locator("#f-err_per_hit .empty")
    words = []
    for name in ("none", "all"):
        page.get_by_role("button", name=name, exact=True).click()
        words.append(figure.text_content())
    page.locator("label.chip", has_text=re.compile("^often$")).click()
    assert [*words, figure.text_content()] == [NO_LINES, "", SINGLE_WEEKS]


def test_figures_stand_where_their_tables_are(visit: Visit, page_path: Path) -> None:
    page = visit(page_path)
    for place in ("#arms #f-sensitivity", "#learning #f-learning_effect"):
        assert page.locator(place).count() == 1, place
    assert page.locator("#evidence > .figures").count() == 0


def test_a_table_that_is_cut_has_a_shade_at_its_edge(visit: Visit, page_path: Path) -> None:
    """Paper that scrolls with the table hides the shade where there is no more of it."""
    page = visit(page_path)
    shades = page.locator("#arms .scroll").first.evaluate("each => getComputedStyle(each).backgroundAttachment")
    assert shades == "local, local, scroll, scroll"


def test_pointing_at_an_arm_shows_its_band(visit: Visit, page_path: Path) -> None:
    page = visit(page_path)
    band = page.locator("#f-hit_rate .arm[data-name=frozen_30] .band")
    assert band.is_hidden()
    page.locator("label.chip", has_text=re.compile("^frozen_30$")).hover()
    assert band.is_visible()


def test_another_arm_moves_title_tiles_people_and_losses_and_back(visit: Visit, page_path: Path) -> None:
    page = visit(page_path)

    def state() -> list[str]:
        return [
            page.locator("h1").inner_text(),
            page.locator(".tiles").inner_text(),
            page.locator("#users tbody").inner_text(),
            page.locator("#person header").inner_text(),
            page.locator("[data-table^=waterfall-]:visible h3").inner_text(),
        ]

    before = state()
    page.locator("#learner").select_option("never")
    expect(page.locator("h1").first).to_have_text(re.compile("^never is"))
    other = state()
    assert all(now != then for now, then in zip(other, before, strict=True))
    assert "in skg; " in other[3]  # why the user is here, and where the user stands under this arm
    assert page.locator("#users tbody tr.open").count() == 1
    assert page.locator("[data-choose][aria-pressed=true]").count() == 0  # the reference has no line in the list
    page.locator("#person .turn summary").first.click()
    assert page.locator("#person .elsewhere").first.inner_text().startswith("skg")
    page.locator("button[data-choose=frozen_30]").click()
    assert page.locator("#learner").input_value() == "frozen_30"
    assert "frozen_30" in page.locator("h1").inner_text()
    page.locator("button[data-choose=skg]").click()
    assert state() == before


def test_the_verdict_of_each_arm_is_on_the_first_screen(visit: Visit, tmp_path: Path) -> None:
    arms = {f"arm_{n:02}": World(hit=0.05 * n) for n in range(12)} | {"never": World(hit=0.0)}
    run = make_run(tmp_path / "run", users=6, weeks=2, reference="never", arms=arms)
    summary.write_summary(run)
    page = visit(report.write_page(run), viewport={"width": 1440, "height": 900})
    lines = page.locator(".glance .sentence")
    assert lines.count() == 12
    for line in lines.all():
        box = line.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 900
