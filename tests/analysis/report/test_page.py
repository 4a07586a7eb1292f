"""The page as a file: it is one, it holds no live markup from data, and odd runs have one too."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from skg_bench.analysis import report, summary
from skg_bench.analysis.report import page, picture
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from tests.analysis.synthetic import World, make_run
from tests.runs import changed


class Outline(HTMLParser):
    """Tags, attributes that could fetch something, and unclosed elements."""

    VOID = frozenset({"meta", "link", "input", "br", "img", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "action", "data") and not (value or "").startswith(("#", "data:")):
                self.fetched.append(f"{tag} {name}={value}")
            if name == "id":
                self.ids.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_well_formed_fetches_nothing_and_carries_no_markup_from_data(page_path: Path) -> None:
    text = page_path.read_text("utf-8")
    outline = Outline(text)
    assert outline.open == []
    assert outline.fetched == []
    assert "img" not in outline.tags
    assert "@import" not in text
    assert "url(http" not in text
    assert len(outline.ids) == len(set(outline.ids))
    assert outline.tags.count("script") == 7 + 2 + 3 * 12


def test_data_in_the_page_is_valid_json_without_a_single_angle_bracket(page_path: Path) -> None:
    blocks = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page_path.read_text("utf-8"), re.S)
    assert len(blocks) == 2 + 3 * 12
    for block in blocks:
        json.loads(block)
        assert not set("<>&\u2028") & set(block)


def test_a_hostile_question_and_arm_name_are_text(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=3, weeks=2, arms={"a<b>": World(), "never": World(hit=0.0)})
    again = changed(run, question="<u>why</u>?", config={**run.config, "question": "<u>why</u>?"})
    summary.write_summary(again)
    outline = Outline(report.write_page(again).read_text("utf-8"))
    assert "u" not in outline.tags
    assert outline.open == []


@pytest.mark.parametrize(
    ("users", "weeks", "arms", "reference"),
    [
        (1, 1, {"skg": World()}, "skg"),
        (2, 1, {"never": World(hit=0.0)}, "never"),
        (3, 2, {"skg": World(), "other": World(hit=0.1)}, None),
        (13, 2, {"skg": World(), "never": World(hit=0.0), "idle": World(hit=0.0)}, "never"),
    ],
)
def test_a_page_is_written_for_runs_with_little_in_them(
    tmp_path: Path, users: int, weeks: int, arms: dict[str, World], reference: str | None
) -> None:
    run = make_run(tmp_path / "run", users=users, weeks=weeks, arms=arms, reference=reference or "skg")
    if reference is None:
        run = changed(run, config={**run.config, "reference": None})
    summary.write_summary(run)
    text = report.write_page(run).read_text("utf-8")
    assert Outline(text).open == []
    listed = re.sub(r"<template.*?</template>", "", text, flags=re.S)  # what waits there is of the other arms
    assert listed.count('<tr data-user="') == min(users, 12)
    assert text.count('<tr data-user="') == min(users, 12) * len(arms)
    assert "None" not in re.sub(r"<script.*?</script>|<pre>.*?</pre>", "", text, flags=re.S)


def test_without_a_summary_the_reader_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no summary\.json"):
        report.write_page(make_run(tmp_path / "run", users=2, weeks=1))


def test_the_same_run_gives_the_same_page(run: Run, page_path: Path) -> None:
    before = page_path.read_bytes()
    assert report.write_page(run).read_bytes() == before


def test_the_command_on_the_page_repeats_the_run(run: Run, page_path: Path) -> None:
    assert (
        "<pre>skg-bench run experiment=synthetic profile=synthetic seed=0 users=16 weeks=5</pre>"
        in page_path.read_text("utf-8")
    )


def test_a_page_of_twelve_users_stays_within_five_megabytes(run: Run, page_path: Path) -> None:
    """12 x 1,500 turns of the demo take 4 MB; here the share per turn is held, with texts five times as long."""
    turns = sum(len(run.turns(arm, ["turn"], range(12))) for arm in run.arms)
    assert page_path.stat().st_size < 250_000 + 420 * turns


def test_the_turns_of_all_other_arms_take_no_more_room_than_the_learners(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "CAP", 80)
    monkeypatch.setattr(page, "LEAST_TURNS", 10)
    shown: dict[str, int] = {}
    for name, timeline in re.findall(r'id="user-\d+(-\d+)?">(.*?)</script>', page.html(run), re.S):
        shown[name] = shown.get(name, 0) + len(json.loads(timeline)["turn"])
    assert set(shown) == {"", "-1", "-2"}
    assert 0 < shown["-1"] + shown["-2"] <= 12 * 80
    assert 0 < shown[""] <= 12 * 80


def test_the_picture_is_one_well_formed_file_with_the_arms_asked_for(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "curves.svg"
    assert picture.main([str(run.path), str(out), "--arm", "skg", "--arm", "never"]) == 0
    root = ET.fromstring(out.read_text("utf-8"))  # noqa: S314  our own file
    drawn = {g.attrib["data-name"] for g in root.iter("{http://www.w3.org/2000/svg}g") if "data-name" in g.attrib}
    assert drawn == {"skg", "never", "ceiling k=1", "ceiling k=2", "ceiling k=3"}
    assert "prefers-color-scheme: dark" in out.read_text("utf-8")


def test_the_pictures_command_refuses_what_is_no_run(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert picture.main([str(tmp_path), str(tmp_path / "x.svg")]) == 2
    assert "is no run directory" in capsys.readouterr().err
    assert picture.main([str(run.path), str(tmp_path / "x.svg"), "--arm", "skag"]) == 2
    assert "no arm 'skag'; it has skg, frozen_30, never" in capsys.readouterr().err
    assert not (tmp_path / "x.svg").exists()
