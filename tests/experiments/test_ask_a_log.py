"""The experiment on asked logs: its truths are those of its draws, and it says where intervals miss them."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.ask_a_log import audits, plans
from experiments.ask_a_log.analysis import (
    ASKED,
    LOGGED,
    NAMES,
    WORLDS,
    Coverage,
    LogWorld,
    analyse,
    answers,
    coverages,
    value,
)
from skg_bench.study.replications import generator


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_logs_are_worth_what_their_world_says(world: LogWorld) -> None:
    made = [answers(world, generator(5, i)).values for i in range(300)]
    for number, truth in ((0, value(LOGGED)), (2, value(ASKED))):
        drawn = np.array([values[number].value for values in made])
        assert abs(drawn.mean() - truth) < 4 * drawn.std() / np.sqrt(len(drawn))


def test_intervals_by_user_are_as_due_and_by_row_fail_where_users_differ() -> None:
    by_user, by_row, difference = coverages(WORLDS[1], 150, 3)
    assert by_user.due
    assert difference.due
    assert max(by_row.shares) < 0.86
    assert not replace(by_row, measured="by user").due
    assert len(by_user.shares) == len(NAMES)


def test_too_many_and_too_few_are_not_as_due() -> None:
    assert Coverage(WORLDS[0], "by user", 1000, 0, (0.95, 0.93, 0.97, 0.95)).due
    assert not Coverage(WORLDS[0], "by user", 1000, 0, (0.95, 0.90, 0.95, 0.95)).due
    assert not Coverage(WORLDS[0], "difference", 1000, 0, (0.95, 0.95, 0.995, 0.95)).due


def test_its_page_has_a_row_for_each_world_and_interval() -> None:
    report = analyse(logs=20, seed=1)
    assert report.page.count("| by user |") == len(WORLDS)
    assert report.page.startswith("# Asking a log")


def test_populations_of_plans_have_mean_0_and_deviation_1() -> None:
    for i, draw in enumerate(plans.POPULATIONS.values()):
        values = draw(generator(1, i), (400_000,))
        assert abs(values.mean()) < 0.01
        assert values.std() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("population", plans.POPULATIONS)
def test_studies_that_are_planned_find_a_given_effect_in_four_of_five_cases(population: str) -> None:
    given, own = plans.plans(population, 60, 1000, 2)
    assert given.due
    assert own.due
    assert plans.LEAST <= given.power.mean() <= plans.MOST
    assert own.power.std() > given.power.std()  # the luck of the pilot's own difference
    assert not replace(given, power=np.full(60, 0.7)).due
    assert not replace(given, true=given.true * 3).due
    assert replace(own, power=np.full(60, 0.7)).due


def test_the_page_of_plans_has_a_row_for_each_population_and_effect() -> None:
    report = plans.analyse(studies=3, samples=100, seed=1)
    assert report.page.count("| pilot's |") == len(plans.POPULATIONS)


def test_judged_turns_hold_the_truth_where_ratings_miss_it() -> None:
    lines = {(line.rewards, line.measured): line for line in audits.audit_lines(200, 4)}
    for measured in ("value", "difference"):
        judged = lines["500 judged turns", measured]
        assert judged.due
        assert judged.withheld == 0
        assert judged.wrong == 0.0
        assert lines["ratings, as if by chance", measured].held < 0.1
        assert not replace(judged, held=0.88).due
        assert not replace(judged, logs=2000, held=1.0).due
    assert lines["ratings, bounds by odds", "value"].held >= 0.95
    assert not replace(lines["ratings, bounds by odds", "value"], held=0.8).due


def test_logs_that_are_audited_are_worth_what_their_world_says() -> None:
    """With every turn judged, nothing is left to the audit."""
    values = np.array([audits.ask(i, 5, judged=2500).judged.values[1].value for i in range(60)])
    assert abs(values.mean() - audits.TRUTH) < 4 * values.std() / np.sqrt(len(values))
