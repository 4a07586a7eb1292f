"""From the ceiling to what was reached: every turn's loss is booked once, to its cause."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skg_bench.analysis import summary
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.tally import LoggedEvents, events
from skg_bench.analysis.summary.losses import CEILING, ORDER, Losses, losses
from skg_bench.core.types import CAUSES
from skg_bench.runfolder.run import Run
from tests.laws import world

ARMS = ("skg", "oracle", "prompted", "random", "frozen_all", "never")
PRICES = Utility(wrong=1.7, usd=31.0, second=0.013, offer=0.04)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return world.run(tmp_path_factory.mktemp("waterfall") / "run", 24, 256, 1, ARMS)


@pytest.fixture(scope="module")
def on(run: Run) -> LoggedEvents:
    return events(run)


@pytest.fixture(scope="module")
def figures(run: Run) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(summary.describe(run)[0].to_json())
    return content


def worth(run: Run, arm: str, prices: Utility) -> pd.DataFrame:
    """User, cause and utility of every turn."""
    t: pd.DataFrame = run.turns(arm, ["cause", "answer_correct", "cost_usd", "latency_ms", "offer"]).to_pandas()
    price = prices.usd * t.cost_usd + prices.second * t.latency_ms / 1000 + prices.offer * t.offer.notna()
    t["utility"] = np.where(t.answer_correct, 1.0, -prices.wrong) - price
    return t


def test_every_cause_has_its_place_in_the_order() -> None:
    assert sorted(ORDER) == sorted(CAUSES)


@pytest.mark.parametrize("arm", ARMS)
def test_a_users_losses_sum_to_what_the_ceiling_is_above_what_was_reached(run: Run, on: LoggedEvents, arm: str) -> None:
    reached = worth(run, arm, PRICES).groupby("user").utility.mean().to_numpy()
    booked = losses(run, arm, on, PRICES)
    assert booked is not None
    np.testing.assert_allclose(booked.by_user(on).sum(axis=0), CEILING - reached, rtol=0, atol=1e-12)


@pytest.mark.parametrize("arm", ARMS)
def test_each_turn_is_booked_whole_to_its_cause(run: Run, on: LoggedEvents, arm: str) -> None:
    t, booked = worth(run, arm, PRICES), losses(run, arm, on, PRICES)
    assert booked is not None
    turns = t.groupby("user").size()
    for code, cause in enumerate(CAUSES):
        cause_turns = t[t.cause == cause]
        expected = ((1 - cause_turns.utility).groupby(cause_turns.user).sum() / turns).fillna(0).to_numpy()
        np.testing.assert_allclose(booked.by_user(on)[code], expected, rtol=0, atol=1e-12)
        assert booked.turns[code] == len(cause_turns)


def test_the_summary_leads_from_the_ceiling_to_the_utility_of_the_arm(figures: dict[str, Any]) -> None:
    for arm in ARMS:
        bars, utility = figures["waterfall"][arm]["losses"], figures["arms"][arm]["utility"]
        assert list(bars) == [*ORDER, "policy"]
        assert sum(bars[cause]["mean"] for cause in ORDER) == pytest.approx(1 - utility["mean"], abs=1e-7)
        assert sum(bars[cause]["n_turns"] for cause in ORDER) == figures["turns"]
        assert bars["policy"]["mean"] == pytest.approx(bars["score"]["mean"] + bars["threshold"]["mean"], abs=1e-8)
        for cause in ORDER:
            assert bars[cause]["mean"] >= 0
            assert bars[cause]["low"] <= bars[cause]["mean"] <= bars[cause]["high"]


def test_differences_of_bars_sum_to_the_difference_of_utility(figures: dict[str, Any]) -> None:
    assert figures["waterfall"]["never"]["differences"] is None
    for arm in ARMS[:-1]:
        bars, never = figures["waterfall"][arm], figures["waterfall"]["never"]
        for bar, difference in bars["differences"].items():
            expected = bars["losses"][bar]["mean"] - never["losses"][bar]["mean"]
            assert difference["mean"] == pytest.approx(expected, abs=1e-8)
        less = sum(bars["differences"][cause]["mean"] for cause in ORDER)
        assert less == pytest.approx(-figures["differences"][arm]["utility"]["mean"], abs=1e-7)


def test_an_arm_that_serves_nothing_has_no_price_of_hits(figures: dict[str, Any]) -> None:
    bars = figures["waterfall"]["never"]["losses"]
    assert (bars["none"]["mean"], bars["none"]["n_turns"]) == (0.0, 0)
    assert bars["novelty"]["mean"] > 0 < bars["policy"]["mean"]  # it captured skills, and let them lie


def test_what_right_hits_cost_is_their_price(figures: dict[str, Any]) -> None:
    """50 ms of waiting at 0.02 a second."""
    bars, oracle = figures["waterfall"]["oracle"]["losses"], figures["arms"]["oracle"]
    assert bars["none"]["mean"] == pytest.approx(0.001 * oracle["hit_rate"]["mean"], rel=1e-6)
    assert bars["score"]["mean"] == bars["threshold"]["mean"] == bars["routing"]["mean"] == 0


def test_losses_of_several_causes_are_their_sum() -> None:
    some = Losses(np.arange(8.0)[:, None] * np.ones((8, 3)), np.zeros(8, np.int64))
    np.testing.assert_array_equal(some.of(("score", "threshold")), np.full(3, 9.0))
