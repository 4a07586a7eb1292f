"""Geometry of the figures, and the colours that they are drawn in."""

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skg_bench.analysis.report.arm_looks import CONTROL, FROZEN, LEARNING, ORACLE_COLOURS, REFERENCE_COLOURS, looks
from skg_bench.analysis.report.chart import (
    HEIGHT,
    LEFT_MARGIN,
    NO_LINES,
    RIGHT_MARGIN,
    SINGLE_WEEKS,
    WIDTH,
    Chart,
    Frame,
    Series,
    band,
    banded,
    chart_svg,
    extent,
    line_path,
    position_ticks,
    tick,
    ticks,
)
from skg_bench.analysis.report.page_charts import Curves
from skg_bench.analysis.report.sentences import code
from skg_bench.analysis.report.typeset import marked, typeset, typeset_value

PAPER = {"light": "#ffffff", "dark": "#101317"}


def line(name: str, *mean: float | None) -> Series:
    low, high = ([None if v is None else v + by for v in mean] for by in (-0.1, 0.1))
    return Series(name, "arm-0 learning", mean, low, high)


@given(st.floats(-1e4, 1e4), st.floats(1e-5, 1e4))
def test_ticks_are_few_even_and_cover_the_values(low: float, width: float) -> None:
    marks, step = ticks(low, low + width)
    assert marks[0] <= low + 1e-6 * step
    assert marks[-1] >= low + width - 1e-6 * step
    assert 2 <= len(marks) <= 8
    assert all(b - a == pytest.approx(step, rel=1e-6) for a, b in pairwise(marks))


@given(st.floats(-50, 50), st.floats(1e-3, 100), st.sampled_from(["share", "utility", "usd", "ms", "skills"]))
def test_no_two_ticks_of_an_axis_read_the_same(low: float, width: float, unit: str) -> None:
    marks, step = ticks(low, low + width)
    words = [tick(mark, unit, step) for mark in marks]
    assert len(set(words)) == len(words)


def test_the_plot_takes_most_of_the_width_and_the_key_below_it_holds_every_line() -> None:
    assert (WIDTH - LEFT_MARGIN - RIGHT_MARGIN) / WIDTH > 0.85
    names = [f"arm_number_{n}" for n in range(14)]
    chart = Chart("f-x", "t", "s", "usd", "week", [1.0, 2.0], [line(name, 0.1 * n, n) for n, name in enumerate(names)])
    root = ET.fromstring(chart_svg(chart, names))  # noqa: S314  our own text
    tall = float(root.attrib["viewBox"].split()[3])
    texts = [text for text in root.iter("text") if (text.text or "").startswith("arm_")]
    at = [(float(text.attrib["x"]), float(text.attrib["y"])) for text in texts]
    assert len(set(at)) == 14
    assert all(HEIGHT < y < tall for _, y in at)
    assert [text.attrib["y"] for text in texts] == sorted((text.attrib["y"] for text in texts), key=float)
    assert (texts[0].text or "").endswith("$13.00000")  # the highest first, as the lines end


def test_bands_of_many_arms_are_those_of_the_main_ones() -> None:
    arms = [Series(name, css, [0.1, 0.2], [0.0, 0.1], [0.2, 0.3])
            for name, css in (("a", "x"), ("b", "x main"), ("c", "x"), ("d", "x main"))]  # fmt: skip
    assert [s.name for s in banded(arms)] == ["b", "d"]
    assert [s.name for s in banded([arms[0], arms[2]])] == ["a", "c"]
    assert [s.name for s in banded([arms[0], arms[2], arms[0]])] == ["a"]


def test_a_point_without_neighbours_is_seen() -> None:
    assert line_path(Frame(1, 3, 0.0, 1.0), [1, 2, 3], [None, 0.5, None]).count("L") == 1


def test_weeks_of_too_few_users_are_left_out_of_the_curves(tmp_path: Path) -> None:
    rows = ["arm,period,metric,n,mean,low,high", "skg,1,err_per_hit,9,0.1,0,1", "skg,2,err_per_hit,10,0.2,0,1"]
    (tmp_path / "curves.csv").write_text("\n".join(rows) + "\n", "utf-8")

    def means(users: int) -> list[float | None]:
        return list(Curves.read(tmp_path / "curves.csv", users).tracks["skg", "err_per_hit"][0])

    assert means(200) == [None, 0.2]
    assert means(12) == [0.1, 0.2]  # half of a small run are enough


def test_a_figure_of_single_weeks_says_that_users_are_too_few() -> None:
    def said(axis: str, *lines: Series) -> str:
        drawing = ET.fromstring(chart_svg(Chart("f", "T", "S", "share", axis, [1.0, 2.0, 3.0], lines), {"a", "b"}))  # noqa: S314
        return next(each.text or "" for each in drawing.iter("text") if each.get("class") == "empty")

    dash, whole = line("a", None, 0.5, None), line("b", 0.1, 0.2, None)
    assert said("week", dash) == SINGLE_WEEKS
    assert said("week", dash, whole) == said("price", dash) == ""
    assert said("week") == NO_LINES


@pytest.mark.parametrize("weeks", [1, 2, 4, 7, 13, 26, 52, 104])
def test_the_first_and_the_last_week_are_marked_and_marks_do_not_crowd(weeks: int) -> None:
    marks = position_ticks([float(w) for w in range(1, weeks + 1)])
    assert marks[0] == 1
    assert marks[-1] == weeks
    assert marks == sorted(set(marks))
    assert len(marks) <= 9


def test_marks_keep_apart_where_places_are_uneven() -> None:
    assert position_ticks([0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0]) == [0.0, 2.0, 3.0, 5.0, 10.0]
    prices = [0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0]
    assert position_ticks(prices, 1.0) == [0.0, 1.0, 2.0, 3.0, 5.0, 10.0]
    assert position_ticks(prices, 0.5) == position_ticks(prices)  # too near to the first label
    assert position_ticks([0.0, 2.0, 2.5, 10.0], 2.5) == [0.0, 2.5, 10.0]
    offers = [0.0, 0.02, 0.05, 0.1, 0.2, 0.5]  # 0.05, in four letters, would stand on the first label
    assert position_ticks(offers, 0.05) == [0.0, 0.1, 0.2, 0.5]
    assert position_ticks([float(w) for w in range(1, 27)]) == [1.0, 8.0, 12.0, 16.0, 20.0, 26.0]


def test_lines_and_bands_break_where_nothing_is_known() -> None:
    frame = Frame(1, 5, 0.0, 1.0)
    assert line_path(frame, [1, 2, 3, 4, 5], [0.1, 0.2, None, 0.4, 0.5]).count("M") == 2
    pieces = band(frame, [1, 2, 3, 4, 5], [0.0, 0.1, None, 0.3, 0.4], [0.2, 0.3, 0.4, 0.5, 0.6])
    assert pieces.count("M") == pieces.count("Z") == 2


def test_one_wild_week_does_not_squash_a_figure_but_every_mean_is_inside() -> None:
    calm = [0.1] * 19
    wild = Series("a", "x", [0.1] * 20, [0.05] * 20, [*calm, 50.0])
    assert extent([wild], "utility") == pytest.approx((0.0, 0.1))
    assert extent([Series("a", "x", [*calm, 3.0], [0.05] * 20, [0.1] * 20)], "utility")[1] == 3.0


def test_a_far_away_zero_is_left_out_and_a_near_one_is_kept() -> None:
    assert extent([line("a", 0.9, 0.95)], "share")[0] > 0.7
    assert extent([line("a", 0.3, 0.9)], "share")[0] == 0.0
    assert extent([line("a", -0.3, 0.9)], "utility")[0] < -0.3


def test_a_chart_is_well_formed_escapes_names_and_says_itself_in_words() -> None:
    chart = Chart("f-x", "Hits <b>", "says", "share", "week", [1.0, 2.0, 3.0], [line('<i a="">', 0.1, None, 0.3)])
    root = ET.fromstring(chart_svg(chart, ['<i a="">']))  # noqa: S314  our own text
    assert not list(root.iter("i"))
    assert "from 10.0\u202f% at week 1 to 30.0\u202f% at week 3" in root.attrib["aria-label"]
    assert "no arm is shown" in chart_svg(chart, [])


def test_a_chart_without_any_value_is_still_a_chart() -> None:
    ET.fromstring(chart_svg(Chart("f-x", "t", "s", "share", "week", [1.0], [line("a", None)]), ["a"]))  # noqa: S314


def luminance(colour: str) -> float:
    """WCAG 2.1 relative luminance."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1])
def test_every_colour_of_an_arm_can_be_read_as_text_on_its_background(scheme: int) -> None:
    paper = luminance(PAPER["dark" if scheme else "light"])
    for pair in (*LEARNING, *FROZEN, *CONTROL, REFERENCE_COLOURS, ORACLE_COLOURS):
        light, dark = sorted((luminance(pair[scheme]), paper), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, pair[scheme]


def composed(
    policy: str = "threshold.Threshold",
    router: str = "maxsim.MaxSim",
    curator: str = "skg.SKG",
    freeze: str | None = None,
) -> object:
    parts = {"policy": policy, "router": router, "curator": curator}
    return {seam: {"_target_": f"skg_bench.{seam}.{target}"} for seam, target in parts.items()} | {"freeze": freeze}


def test_arms_look_like_what_they_are_and_no_two_look_alike() -> None:
    arms = {
        "skg": composed(),
        "band": composed(),
        "frozen_1": composed(freeze="all"),
        "frozen_2": composed(freeze="all"),
        "never": composed(policy="never.Never"),
        "always": composed(policy="always.Always"),
        "exact": composed(router="exact.Exact"),
        "unlearned": composed(curator="none.NoLearning"),
        "oracle": composed(router="oracle.RightSkill"),
    }
    arm_looks = looks(list(arms), "never", arms, {})
    assert [look.kind for look in arm_looks] == ["learning", "learning", "frozen", "frozen", *["control"] * 5]
    assert len({(look.light, look.dash) for look in arm_looks}) == len(arm_looks)
    assert {look.arm for look in arm_looks if look.shown} == {"skg", "band", "frozen_1", "frozen_2", "never", "exact"}
    assert all(re.fullmatch(r"arm-\d+", look.css) for look in arm_looks)


def test_the_learner_and_its_reference_are_always_on() -> None:
    arms = {**{f"other_{n}": composed() for n in range(9)}, "late": composed(), "twin": composed(freeze="all")}
    for learner, reference in (("late", "late"), ("late", "other_8"), ("other_0", "late")):
        arm_looks = looks(list(arms), reference, arms, {}, learner=learner)
        shown_arms = {look.arm for look in arm_looks if look.shown}
        assert {learner, reference, "twin"} <= shown_arms
        assert {look.arm for look in arm_looks if "main" in look.classes.split()} == {learner, reference}


def test_an_arm_that_did_as_the_reference_is_neither_on_nor_drawn() -> None:
    arms = {"skg": composed(), "band": composed(), "never": composed(policy="never.Never")}
    arm_looks = looks(list(arms), "never", arms, {}, learner="skg", same=["band"])
    assert [(look.arm, look.drawn, look.shown) for look in arm_looks] == [
        ("skg", True, True), ("band", False, False), ("never", True, True)]  # fmt: skip


def test_names_of_arms_are_code_in_sentences_and_nothing_else_is_markup() -> None:
    assert marked("`a<b>` is -2 <u>") == "<code>a&lt;b&gt;</code> is −2 &lt;u&gt;"
    assert code("a`<i>`") == "`a<i>`"


def test_numbers_are_set_with_real_minus_signs_and_thin_spaces() -> None:
    assert typeset_value(-0.034, "utility") == "−0.034"
    assert typeset_value(0.051, "share") == "5.1\u202f%"
    assert typeset_value(None, "share") == "–"
    assert (
        typeset("run exact-match 2026-01-05: -0.1 to -$2, 80 % of")
        == "run exact-match 2026-01-05: −0.1 to −$2, 80\u202f% of"
    )
