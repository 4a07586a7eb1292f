"""The gate guards something: the lead over `never`, right hits, the last quarter, and the user's attention."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skg_bench.analysis.gate.against import Held, ahead, lead, way
from skg_bench.analysis.gate.outputs import GateOutcome, sentences
from skg_bench.analysis.gate.panel import Panel
from skg_bench.analysis.gate.rules import RULES, declared
from tests.analysis.gate.panels import held_to, made

USERS, TURNS = 100, 1000


def panel(wrong_of_memory: int, wrong_of_llm: int, digest: str, *, hits: int = 300) -> Panel:
    """Users with so many hits, and so many wrong answers each, give or take one; `never` is wrong in 100 turns."""
    hit, wrong = (np.zeros((USERS, TURNS), np.bool_) for _ in range(2))
    hit[:, :hits] = True
    for user in range(USERS):
        wrong[user, : max(wrong_of_memory + user % 3 - 1, 0) if hits else 0] = True
        wrong[user, hits : hits + wrong_of_llm] = True
    return anchored(made(hit, wrong, digest))


def anchored(known: Panel) -> Panel:
    """With a `never` that is right in 900 turns of 1,000, and an oracle that is in 950."""
    noise = np.arange(USERS) % 5 - 2.0
    anchors = {"never": np.asarray(800.0 + noise, np.float64), "oracle": np.asarray(900.0 + noise, np.float64)}
    return replace(known, counts={**known.counts, **anchors})


def states(held: Held) -> dict[str, str]:
    return {judged.metric: judged.state for judged in held.judged}


BASE = panel(25, 70, "base")  # 95 of 1,000 answers are wrong: ahead of `never` by 0.01


def test_the_base_is_ahead_and_a_tenth_of_the_way() -> None:
    mean, least = lead(BASE)
    assert mean == pytest.approx(0.01, abs=1e-4)
    assert 0 < least < mean
    assert ahead(BASE)
    assert way(BASE) == pytest.approx(0.1, abs=2e-3)


def test_who_gives_the_product_up_does_not_pass_though_all_margins_are_kept() -> None:
    """Its utility falls by 0.01 and its wrong answers rise by 0.5 points: no more than the margins."""
    never = panel(0, 99, "never", hits=0)
    wide = tuple(replace(rule, margin=9.0) if rule.metric not in ("lead", "right_hits") else rule for rule in RULES)
    held = held_to(never, BASE, *wide)
    assert held.state == "fail"
    assert states(held)["lead"] == "fail"


def test_giving_up_is_not_excused_by_fewer_wrong_answers() -> None:
    worse_base = panel(60, 70, "bad")  # behind `never`: there is no lead to keep
    assert not ahead(worse_base)
    silent = panel(0, 99, "never", hits=0)
    held = held_to(silent, worse_base)
    assert "lead" not in states(held)
    (right,) = (judged for judged in held.judged if judged.metric == "right_hits")
    assert right.state == "fail"
    assert not right.paid
    assert "25 % of them are kept" in right.why[-1]
    some = held_to(panel(10, 85, "some", hits=150), worse_base)
    assert next(judged for judged in some.judged if judged.metric == "right_hits").paid


@pytest.mark.parametrize(("wrong", "state"), [(25, "pass"), (26, "pass"), (28, "inconclusive"), (31, "fail")])
def test_half_of_the_lead_must_provably_be_kept(wrong: int, state: str) -> None:
    """A wrong answer more in 1,000 costs a fifth of the lead: after 2.5 of them half is left."""
    held = held_to(panel(wrong, 70, f"{wrong}"), BASE)
    assert states(held)["lead"] in (state, "fail" if state == "inconclusive" else state)
    assert (states(held)["lead"] == "pass") == (state == "pass")


def test_an_improvement_passes() -> None:
    assert held_to(panel(20, 70, "better"), BASE).state == "pass"


def test_a_lead_that_is_lost_in_the_last_quarter_alone_does_not_pass() -> None:
    late = replace(BASE, digests={**BASE.digests, "answer_correct": "late"})
    spoilt = BASE.counts["late_wrong"] + 0.02 * BASE.counts["late_turn"] + np.arange(USERS) % 2
    held = held_to(replace(late, counts={**BASE.counts, "late_wrong": spoilt}), BASE)
    assert states(held)["utility"] == "pass"
    assert states(held)["utility_late"] == "fail"


def test_users_who_are_asked_more_often_are_a_burden() -> None:
    asked = replace(
        BASE,
        digests={**BASE.digests, "answer_correct": "asked"},
        counts={**BASE.counts, "offer": np.asarray(4.0 * (1 + np.arange(USERS) % 2), np.float64)},
    )
    held = held_to(asked, BASE)
    assert states(held)["offers_per_week"] == "fail"
    assert held.state == "fail"


def test_the_share_of_the_way_is_said_before_and_after() -> None:
    held = held_to(panel(20, 70, "better"), BASE)
    said = " ".join(sentences(GateOutcome("run", "skg", (held,), {}, None, (), 250)))
    assert "of the way from `never` to the oracle: 10.0 % (lead +0.010" in said
    assert "before, 20.0 % (lead +0.020" in said


def test_what_learning_costs_may_be_declared_too(tmp_path: Path) -> None:
    node = {
        "err_per_request": {"role": "errors", "better": "lower", "margin": 0.005},
        "learning_cost_usd": {"role": "efficiency", "better": "lower", "margin": 1e-5},
    }
    rules = declared(node, tmp_path / "baseline.json", BASE.domain)
    for rise, state in ((2e-5, "fail"), (2e-6, "pass")):
        counts = {**BASE.counts, "learning": BASE.counts["learning"] + rise * BASE.counts["turn"]}
        dear = replace(BASE, digests={**BASE.digests, "answer_correct": "dear"}, counts=counts)
        assert states(held_to(dear, BASE, *rules)) == {"err_per_request": "pass", "learning_cost_usd": state}


def test_an_arm_ahead_of_the_oracle_is_not_so_much_of_a_way() -> None:
    better = panel(20, 70, "better")
    near = replace(better, counts={**better.counts, "oracle": better.counts["never"] + 0.001 * better.counts["turn"]})
    said = " ".join(sentences(GateOutcome("run", "skg", (held_to(near, BASE),), {}, None, (), 250)))
    assert "before, ahead of the oracle, which is no ceiling here (lead +0.020" in said


def test_the_share_is_owed_to_every_reference_whatever_the_budget() -> None:
    rule = next(rule for rule in RULES if rule.role == "lead")
    assert rule.times(2.0) == rule
