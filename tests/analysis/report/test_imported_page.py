"""The page of results that were made elsewhere, in Chromium: it shows what the table tells, and no more."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from skg_bench.app.imported_run import import_table
from tests.analysis.report.conftest import HOSTILE

UNTRUE = ("memory", "LLM", "skill", "simulated", "Week", "seed", "profile=", "corpus", "hit")


def imported(folder: Path, *columns: str) -> Path:
    """The page of two arms at 240 events, of which `new` answers more rightly."""
    lines = [",".join(("user", "event", "arm", *columns))]
    for user in range(12):
        for event in range(20):
            for arm, share in (("old", 5), ("new", 8)):
                right = (7 * user + 3 * event) % 10 < share
                values = {
                    "right": str(int(right)), "score": str(0.1 + 0.8 * right), "cost": f"{0.001 * (event + 1):.3f}",
                    "wait": "1.5", "text": '"' + f"{HOSTILE} {event}".replace("\u2028", "").replace('"', '""') + '"',
                }  # fmt: skip
                lines.append(",".join((str(user), str(event), arm, *(values[name] for name in columns))))
    (folder / "t.csv").write_text("\n".join(lines) + "\n", "utf-8")
    import_table(folder / "t.csv", folder / "run", question="Is the new one better?")
    return folder / "run" / "report.html"


@pytest.mark.parametrize("columns", [("right", "cost", "wait", "text"), ("score",), ("right", "score")])
def test_the_page_shows_what_the_table_tells(
    visit: Callable[..., Page], tmp_path: Path, columns: tuple[str, ...]
) -> None:
    page = visit(imported(tmp_path, *columns))
    expect(page.locator("h1").first).to_have_text("new serves its users better than old.")
    assert page.locator("nav a").all_inner_texts() == ["The arms", "What was run", "Glossary"]
    expect(page.locator("#people, #curves, #losses, .pair")).to_have_count(0)
    expect(page.locator("a.turns")).to_have_count(0)  # there are no turns to go to
    wanted = {"right": "Right answers", "score": "Score", "cost": "Cost", "wait": "Wait"}
    tiles = page.locator("dl.tiles dt").all_inner_texts()
    assert set(tiles) - {"Wrong per request"} == {wanted[name] for name in columns if name in wanted}
    expect(page.locator("header")).to_contain_text("Made elsewhere: who answered")
    expect(page.locator("#run pre").first).to_contain_text("skg-bench data import")
    page.locator("#learner").select_option("old")
    expect(page.locator("h1").first).to_have_text("old is what other arms are compared with.")


def test_no_word_of_the_page_is_untrue(visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit(imported(tmp_path, "right", "cost", "wait"))
    note = page.locator("header p.note", has_text="Made elsewhere").inner_text()
    text = page.locator("body").inner_text().replace(note, "")
    text = text.replace(page.locator("#run").inner_text(), "")
    assert [word for word in UNTRUE if word in text] == []
