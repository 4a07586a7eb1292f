"""The figure of a comparison: every arm in every panel, at the right place, readable by a machine."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skg_bench.analysis.comparison.compare import Comparison, compare
from skg_bench.analysis.counts.measure import PROVEN
from skg_bench.analysis.report import forest
from tests.analysis.synthetic import ARMS, World, make_run

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    arms = {**ARMS, "careless": World(hit=0.95, hit_right=0.3), "<odd> & name": World(hit=0.5)}
    run = make_run(tmp_path_factory.mktemp("forest") / "run", users=12, weeks=4, arms=arms)
    return compare([run], "skg", margins={"utility": 0.03})


def panels(text: str) -> dict[str, tuple[float, list[ET.Element]]]:
    """Title of each panel -> its edge, and its marks."""
    by_title: dict[str, tuple[float, list[ET.Element]]] = {}
    title = ""
    for element in ET.fromstring(text):  # noqa: S314  our own
        if element.tag == f"{SVG}text" and element.get("class") == "title" and not (element.text or "").startswith("D"):
            title = element.text or ""
            by_title[title] = float(element.get("x", "0")), []
        elif element.tag == f"{SVG}g" and element.find(f"{SVG}circle") is not None:
            by_title[title][1].append(element)
    return by_title


def test_every_arm_with_a_figure_has_a_mark_in_every_panel(compared: Comparison) -> None:
    by_title = panels(forest.forest_svg(compared))
    assert list(by_title) == ["utility", "hit rate", "right answers", "wrong per hit"]
    assert {title: len(marks) for title, (_, marks) in by_title.items()} == {
        "utility": 4, "hit rate": 4, "right answers": 4, "wrong per hit": 3,  # `never` has no hits
    }  # fmt: skip


def test_marks_lie_in_the_order_of_what_they_show_and_within_their_intervals(compared: Comparison) -> None:
    for title, (left, marks) in panels(forest.forest_svg(compared)).items():
        rows = [row for row in compared.rows if row.metric.label == title]
        means = [
            row.difference.estimate.mean for row in rows if row.difference.estimate.mean == row.difference.estimate.mean
        ]
        dots = [float(mark.find(f"{SVG}circle").get("cx")) for mark in marks]  # type: ignore[union-attr,arg-type]
        assert np.corrcoef(means, dots)[0, 1] == pytest.approx(1.0, abs=1e-4)
        assert all(left <= dot <= left + forest._PANEL for dot in dots)
        for mark, dot in zip(marks, dots, strict=True):
            *thin, thick = mark.findall(f"{SVG}line")  # that of new requests may be withheld
            c, d = (float(thick.get(end, "nan")) for end in ("x1", "x2"))
            assert c <= dot + 0.06 <= d + 0.12
            for line in thin:
                assert float(line.get("x1", "nan")) <= dot + 0.06 <= float(line.get("x2", "nan")) + 0.12


def test_what_is_shown_is_filled_and_the_margin_is_shaded(compared: Comparison) -> None:
    text = forest.forest_svg(compared)
    verdicts = [row.difference.verdict for row in compared.rows if row.metric.name == "utility"]
    marks = panels(text)["utility"][1]
    assert [mark.get("class") == "shown" for mark in marks] == [verdict in PROVEN for verdict in verdicts]
    assert text.count('class="margin"') == 1


def test_names_are_text_and_the_figure_is_told_in_words(compared: Comparison) -> None:
    root = ET.fromstring(forest.forest_svg(compared))  # noqa: S314  our own
    assert "<odd> & name" in {element.text for element in root.iter(f"{SVG}text")}
    assert (root.get("aria-label") or "").startswith("Difference in utility from skg: frozen: ")


def test_a_comparison_without_other_arms_is_an_empty_figure(tmp_path: Path) -> None:
    alone = compare([make_run(tmp_path / "run", users=3, weeks=1, arms={"never": ARMS["never"]})])
    assert alone.rows == ()
    assert panels(forest.forest_svg(alone)) == {}
    assert panels(forest.forest_svg(replace(alone, reference="<x>"))) == {}
