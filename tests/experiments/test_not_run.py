"""Intervals of arms that were not run hold the truth, in the committed report and in a world made here; and faults that
are planted into the rows of the report are seen.
"""

from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from math import isnan

import numpy as np
import pytest

from experiments.not_run.analysis import ROWS, SEED, SIZE, analyse, dues, report, report_command
from experiments.not_run.long_messages import SHORT, LongMessages
from experiments.not_run.played import AskedTarget, LogSize, asked_targets, read_back, written
from experiments.not_run.worlds import LOGGER, DrawnWorld
from skg_bench.app.building import build
from skg_bench.app.compose import compose
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.core.package import CHECKOUT
from tests.runs import logs_alone

WORLDS = 20
SELDOM = DrawnWorld(3, 12)  # whose users ask seldom: a world takes as long as its busiest one
REPORTS = CHECKOUT / "reports"


@pytest.fixture(scope="module")
def committed() -> list[AskedTarget]:
    """Rows of the committed report."""
    return read_back((REPORTS / ROWS).read_text("utf-8"))


@pytest.fixture(scope="module")
def tiny() -> list[AskedTarget]:
    """Targets of a small world."""
    with logs_alone():
        return asked_targets(SELDOM, LogSize(users=12, weeks=1, others=24))


def spread(rows: Sequence[AskedTarget]) -> float:
    """Mean square of errors for these users, in standard errors as their intervals have them; of all that is given and
    not known wholly.
    """
    given = [row for row in rows if not row.withheld and row.known < 0.999]
    return float(np.mean([(2 * 1.96 * row.error / (row.these_high - row.these_low)) ** 2 for row in given]))


def halved(row: AskedTarget) -> AskedTarget:
    """A row with intervals half as wide."""
    these, others = ((a + b) / 2 for a, b in ((row.these_low, row.these_high), (row.others_low, row.others_high)))
    return replace(
        row, these_low=(these + row.these_low) / 2, these_high=(these + row.these_high) / 2,
        others_low=(others + row.others_low) / 2, others_high=(others + row.others_high) / 2,
    )  # fmt: skip


def seeing(row: AskedTarget) -> AskedTarget:
    """A row of models that see the truth."""
    moved = row.truth_these - row.value
    return replace(row, value=row.truth_these, these_low=row.these_low + moved, these_high=row.these_high + moved)


def coverage(rows: Sequence[AskedTarget]) -> bool:
    """Are both intervals as due, and errors neither too large nor too small for them?"""
    return dues(rows)[1].holds and dues(rows)[2].holds and 0.3 < spread(rows) < 2.0


def test_the_report_is_that_of_its_rows(committed: Sequence[AskedTarget]) -> None:
    shown = report(committed, SEED, SIZE)
    assert shown.page == (REPORTS / "not_run.md").read_text("utf-8")
    assert written(committed) == (REPORTS / ROWS).read_text("utf-8")
    assert len(committed) == WORLDS * 7


def test_the_command_of_a_report_makes_one_of_its_size() -> None:
    usual = {name: each.default for name, each in signature(analyse).parameters.items()}
    assert LogSize(usual["users"], usual["weeks"], usual["others"]) == SIZE
    assert report_command(3, 1, SIZE) == "skg-bench experiment not_run --worlds 3 --seed 1 --write reports"
    assert " --seed 1 --weeks 2 --others 9 --write" in report_command(3, 1, replace(SIZE, weeks=2, others=9))


def test_committed_intervals_hold_the_truth_and_planted_faults_are_seen(committed: Sequence[AskedTarget]) -> None:
    assert coverage(committed)
    assert not coverage([halved(row) for row in committed])
    assert not coverage([seeing(row) for row in committed])


def test_a_wrong_sign_and_too_few_that_are_given_are_not_as_due(committed: Sequence[AskedTarget]) -> None:
    assert all(due.holds for due in dues(committed)[3:4])
    row = next(row for row in committed if row.verdict == "higher")
    wrong = replace(row, verdict="lower")
    assert not dues([*committed, wrong])[3].holds
    assert not dues([replace(each, withheld="for nothing") for each in committed])[0].holds


def test_a_world_made_here_is_as_those_of_the_report(tiny: Sequence[AskedTarget]) -> None:
    assert [row.target for row in tiny] == [each.name for each in SELDOM.targets]
    given = {row.target: row for row in tiny if not row.withheld}
    assert {"stricter", "strictest", "never", "router"} <= set(given)
    assert "curator" not in given  # it makes offers where the log made none
    assert all(row.holds_these and row.holds_others for row in given.values())
    assert given["never"].truth_these != 0
    assert max(row.error for row in given.values()) < 0.01
    assert all(isnan(row.these_low) == bool(row.withheld) for row in tiny)
    assert written(read_back(written(tiny))) == written(tiny)


def test_worlds_differ_by_number_and_seed_and_name_a_valid_arm_each() -> None:
    worlds = [DrawnWorld(seed, number) for seed in (1, 2) for number in range(10)]
    assert len({world.values["right"] for world in worlds}) == len(worlds)
    assert {world.values["corpus"] for world in worlds} == {"builtin_120", "clinc150"}
    assert len({world.run_seed for world in worlds}) == len(worlds)
    for world in worlds:
        assert list(world.arms) == [LOGGER, *(each.name for each in world.targets)]
        assert all(world.arms[each.name] != world.arms[LOGGER] for each in world.targets)


def test_the_llm_errs_more_on_long_messages_alone() -> None:
    root = compose(["profile=smoke", "arms={a: []}", "reference=a"]).root
    users = build("simulator", root["simulator"], COMMAND_LINE)
    lost = LongMessages(users, 0.02).lost
    words = np.array([len(text.split()) for text in users.messages])
    assert (lost[words <= SHORT] == 0).all()
    assert lost[words == SHORT + 5] == pytest.approx(0.1)
    assert lost.max() > 0.2
