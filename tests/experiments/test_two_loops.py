"""The experiment on two feedback loops: worlds in which the later one must show and must not, and what is counted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
import yaml

from experiments.two_loops import analysis, figure
from experiments.two_loops.counters import concordance, strategy_worths
from experiments.two_loops.measure import decisions, measure, utility
from experiments.two_loops.tables import mapped, users_needed
from skg_bench.app.experiment_report import Table
from skg_bench.assistant.pipeline.components import components
from skg_bench.core.package import CONF
from skg_bench.simulator.advice.levels import ACCEPTED, OUTCOMES, OVERRIDDEN, REGRET_IT, SATISFACTIONS, WAIT, WORTH_IT
from skg_bench.study.guardian.drawing import Drawn, DrawRequest
from skg_bench.study.guardian.lives import Draw, Life, Lives, paired_lives
from skg_bench.study.guardian.mass_verdicts import above, below
from skg_bench.study.guardian.study import DrawStudy, lives, study

ARMS = tuple(yaml.safe_load((CONF / "experiment" / "two_loops.yaml").read_text("utf-8"))["arms"])


def some(arms: Sequence[str], users: int, more: Sequence[str] = (), triggers: int = 60) -> DrawStudy:
    """The study with these arms only."""
    left_out = [f"~arms.{arm}" for arm in ARMS if arm not in arms]
    return study(
        "two_loops", [f"users={users}", "contrasts=[]", f"reference={arms[0]}", *left_out, *more], triggers=triggers
    )


@pytest.mark.req("P43")
def test_later_answers_about_advice_that_was_followed_show_in_the_world_made_for_them_beside_a_coin_s() -> None:
    world = some(("later", "heeded_later", "coin"), 110)
    made = lives(world, analysis.made_for_it())
    assert paired_lives(made["heeded_later"], made["coin"], utility).better
    assert not paired_lives(made["later"], made["coin"], utility).better  # as the article counts them


@pytest.mark.req("P30")
def test_the_article_s_later_sign_says_what_was_wanted_and_nothing_of_the_advice() -> None:
    """Where the therapist speaks and nobody errs."""
    world = some(("immediate",), 10, triggers=20)
    life = lives(world, Draw(0, {"friction_from": 1, "mistaken": 0.0, "answered": 1.0}))["immediate"]
    pause = components(world.arms[0]).signs
    assert pause is not None
    answers = {
        name: np.isin(life.satisfaction, [SATISFACTIONS.index(name)]) & life.spoken
        for name in ("worth_it", "regret_it")
    }
    for outcome, signs in pause.satisfaction.items():
        for name, sign in signs.items():
            turns = answers[name] & (life.outcome == OUTCOMES.index(outcome))
            assert turns.any()
            assert (life.wanted[turns] == (sign < 0)).all(), (outcome, name)


@pytest.mark.req("P43")
def test_where_nobody_answers_two_loops_are_one_to_the_bit() -> None:
    world = some(("immediate", "both", "replace", "later", "frozen"), 8, triggers=20)
    silent = lives(world, Draw(0, {"answered": 0.0}))
    for arm in ("both", "replace"):
        assert np.array_equal(silent[arm].utility, silent["immediate"].utility, equal_nan=True)
    ratings = {arm: int(life.books.ok.sum() + life.books.miss.sum()) for arm, life in silent.items()}
    assert ratings["later"] == ratings["frozen"] < ratings["immediate"]


@pytest.mark.req("P07")
def test_answers_that_say_nothing_are_found_to_say_something_no_more_often_than_chance_allows() -> None:
    world = some(("both", "later_turned"), 20, triggers=25)
    noise = {"answered": 0.9, "mistaken": 0.5, "not_sure": 0.0, "sitting_days": 0.5}
    pairs = [lives(world, Draw(number, noise)) for number in range(6)]
    less = [paired_lives(pair["both"], pair["later_turned"], utility) for pair in pairs]
    assert all(difference.error > 0 for difference in less)  # the arms do differ
    assert sum(difference.better or difference.worse for difference in less) <= 2  # 3 of 6: one chance in 450


def test_cells_that_the_grid_leaves_out_are_the_same_as_one_that_it_has() -> None:
    more = (
        '+arms.later_replace=["signs.loops=[retrospective]",signs.merge=replace]',
        '+arms.neutral_immediate=[signs=neutral,"signs.loops=[immediate]"]',
    )
    world = some(("immediate", "later"), 10, more, triggers=25)
    found = lives(world, Draw(0, {"answered": 0.9}))
    for arm, same in (("later_replace", "later"), ("neutral_immediate", "immediate")):
        assert np.array_equal(found[arm].utility, found[same].utility, equal_nan=True)
        assert np.array_equal(found[arm].books.hash, found[same].books.hash)


# ----------------------------------------------------------------------------------------------------- what is counted


@pytest.fixture(scope="module")
def small() -> tuple[DrawStudy, Mapping[str, float], Lives]:
    """All arms, few users, and a row of the table."""
    whole = study("two_loops", ["users=8"], triggers=7)
    draw = whole.draw(0)
    found = lives(whole, draw)
    return whole, measure(draw, found), found


def with_turns(life: Life, columns: Mapping[str, Sequence[float]]) -> Life:
    """One user with these turns."""
    n = len(next(iter(columns.values())))
    given = {name: np.array([values]) for name, values in columns.items()}
    return replace(life, there=np.ones((1, n), np.bool_), **given)


@pytest.mark.req("P30")
def test_each_cell_of_the_two_by_two_has_the_truth_beside_it(
    small: tuple[DrawStudy, Mapping[str, float], Lives],
) -> None:
    turns: dict[str, Sequence[float]] = {
        "outcome": [ACCEPTED, WAIT, ACCEPTED, OVERRIDDEN, OVERRIDDEN, OVERRIDDEN],
        "satisfaction": [WORTH_IT, REGRET_IT, REGRET_IT, REGRET_IT, REGRET_IT, -1],
        "wanted": [False, True, True, False, True, True],
        "utility": [0.95, -1.05, 0.25, -0.05, -0.05, -0.05],
    }
    row = decisions(with_turns(small[2]["both"], turns))
    assert [row[f"share {cell}"] for cell in ("listened, worth it", "listened, regretted")] == [0.2, 0.4]
    assert [row[f"share {cell}"] for cell in ("overridden, worth it", "overridden, regretted")] == [0.0, 0.4]
    assert row["harmed listened, regretted"] == 0.5
    assert row["unwanted overridden, regretted"] == 0.5
    assert row["utility of listened, regretted"] == pytest.approx(-0.4)
    assert np.isnan(row["wanted overridden, worth it"])


def test_the_worth_of_a_kind_is_told_from_the_worth_of_the_triggers_that_it_was_said_on(
    small: tuple[DrawStudy, Mapping[str, float], Lives],
) -> None:
    life = small[2]["both"]
    rich: dict[str, Sequence[float]] = {
        "outcome": [OVERRIDDEN] * 10,
        "kind": [0] * 5 + [1] * 5,
        "fresh": [5.0] * 5 + [0.0] * 5,
    }
    poor: dict[str, Sequence[float]] = {
        "outcome": [OVERRIDDEN] * 10,
        "kind": [1] * 5 + [0] * 5,
        "fresh": [4.0] * 5 + [1.0] * 5,
    }
    worths = strategy_worths({"one": with_turns(life, rich), "two": with_turns(life, poor)})
    assert worths.tolist() == [[0.5, -0.5]]


@pytest.mark.req("P09")
def test_a_counter_is_calibrated_where_the_larger_helpful_share_is_the_larger_worth(
    small: tuple[DrawStudy, Mapping[str, float], Lives],
) -> None:
    worths = np.array([[0.1, 0.2, 0.3, np.nan]] * 3)
    books = SimpleNamespace(
        ok=np.array([[0, 2, 3, 9], [3, 2, 0, 0], [1, 1, 0, 0]]),
        miss=np.array([[4, 2, 1, 0], [0, 1, 4, 9], [1, 1, 0, 0]]),
    )
    life = replace(small[2]["both"], book_kinds=np.array([[0, 1, 2, 3]] * 3), books=books)
    assert (
        concordance(life, worths).mean == 0.0
    )  # the first user's is right, the second's is wrong, the third's says nothing
    first = replace(
        life, book_kinds=life.book_kinds[[0, 0]], books=SimpleNamespace(ok=books.ok[[0, 0]], miss=books.miss[[0, 0]])
    )
    assert concordance(first, worths[:2]).mean == 0.5


def test_a_map_holds_every_draw_once_and_small_effects_need_many_users() -> None:
    table = pd.DataFrame({"answered": np.linspace(0, 0.9, 9), "mistaken": [0, 0.15, 0.3] * 3, "x": np.arange(9.0)})
    table["x_error"] = 0.5
    cells = mapped(table, "x")
    assert sum(n for row in cells for _, n in row) == 9
    assert cells[0][0] == (0.0, 1)
    assert cells[2][2] == (8.0, 1)
    assert users_needed(table, "x", 100) == pytest.approx((2.8 * 5.0 / 4.0) ** 2)


def test_the_report_has_a_row_for_each_cell_a_finding_for_each_claim_and_figures_that_are_svg(
    small: tuple[DrawStudy, Mapping[str, float], Lives],
) -> None:
    whole, row, _ = small
    rng = np.random.default_rng(0)
    rows = [{k: v + rng.normal(0, 0.01) for k, v in row.items()} | dict(whole.draw(n).values) for n in range(12)]
    draws = Drawn(
        whole, pd.DataFrame(rows).assign(draw=range(12)), DrawRequest("two_loops", measure), whole.setup.manifest()
    )
    parts = analysis.parts_of(draws, row)
    tables = {part.title: part for part in parts if isinstance(part, Table)}
    made = next(part for title, part in tables.items() if "made for the later loop" in title)
    assert [line[0] for line in made.rows] == list(ARMS)
    assert {each.id for each in analysis.findings(draws, row)} == {"P07", "P09", "P30", "P43"}
    text = analysis.markdown(draws, parts)
    for name, drawing in figure.files(draws.table, row).items():
        assert f"]({name})" in text
        ET.fromstring(drawing)  # noqa: S314 - our own
    better = above(draws.table, "both - later")
    assert not (better & below(draws.table, "both - later")).any()
