"""Geometry of the figures, and the colours that they are drawn in."""

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skg_bench.analysis.report.arms import CONTROL, FROZEN, LEARNING, ORACLE, REFERENCE, looks
from skg_bench.analysis.report.chart import (
    BOTTOM,
    HEIGHT,
    LABEL_GAP,
    TOP,
    Chart,
    Frame,
    Series,
    band,
    extent,
    path,
    position_ticks,
    spread,
    svg,
    tick,
    ticks,
)
from skg_bench.analysis.report.typeset import shown, typeset

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


@given(st.lists(st.floats(TOP, HEIGHT - BOTTOM), min_size=1, max_size=14))
def test_labels_keep_their_order_and_distance_and_stay_inside(wanted: list[float]) -> None:
    placed = spread(wanted, TOP, HEIGHT - BOTTOM)
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], i))
    for upper, lower in pairwise(order):
        assert placed[lower] - placed[upper] >= LABEL_GAP - 1e-6
    assert max(placed) <= HEIGHT - BOTTOM + 1e-6
    assert min(placed) >= TOP - 1e-6


@pytest.mark.parametrize("weeks", [1, 2, 4, 7, 13, 26, 52, 104])
def test_the_first_and_the_last_week_are_marked_and_marks_do_not_crowd(weeks: int) -> None:
    marks = position_ticks([float(w) for w in range(1, weeks + 1)])
    assert marks[0] == 1
    assert marks[-1] == weeks
    assert marks == sorted(set(marks))
    assert len(marks) <= 9


def test_marks_keep_apart_where_places_are_uneven() -> None:
    assert position_ticks([0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0]) == [0.0, 2.0, 3.0, 5.0, 10.0]
    assert position_ticks([float(w) for w in range(1, 27)]) == [1.0, 8.0, 12.0, 16.0, 20.0, 26.0]


def test_lines_and_bands_break_where_nothing_is_known() -> None:
    frame = Frame(1, 5, 0.0, 1.0)
    assert path(frame, [1, 2, 3, 4, 5], [0.1, 0.2, None, 0.4, 0.5]).count("M") == 2
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
    root = ET.fromstring(svg(chart, ['<i a="">']))  # noqa: S314  our own text
    assert not list(root.iter("i"))
    assert "from 10.0\u202f% at week 1 to 30.0\u202f% at week 3" in root.attrib["aria-label"]
    assert "no arm is shown" in svg(chart, [])


def test_a_chart_without_any_value_is_still_a_chart() -> None:
    ET.fromstring(svg(Chart("f-x", "t", "s", "share", "week", [1.0], [line("a", None)]), ["a"]))  # noqa: S314


def luminance(colour: str) -> float:
    """WCAG 2.1 relative luminance."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1])
def test_every_colour_of_an_arm_can_be_read_as_text_on_its_background(scheme: int) -> None:
    paper = luminance(PAPER["dark" if scheme else "light"])
    for pair in (*LEARNING, *FROZEN, *CONTROL, REFERENCE, ORACLE):
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


def test_numbers_are_set_with_real_minus_signs_and_thin_spaces() -> None:
    assert shown(-0.034, "utility") == "−0.034"
    assert shown(0.051, "share") == "5.1\u202f%"
    assert shown(None, "share") == "–"
    assert (
        typeset("run exact-match 2026-01-05: -0.1 to -$2, 80 % of")
        == "run exact-match 2026-01-05: −0.1 to −$2, 80\u202f% of"
    )
