"""The experiment on readers and rules: the books are given, equal strategies are chosen equally well, and bins."""

from collections.abc import Mapping
from math import exp
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from experiments.llm_or_rule import analysis, figure
from experiments.llm_or_rule.measure import CHOOSERS, FORK, measure, prefers
from experiments.llm_or_rule.reading import bins, break_even
from skg_bench.study.guardian.drawing import Drawn, DrawRequest
from skg_bench.study.guardian.lives import Draw, Lives
from skg_bench.study.guardian.study import DrawStudy, lives, study

ALIKE = {
    "kinds_apart": 0.0,
    "fits": 0.0,
    "liking": 0.0,
    "liking_here": 0.0,
    "unsound": 0.0,
    "discerns": 0.0,
    "habit": 0.0,
    "generic": -0.4,
    "persuades": -0.4,
}
PLAIN = {"policy.similarity": 2.0, "policy.temperature": 0.5}


@pytest.fixture(scope="module")
def whole() -> DrawStudy:
    return study("llm_or_rule", ["users=16"], triggers=45)


@pytest.fixture(scope="module")
def drawn(whole: DrawStudy) -> tuple[Draw, Lives]:
    draw = whole.draw(0)
    return draw, lives(whole, draw)


@pytest.mark.req("P45")
def test_choosers_are_given_the_same_books_and_differ_from_then_on_only(drawn: tuple[Draw, Lives]) -> None:
    _, found = drawn
    reader = found["reader"]
    for name in ("rule", *CHOOSERS):
        life = found[name]
        assert np.array_equal(life.skill[:, :FORK], found["live"].skill[:, :FORK])
        assert np.array_equal(life.books.hash, reader.books.hash)
        assert name == "reader" or not np.array_equal(life.skill[:, FORK:], reader.skill[:, FORK:]), name
    assert (found["live"].books.n_skills > reader.books.n_skills).any()  # it goes on learning


@pytest.mark.req("P45")
def test_where_all_strategies_are_alike_nobody_chooses_better(whole: DrawStudy) -> None:
    draw = Draw(0, ALIKE | PLAIN)
    row = measure(draw, lives(whole, draw))
    for name in CHOOSERS:
        assert row[f"{name} - rule"] == pytest.approx(0.0, abs=1e-4), name  # a prompt may be some tokens longer


@pytest.mark.req("P45")
def test_a_book_shows_where_its_strategies_persuade_and_the_generic_question_does_not(whole: DrawStudy) -> None:
    draw = Draw(1, PLAIN | {"generic": -6.0, "persuades": 1.5, "wanted_share": 0.1, "policy.none": -5.0})
    row = measure(draw, lives(whole, draw))
    assert row["reader - empty"] > 1.96 * row["reader - empty_error"] > 0
    assert row["oracle - rule"] > 1.96 * row["oracle - rule_error"] > 0


def test_a_better_eye_for_places_and_less_chance_make_the_one_from_here_likelier() -> None:
    assert prefers(0.0, 0.5) == 0.5
    assert prefers(4.0, 0.5) == pytest.approx(1 / (1 + exp(-4 * 0.23 / 0.5)))
    assert prefers(16.0, 0.2) == pytest.approx(1.0, abs=1e-6)


def test_readers_are_binned_by_how_well_they_tell_places_apart_and_each_once() -> None:
    columns = {"reader": (0.7, -0.02), "places_0": (0.5, -0.04), "places_4": (0.8, 0.01), "places_16": (1.0, 0.03)}
    table = pd.DataFrame(
        {f"prefers {n}": [p] for n, (p, _) in columns.items()}
        | {f"{n} - rule": [x] for n, (_, x) in columns.items()}
        | {f"{n} - rule_error": [0.01] for n in columns}
    )
    readers = bins(table)
    assert [reader.less.tolist() for reader in readers] == [[-0.04], [-0.02], [0.01], [], [0.03]]
    assert [reader.share(1) for reader in readers if len(reader.less)] == [0, 0, 0, 1]
    assert break_even(readers) == "75 to 90 %"
    assert break_even(readers[:2]).startswith("none")


def test_the_report_has_all_choosers_and_figures_that_are_svg(whole: DrawStudy, drawn: tuple[Draw, Lives]) -> None:
    row: Mapping[str, float] = measure(*drawn)
    rng = np.random.default_rng(0)
    rows = [{k: v + rng.normal(0, 0.01) for k, v in row.items()} | dict(whole.draw(n).values) for n in range(12)]
    draws = Drawn(
        whole, pd.DataFrame(rows).assign(draw=range(12)), DrawRequest("llm_or_rule", measure), whole.setup.manifest()
    )
    text = analysis.markdown(draws, analysis.parts_of(draws))
    assert all(words in text for words in CHOOSERS.values())
    for name, drawing in figure.files(draws.table).items():
        assert f"]({name})" in text
        ET.fromstring(drawing)  # noqa: S314 - our own


def test_the_books_are_given_at_the_turn_that_is_measured_from(whole: DrawStudy) -> None:
    forks = {arm.name: None if arm.fork is None else (arm.fork.arm.name, arm.fork.turn) for arm in whole.arms}
    assert forks.pop("live") is None
    assert set(forks.values()) == {("live", FORK)}
