"""Sheets: blind to arms, each text once, and the page that a browser shows."""

import csv
import shutil
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Page

from skg_bench.analysis.labels.allocation import next_turns
from skg_bench.analysis.labels.hit_pairs import HitPairs, hit_pairs, text_digest, text_digests
from skg_bench.analysis.labels.rater_labels import read_sheet
from skg_bench.analysis.labels.sheets import label_page, sheet_rows, sheet_text
from skg_bench.analysis.report import write_page
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from tests.analysis.labels.planted_log import truth
from tests.analysis.labels.test_allocation import unjudged
from tests.analysis.report.conftest import HOSTILE


@pytest.fixture(scope="module")
def pairs(log_run: Run) -> HitPairs:
    return hit_pairs(log_run, ["all", "near"])


def test_each_text_stands_once_and_no_place_betrays_the_log(pairs: HitPairs) -> None:
    turns = next_turns(pairs, unjudged(pairs), 200, decides=True)
    groups = sheet_rows(pairs, turns)
    rows = [row for group in groups for row in group]
    seen = {(row.when, row.user, row.message, row.answer) for row in rows}
    assert len(seen) == len({row.pair for row in rows}) == len(rows)
    logged = set(zip(pairs.table["message"].to_pylist(), pairs.table["logged_answer"].to_pylist(), strict=True))
    own = [[(row.message, row.answer) in logged for row in group] for group in groups]
    two = [each for each in own if len(each) == 2 and sum(each) == 1]
    first = sum(each[0] for each in two)
    assert 0.35 < first / len(two) < 0.65
    assert len(two) > 50


def test_turns_do_not_come_in_the_order_of_their_strata(pairs: HitPairs) -> None:
    turns = next_turns(pairs, unjudged(pairs), 60, decides=False)
    messages = [pairs.table["message"][turn].as_py() for turn in turns]
    assert [group[0].message for group in sheet_rows(pairs, turns)][:10] != messages[:10]


def test_a_sheet_comes_back_with_its_texts(pairs: HitPairs, tmp_path: Path) -> None:
    hostile = ["=1+1", "-2", "a\r\nb", "a\rc", 'quote " and, comma', HOSTILE, "'=quoted"]
    table = pa.table({"message": hostile, "logged_answer": hostile, "user": [0] * 7, "event": list(range(7)),
                      "logged_user": hostile, "time": [None] * 7,
                      "logged_time": ["2026-01-05 10:00:00"] * 7})  # fmt: skip
    question, stored = text_digests(table["message"]), {"a": pa.chunked_array([hostile[::-1]])}
    groups = sheet_rows(replace(pairs, table=table, question=question, stored=stored), range(7))
    text = sheet_text(groups)
    assert not any(cell.startswith("=") for row in csv.reader(StringIO(text)) for cell in row)
    (tmp_path / "s.csv").write_text(text.replace(",\r\n", ",right\r\n"), newline="")
    assert [f"{label.pair:016x}" for label in read_sheet(tmp_path / "s.csv")] == [r.pair for g in groups for r in g]


def test_line_ends_do_not_change_a_pair() -> None:
    assert text_digest("a\r\nb") == text_digest("a\nb") == text_digest("a\rb") != text_digest("a b")


def test_a_run_of_simulated_users_has_nothing_to_judge(log_run: Run) -> None:
    with pytest.raises(UsageError, match="its world knows which answers were right"):
        hit_pairs(Run(log_run.path.parent / "world"), ["never"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_takes_labels_by_key_and_gives_them_as_a_sheet(
    visit: Callable[..., Page], pairs: HitPairs, tmp_path: Path, scheme: str
) -> None:
    groups = sheet_rows(pairs, next_turns(pairs, unjudged(pairs), 3, decides=False))
    n = sum(map(len, groups))
    (tmp_path / "label.html").write_text(label_page(groups, "label.csv"))
    page = visit(tmp_path / "label.html", viewport={"width": 390, "height": 844}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator("#message").inner_text() == groups[0][0].message
    for sign in ("1", "2", "0"):
        page.keyboard.press(sign)
    page.locator("[data-label=right]").click()
    for _ in range(40):  # Chromium hands what a page keeps to the next one a moment later
        page.reload()
        if (words := page.locator("#progress-words").inner_text()) == f"{min(4, n)} of {n} judged":
            break
        page.wait_for_timeout(100)
    assert words == f"{min(4, n)} of {n} judged"
    with page.expect_download() as download:
        page.locator("#download").click()
    download.value.save_as(tmp_path / "label.csv")
    assert download.value.suggested_filename == "label.csv"
    assert [label.label for label in read_sheet(tmp_path / "label.csv")] == [0, 1, 3, 2]
    with (tmp_path / "label.csv").open(newline="") as lines:
        shown = [[row["pair"], row["message"]] for row in csv.DictReader(lines)]
    assert shown == [[row.pair, row.message] for group in groups for row in group]


def test_the_page_cannot_be_left_by_what_users_wrote(
    visit: Callable[..., Page], pairs: HitPairs, tmp_path: Path
) -> None:
    (group, *_) = sheet_rows(pairs, next_turns(pairs, unjudged(pairs), 3, decides=False))
    (tmp_path / "label.html").write_text(label_page([[group[0]._replace(message=HOSTILE, answer=HOSTILE)]], "l.csv"))
    assert HOSTILE in visit(tmp_path / "label.html").locator("#message").evaluate("e => e.textContent")


def test_a_slider_moves_the_verdict_of_each_arm(visit: Callable[..., Page], log_run: Run, tmp_path: Path) -> None:
    run = Run(shutil.copytree(log_run.path, tmp_path / "run"))
    page = visit(write_page(run), "#judged")
    assert page.locator("#judged pre").inner_text().startswith("skg-bench data label")
    verdicts = page.locator("#judged .tag")
    assert verdicts.all_inner_texts() == ["open", "open"]
    slider = page.locator("#price-of-wrong")
    slider.fill("0")
    assert verdicts.all_inner_texts() == ["pays", "pays"]
    both = hit_pairs(run, ["all", "near"])
    known = {
        f"{pair:016x}": ("wrong", "near", "right")[label]
        for arm, labels in zip(both.arms, truth(both), strict=True)
        for digests, values in zip((arm.pair, arm.logged), labels, strict=True)
        for pair, label in zip(digests.tolist(), values.tolist(), strict=True)
    }
    lines = ["pair,rater,label", *(f"{pair},ann,{label}" for pair, label in known.items())]
    (run.path / "labels.csv").write_text("\n".join(lines) + "\n")
    page = visit(write_page(run), "#judged")
    slider = page.locator("#price-of-wrong")
    slider.fill("300")
    assert page.locator("#judged .tag").all_inner_texts() == ["does not pay", "pays"]
    assert page.locator("#price-words").inner_text() == "$1"
