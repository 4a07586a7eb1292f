"""The arc of acceptance, the contrast of seed books and the generic question: found where they are, and only there."""

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from experiments.generic import analysis as generic
from experiments.generic.measure import nth, parts
from experiments.guardian_arc import analysis as arc
from experiments.guardian_arc import measure
from experiments.seeds import analysis as seeds
from experiments.seeds.measure import BOOKS
from skg_bench.app.experiment_report import Table
from skg_bench.core.package import DATA
from skg_bench.study.guardian import study
from skg_bench.study.guardian.lives import Draw

# Whatever is said persuades as much as anything else, at any time: nothing can be learned. Arms share all draws.
ALIKE = (
    "persuades=-0.4", "generic=-0.4", "kinds_apart=0", "fits=0", "liking=0", "liking_here=0", "discerns=0", "unsound=0",
    "habit=0", "annoyance=0",
)  # fmt: skip


def measured(module: ModuleType | Any, name: str, *world: str, users: int = 30) -> dict[str, float]:
    """Figures of the first draw, in a world with these parameters."""
    overrides = [f"users={users}", *(f"simulator.{parameter}" for parameter in world)]
    whole = study.study(name, overrides)
    draw = whole.draw(0)
    return dict(module.measure(draw, study.lives(whole, draw)))


def z(figures: dict[str, float], name: str) -> float:
    """A difference in standard errors."""
    return figures[name] / figures[f"{name}_error"]


# -------------------------------------------------------------------------------------------------------------- arc


@pytest.fixture(scope="module")
def alike() -> dict[str, float]:
    return measured(measure, "guardian_arc", *ALIKE)


@pytest.mark.req("P05", "P46", "P47", "P48")
def test_where_all_advice_is_alike_no_arm_accepts_more_than_another(alike: dict[str, float]) -> None:
    figures = alike
    for name in ("live_frozen_accepted", "grown_accepted"):
        assert (figures[name], figures[f"{name}_error"]) == (0.0, 0.0)
    assert abs(z(figures, "live_rise")) < 3.5
    assert figures["live_rise"] == figures["sham_rise"] == figures["frozen_rise"] == figures["unworn_rise"]
    assert abs(figures["grown_sham"]) < 1e-3  # the price of a longer prompt at most
    assert figures["live_size_last"] > figures["live_size_0"] >= 4.0  # the book grows all the same


def test_the_arc_needs_all_of_its_figures_within_ten_points() -> None:
    rows = [(0.3, 0.5, 0.7), (0.39, 0.41, 0.61), (0.45, 0.5, 0.7), (0.3, 0.35, 0.7), (0.3, 0.5, 0.55), (0.3, 0.5, 0.95)]
    table = pd.DataFrame(rows, columns=["live_first", "live_next", "live_last"])
    assert arc.arc(table).tolist() == [True, True, False, False, False, True]


@pytest.mark.req("P47")
def test_one_user_s_five_interactions_have_a_standard_error_of_more_than_twenty_points(alike: dict[str, float]) -> None:
    share = 1 / (1 + np.exp(0.4))
    assert alike["user_error"] == pytest.approx((share * (1 - share) / 4.5) ** 0.5, rel=0.3)  # some are approved
    assert alike["user_error"] > 0.2


# ------------------------------------------------------------------------------------------------------------ seeds


@pytest.mark.req("P44", "P49")
def test_no_book_of_the_contrast_changes_and_where_advice_is_alike_the_expert_s_is_worth_no_more() -> None:
    figures = measured(seeds, "seeds", *ALIKE)
    assert [figures[f"{name}_changed"] for name in BOOKS] == [0.0] * 4
    assert figures["pro_rookie_accepted"] == figures["learned_rookie_accepted"] == 0.0
    assert abs(figures["pro_rookie"]) < 1e-3


@pytest.mark.req("P44", "P49")
def test_where_kinds_differ_the_expert_s_book_is_accepted_more_although_nobody_learns() -> None:
    figures = measured(seeds, "seeds", "kinds_apart=2", "fits=0.5", "generic=-2", "persuades=0", users=60)
    assert z(figures, "pro_rookie_accepted") > 3
    assert figures["rookie_changed"] == figures["pro_changed"] == 0.0


def test_the_control_s_counters_are_those_of_other_skills() -> None:
    books = [json.loads((DATA / "guardian" / f"{name}.v2.json").read_text("utf-8"))["skills"] for name in
             ("pro", "pro_permuted")]  # fmt: skip
    counters = ("used_count", "helpful_count", "harmful_count", "neutral_count")
    pro, permuted = ([tuple(skill[c] for c in counters) for skill in book.values()] for book in books)
    assert sorted(pro) == sorted(permuted)
    assert all(own != other for own, other in zip(pro, permuted, strict=True))
    for own, other in zip(*(book.values() for book in books), strict=True):
        assert {k: v for k, v in own.items() if k not in counters} == {
            k: v for k, v in other.items() if k not in counters
        }


# ---------------------------------------------------------------------------------------------------------- generic


@pytest.mark.req("P04")
def test_a_question_that_wears_off_is_overridden_more_the_tenth_time_by_users_who_remember() -> None:
    figures = measured(generic, "generic", "habit=1", "habit_half_life_days=30", "generic=-0.5", users=80)
    assert z(figures, "wear_own") > 3
    assert abs(z(figures, "wear_fresh")) < 3.5
    assert figures["first_own"] == figures["first_fresh"]


@pytest.mark.req("P04")
def test_a_question_that_does_not_wear_off_is_taken_as_at_first() -> None:
    figures = measured(generic, "generic", "habit=0", "annoyance=0", users=80)
    assert figures["wear_own"] == figures["wear_fresh"]
    assert abs(z(figures, "wear_own")) < 3.5


def test_contexts_hold_each_question_twice_by_category_and_by_time() -> None:
    whole = study.study("generic", ["users=5"], triggers=12)
    life = study.lives(whole, Draw(0, {}))["question_own"]
    counted = np.sum(list(parts(life).values()), axis=0)
    assert (counted[life.there] == 2).all()
    assert (nth(life, 1).sum(axis=1) == 1).all()


# ---------------------------------------------------------------------------------------------------------- reports


@pytest.mark.parametrize(
    ("analyse", "name", "ids"),
    [
        (arc.EXPERIMENT.analyse, "guardian_arc", {"P05", "P46", "P47", "P48"}),
        (seeds.EXPERIMENT.analyse, "seeds", {"P44", "P49"}),
        (generic.EXPERIMENT.analyse, "generic", {"P04"}),
    ],
)
def test_the_analysis_writes_page_picture_and_claims(analyse: Callable[..., Any], name: str, ids: set[str]) -> None:
    report = analyse(["users=4", "workers=1"], draws=1)
    assert any(isinstance(part, Table) for part in report.parts)
    assert f"`skg-bench experiment {name} --profile demo --draws 1 users=4 workers=1`" in report.page
    assert all(ET.fromstring(figure) is not None for figure in report.figures.values())  # noqa: S314
    assert f"{name}.svg" in report.figures
    findings = report.findings()
    assert {finding.id for finding in findings} == ids
    assert all(finding.evidence.users == 4 for finding in findings)
