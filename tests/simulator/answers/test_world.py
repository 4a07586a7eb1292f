"""The simulator's parameters: bad ones are refused by name, with what is valid."""

from dataclasses import fields
from math import inf, nan
from typing import Any

import numpy as np
import pytest
import yaml

from skg_bench.core.errors import UsageError
from skg_bench.core.package import CONF
from skg_bench.simulator.answers.world import AssistantUsers
from tests.core import samples
from tests.simulator.users import rated

DEFAULTS: dict[str, Any] = yaml.safe_load((CONF / "simulator" / "assistant.yaml").read_text("utf-8"))
del DEFAULTS["_target_"]
PROBABILITIES = (
    "active_low", "active_high", "weekend_activity", "one_off_share", "discount", "rated_share", "late_share",
    "accept", "accept_one_off", "bad_name_share", "habit", "procedures_exist", "generalises",
    "generalises_again", "slots_filled",
    "lost_per_word", "lost_unlike", "silent", "tool_fails",
)  # fmt: skip
POSITIVE = (
    "messages_per_day", "max_per_day", "conversation_length", "concentration", "lag_scale", "lag_power",
    "follow_boost", "partial_odds", "miss_odds", "late_hours", "fatigue_half_life_days",
)  # fmt: skip
NOT_NEGATIVE = (
    "volume_spread",
    "day_spread",
    "taste_spread",
    "fatigue",
    "answers_stale_hours",
    "tool_latency_ms",
    "tool_usd",
)
ROWS = ("rating_if_right", "rating_if_near", "rating_if_wrong")


def test_every_parameter_is_tried_below() -> None:
    tried = {*PROBABILITIES, *POSITIVE, *NOT_NEGATIVE, *ROWS, "corpus", "order"}
    assert {f.name for f in fields(AssistantUsers) if f.init} == tried == set(DEFAULTS)


def test_the_yaml_gives_every_parameter_its_unit_and_where_it_comes_from() -> None:
    lines = (CONF / "simulator" / "assistant.yaml").read_text("utf-8").splitlines()
    for name in DEFAULTS:
        (line,) = [line for line in lines if line.startswith(f"{name}:")]
        assert len(line.partition("#")[2]) > 20, name
        if name not in {"corpus", "order", *ROWS}:
            assert "[" in line.partition("#")[2], f"{name} has no unit"


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(UsageError, match=r"simulator\.order='random', valid are time, permuted"):
        AssistantUsers(**DEFAULTS | {"order": "random"})


@pytest.mark.parametrize("value", [-0.1, 1.1, nan, inf])
@pytest.mark.parametrize("name", PROBABILITIES)
def test_what_is_no_probability_is_refused(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=rf"simulator\.{name}={value} must lie in \[0, 1\]"):
        AssistantUsers(**DEFAULTS | {name: value})


@pytest.mark.parametrize("value", [-1, 0, nan, inf])
@pytest.mark.parametrize("name", POSITIVE)
def test_what_is_not_above_zero_and_finite_is_refused(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=rf"simulator\.{name}={value} "):
        AssistantUsers(**DEFAULTS | {name: value})


@pytest.mark.parametrize("value", [-1, nan, inf])
@pytest.mark.parametrize("name", NOT_NEGATIVE)
def test_what_is_negative_or_not_finite_is_refused(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=rf"simulator\.{name}={value} "):
        AssistantUsers(**DEFAULTS | {name: value})


@pytest.mark.parametrize("name", [*PROBABILITIES, *NOT_NEGATIVE])
def test_zero_is_accepted(name: str) -> None:
    low = {"active_low": 0.0} if name == "active_high" else {}
    assert getattr(AssistantUsers(**DEFAULTS | low | {name: 0.0}), name) == 0


def test_the_least_regular_user_cannot_be_more_regular_than_the_most_regular() -> None:
    with pytest.raises(UsageError, match=r"simulator\.active_low=0\.9 is above active_high=0\.8"):
        AssistantUsers(**DEFAULTS | {"active_low": 0.9, "active_high": 0.8})


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("row", [
    [0.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, 0.4], [1.0],
    [0.5, 0.3, 0.1, 0.1], [1.2, -0.2, 0.0], [nan, 0.5, 0.5], [], [inf, -inf, 1.0],
])  # fmt: skip
def test_ratings_that_are_no_three_probabilities_are_refused(name: str, row: list[float]) -> None:
    with pytest.raises(UsageError, match=rf"simulator\.{name}=.* must be three probabilities"):
        AssistantUsers(**DEFAULTS | {name: row})


@pytest.mark.parametrize(("right", "near", "wrong"), [
    ([0.1, 0.1, 0.8], [0.2, 0.4, 0.4], [0.9, 0.1, 0.0]),
    ([0.8, 0.1, 0.1], [0.2, 0.4, 0.4], [0.4, 0.4, 0.2]),
    ([0.2, 0.8, 0.0], [0.5, 0.4, 0.1], [0.1, 0.1, 0.8]),
])  # fmt: skip
def test_rating_better_answers_worse_is_refused(right: list[float], near: list[float], wrong: list[float]) -> None:
    with pytest.raises(UsageError, match="a better answer must not be rated worse"):
        AssistantUsers(**DEFAULTS | {"rating_if_right": right, "rating_if_near": near, "rating_if_wrong": wrong})


def test_ratings_that_say_nothing_about_the_answer_are_accepted() -> None:
    noise = {name: [0.5, 0.25, 0.25] for name in ROWS}
    assert AssistantUsers(**DEFAULTS | noise).rating_if_right == [0.5, 0.25, 0.25]


def test_a_user_of_more_messages_a_day_than_keys_can_tell_apart_is_refused() -> None:
    assert AssistantUsers(**DEFAULTS | {"max_per_day": 1024}).max_per_day == 1024
    with pytest.raises(UsageError, match=r"simulator\.max_per_day=1025 is above 1024"):
        AssistantUsers(**DEFAULTS | {"max_per_day": 1025})


@pytest.mark.parametrize("change", [
    {"messages_per_day": 1e-300}, {"messages_per_day": 1e300}, {"volume_spread": 50.0}, {"day_spread": 50.0},
    {"max_per_day": 1e-9}, {"max_per_day": 1024.0}, {"active_low": 0.0, "active_high": 0.0}, {"weekend_activity": 0.0},
    {"conversation_length": 1e-9}, {"conversation_length": 1e300}, {"taste_spread": 1e300}, {"one_off_share": 1.0},
    {"concentration": 1e-300}, {"concentration": 1e300}, {"discount": 1.0}, {"lag_scale": 1e-300}, {"lag_scale": 1e300},
    {"lag_power": 1e-9}, {"lag_power": 1e9}, {"follow_boost": 1e-300}, {"follow_boost": 1e300},
    {"answers_stale_hours": 1e-9}, {"answers_stale_hours": 1e300},
], ids=str)  # fmt: skip
def test_extreme_parameters_still_make_whole_streams(change: dict[str, Any]) -> None:
    simulator = AssistantUsers(**DEFAULTS | change)
    made = simulator.population(3, np.arange(8, dtype=np.int32), 2)
    mask = np.arange(made.time.shape[1]) < made.n[:, None]
    assert (made.n >= 1).all()
    assert made.n.max() <= 14 * 4 * max(1.0, simulator.max_per_day)
    assert (np.diff(made.time, axis=1) >= 0).all()
    assert ((made.time >= 0) & (made.time < 14 * 86_400))[mask].all()
    corpus, type_ = simulator._corpus, made.truth.type
    typed = mask & (type_ >= 0)
    assert (corpus.wordings[type_[typed]] == made.text[typed][:, None]).any(1).all()
    assert np.isin(made.text[mask & ~typed], corpus.one_offs).all()
    assert ((made.truth.answerable >= 0) & (made.truth.answerable < made.n[:, None])).all()


@pytest.mark.parametrize("change", [
    {"late_hours": 1e300}, {"late_hours": 1e-300}, {"partial_odds": 1e300}, {"miss_odds": 1e-300},
    {"rated_share": 1e-300}, {"rated_share": 1 - 1e-16},
], ids=str)  # fmt: skip
def test_extreme_parameters_still_make_ratings(change: dict[str, Any]) -> None:
    draws = samples.draws(np.random.default_rng(0), 3_000)
    reactions = AssistantUsers(**DEFAULTS | {"late_share": 1.0} | change).reactions
    rating, delay = rated(reactions, np.arange(3_000, dtype=np.int32) % 3, draws)
    assert (delay[rating >= 0] >= 1).all()
    assert delay.max() < 2**40
    assert set(rating.tolist()) <= {-1, 0, 1, 2}
