"""The page of the runs in a folder: rows, links, words and buttons that leave rows out, in a browser."""

import os
import shutil
from collections.abc import Callable
from math import nan
from pathlib import Path

import pytest
from playwright.sync_api import Page

from skg_bench.analysis.report.list_page import write_list
from skg_bench.analysis.summary.listed_runs import ListedRun, listed_runs
from skg_bench.runfolder.run import Run
from tests.analysis.report.conftest import HOSTILE
from tests.runs import changed

Visit = Callable[..., Page]
QUESTION = f"Does it help? {HOSTILE}"


@pytest.fixture(scope="module")
def folder(run: Run, page_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a page, one that is not finished and has none, and one whose manifest is none; their names hostile."""
    root = tmp_path_factory.mktemp("runs")
    for number, name in enumerate(("first <i>&'\"#%", "second", "third")):
        made = Path(shutil.copytree(run.path, root / name))
        if name == "second":
            changed(Run(made), incomplete=True, question=QUESTION)
            (made / "report.html").unlink()
        if name == "third":
            (made / "manifest.json").write_text("{", "utf-8")
        os.utime(made / "manifest.json", (1e9 + number, 1e9 + number))
    return root


@pytest.fixture(scope="module")
def runs(folder: Path) -> list[ListedRun]:
    return list(listed_runs(folder))


def names(page: Page) -> list[str]:
    """First words of the rows that are shown."""
    return [text.split()[0] for text in page.locator("#runs tbody tr:visible th").all_inner_texts()]


def test_a_row_has_the_verdicts_of_its_run_and_a_link_to_its_page(
    visit: Visit, folder: Path, runs: list[ListedRun]
) -> None:
    page = visit(write_list(runs, folder, folder / "list.html"))
    first = page.locator("#runs tbody tr").first
    assert first.locator(".tag").inner_text() == runs[0].verdict
    assert first.locator("details").text_content() == "".join(
        f"other arms: 1 {verdict}{verdict}: {arm}" for arm, verdict in runs[0].others.items()
    )
    assert first.locator("a").inner_text() == "first <i>&'\"#%"
    assert page.locator("#runs a").count() == 2  # the second has no page
    assert page.evaluate("document.querySelector('#runs a').href") == (folder / runs[0].folder / "report.html").as_uri()
    assert "its manifest cannot be read" in page.locator("#runs tbody tr").last.inner_text()
    assert page.locator("#runs small").filter(has_text=HOSTILE[:30]).count() == 1


def test_words_and_buttons_leave_rows_out(visit: Visit, folder: Path, runs: list[ListedRun]) -> None:
    page = visit(write_list(runs, folder, folder / "list.html"))
    shown = page.locator("#shown")
    assert (names(page), shown.inner_text()) == (["first", "second", "third"], "3 of 3")
    page.locator("#words").fill("UNFINISHED second")
    assert (names(page), shown.inner_text()) == (["second"], "1 of 3")
    page.locator("#words").fill("")
    button = page.locator("button.filter", has_text="no verdict")
    button.click()
    assert (names(page), button.get_attribute("aria-pressed")) == (["second", "third"], "true")
    button.click()
    assert names(page) == ["first", "second", "third"]


def test_rows_are_sorted_by_name_time_and_size_of_the_difference(visit: Visit, folder: Path) -> None:
    differences = {"a": 0.00001, "b": -0.2, "c": nan, "d": 0.1}
    runs = [
        ListedRun(folder / name, 1e9 + 40_000_000 * number, "4 x 2", "0", "2", "skg", gap, "inconclusive")
        for number, (name, gap) in enumerate(differences.items())
    ]
    page = visit(write_list(runs, folder, folder / "sorted.html"))
    for heading, orders in (("Verdict", ("dabc", "badc")), ("When", ("dcba", "abcd")), ("Run", ("abcd", "dcba"))):
        for order in orders:
            page.locator("#runs thead button", has_text=heading).click()
            assert "".join(names(page)) == order, heading


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1920])
def test_nothing_sticks_out_and_the_verdict_is_on_the_screen(
    visit: Visit, folder: Path, runs: list[ListedRun], width: int, scheme: str
) -> None:
    path = write_list(runs, folder, folder / "list.html")
    page = visit(path, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for box in (page.locator("#runs .tag").first.bounding_box(), page.locator("#runs td.state").first.bounding_box()):
        assert box is not None
        assert box["x"] + box["width"] <= width


def test_a_list_without_runs_says_so(visit: Visit, tmp_path: Path) -> None:
    page = visit(write_list([], tmp_path, tmp_path / "list.html"))
    assert page.locator("h1").inner_text() == "0 runs"
    assert "No run is in this folder" in page.locator("main").inner_text()
