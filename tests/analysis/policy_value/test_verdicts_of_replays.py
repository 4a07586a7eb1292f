"""Verdicts and intervals of replays: what few answers, or few users, of the log were by luck shows nothing."""

import numpy as np
import pytest

from skg_bench.analysis.policy_value.estimates import ModelCalibration, PolicyEstimates
from skg_bench.analysis.policy_value.loop_values import (
    LLM_ANSWERS,
    MOST_Z,
    REPLAY_SUMS,
    LoggedRewards,
    ReplayedSums,
    calibration,
    loop_values,
)
from skg_bench.study.replications import generator

RATE, USERS = 0.0005, 40  # turns at which a target differs from the log; of a log of 100 turns a user, two
G, TURNS, CHANCE = 10, 100.0, 0.85


@pytest.mark.parametrize(("unknown", "verdict"), [(1.0, "inconclusive"), (8.0, "lower")])
def test_a_few_answers_that_were_all_right_are_no_verdict_on_a_target(unknown: float, verdict: str) -> None:
    """All turns of the log were right; the target has the LLM answer some of each user's, right by CHANCE."""
    sums = dict.fromkeys(REPLAY_SUMS, 0.0) | {
        "turns": TURNS, "value": TURNS - unknown * (1 - CHANCE), "chance": unknown * CHANCE, "scale": unknown,
        "llm_scale": unknown, "known": TURNS - unknown, "modelled": unknown,
    }  # fmt: skip
    sums["variance"] = sums["llm_variance"] = unknown * CHANCE * (1 - CHANCE)
    target = ReplayedSums(np.array([np.full((G, 7), sums[name]) for name in REPLAY_SUMS]))
    logged = LoggedRewards(np.full(G, TURNS), np.full(G, TURNS), 0)
    model = ModelCalibration(LLM_ANSWERS, 1000, CHANCE, CHANCE, 0.01, 1.0, (0.0, CHANCE, CHANCE))
    made = loop_values(logged, {"target": target}, [model], estimand="loop", reference="log")
    assert made.values[1].difference == pytest.approx(-unknown * (1 - CHANCE) / TURNS)
    assert made.values[1].verdict == verdict


def test_a_calibrated_model_of_rare_answers_is_not_taken_for_a_miscalibrated_one() -> None:
    """Where no answer of a part was right, residuals are alike: their spread alone would make a z of 4 or more."""
    user, z = np.tile(np.arange(USERS, dtype=np.int32), 10), []
    for seed in range(200):
        rng = generator(13, seed)
        predicted = rng.uniform(0.001, 0.03, len(user))
        observed = (rng.random(len(user)) < predicted).astype(np.float64)
        z.append(abs(calibration("stored answers", predicted, observed, user).worst[0]))
    assert np.mean(np.array(z) > MOST_Z) <= 0.01
    assert calibration("stored answers", np.full(len(user), 0.2), observed, user).worst[0] < -MOST_Z


def rare(seed: int) -> tuple[float, tuple[float, float]] | None:
    """Difference of a target that seldom differs, and its interval for other users; the truth is RATE / 2. None: the
    target never differs.
    """
    rng = generator(11, seed)
    turns = np.minimum(np.exp(rng.normal(4.6, 0.7, USERS)), 400.0).round() + 1.0
    count = rng.poisson(RATE * np.exp(rng.normal(-0.32, 0.8, USERS)) * turns)
    gain = 2.0 * rng.binomial(count, rng.beta(2.25, 0.75, USERS)) - count
    sums = dict.fromkeys(REPLAY_SUMS, np.zeros(USERS)) | {"turns": turns, "value": gain, "known": turns}
    target = ReplayedSums(np.array([np.tile(sums[name][:, None], 7) for name in REPLAY_SUMS]))
    logged = LoggedRewards(turns, np.zeros(USERS), 0)
    made = loop_values(logged, {"target": target}, [], estimand="loop", reference="log").values[1]
    return (made.difference, made.difference_interval) if gain.any() else None


def test_intervals_of_a_difference_that_few_users_carry_hold_the_truth() -> None:
    made = [each for each in map(rare, range(400)) if each is not None]
    assert 350 < len(made) < 400
    held = np.array([low <= RATE / 2 <= high for _, (low, high) in made])
    assert held.mean() > 0.97
    halves = [(value + low) / 2 <= RATE / 2 <= (value + high) / 2 for value, (low, high) in made]
    assert np.mean(halves) < 0.9


def lucky(seed: int) -> tuple[float, float, tuple[float, float]]:
    """What the LLM's answers came to for the users of a log, what a model of them says, and its interval."""
    rng = generator(12, seed)
    unknown = rng.poisson(3.0, G).astype(np.float64)
    right = rng.binomial(unknown.astype(np.int64), CHANCE)
    chance = unknown * (CHANCE + rng.normal(0.0, 0.01))
    sums = dict.fromkeys(REPLAY_SUMS, np.zeros(G)) | {
        "turns": np.full(G, TURNS), "value": chance, "chance": chance, "scale": unknown, "llm_scale": unknown,
        "known": TURNS - unknown, "modelled": unknown,
    }  # fmt: skip
    share = chance / np.maximum(unknown, 1.0)
    sums["variance"] = sums["llm_variance"] = unknown * share * (1.0 - share)
    target = ReplayedSums(np.array([np.tile(sums[name][:, None], 7) for name in REPLAY_SUMS]))
    model = ModelCalibration(LLM_ANSWERS, 1000, CHANCE, CHANCE, 0.01, 1.0, (0.0, CHANCE, CHANCE))
    logged = LoggedRewards(np.full(G, TURNS), np.zeros(G), 0)
    made = loop_values(logged, {"target": target}, [model], estimand="loop", reference="log")
    n = G * TURNS
    return float(right.sum() / n), made.values[1].difference, made.replays[0].these_users_difference


def test_intervals_for_the_users_of_the_log_hold_what_comes_to_them_as_often_as_due() -> None:
    made = [lucky(seed) for seed in range(400)]
    held = np.mean([low <= truth <= high for truth, _, (low, high) in made])
    assert 0.93 < held < 0.99
    halved = np.mean([(value + low) / 2 <= truth <= (value + high) / 2 for truth, value, (low, high) in made])
    assert halved < 0.85


def of_an_audit(seed: int) -> tuple[tuple[float, float], PolicyEstimates]:
    """A target that gives other answers at a twelfth of the turns, and a log of which a fifth is judged: worth of the
    target, its difference to the log's arm, and what the log says of both.
    """
    rng, users, turns, share, rate, other = generator(14, seed), 60, 100, 0.2, 0.7, 0.8
    ability = rng.normal(0.0, 0.05, (users, 1))
    right = (rng.random((users, turns)) < rate + ability).astype(np.float64)
    judged = rng.random((users, turns)) < share
    expected = rate + rng.normal(0.0, 0.02)  # by a model
    estimated = expected + judged * (right - expected) / share
    audit = judged * (estimated - right) ** 2 / (1 - share)
    same = rng.random((users, turns)) < 0.92
    theirs = (rng.random((users, turns)) < other).astype(np.float64)
    sums = dict.fromkeys(REPLAY_SUMS, np.zeros(users)) | {
        "turns": np.full(users, float(turns)), "value": np.where(same, estimated, other).sum(axis=1),
        "known": same.sum(axis=1), "modelled": (~same).sum(axis=1), "scale": (~same).sum(axis=1),
        "llm_scale": (~same).sum(axis=1), "chance": other * (~same).sum(axis=1), "audit": (audit * same).sum(axis=1),
    }  # fmt: skip
    sums["variance"] = sums["llm_variance"] = (~same).sum(axis=1) * other * (1 - other)
    target = ReplayedSums(np.array([np.tile(sums[name][:, None], 7) for name in REPLAY_SUMS]))
    logged = LoggedRewards(sums["turns"], estimated.sum(axis=1), int((~judged).sum()), float(audit.sum()))
    model = ModelCalibration(LLM_ANSWERS, 1000, other, other, 0.0, 1.0, (0.0, other, other))
    made = loop_values(logged, {"target": target}, [model], estimand="loop", reference="log")
    came = np.where(same, right, theirs).mean()
    return (float(came), float(came - right.mean())), made


def test_intervals_of_a_log_of_which_some_turns_are_judged_hold_the_truth() -> None:
    made = [of_an_audit(seed) for seed in range(400)]
    values = [(truth[0], each.replays[0].these_users) for truth, each in made]
    gaps = [(truth[1], each.replays[0].these_users_difference) for truth, each in made]
    for pairs in (values, gaps):
        held = np.mean([low <= truth <= high for truth, (low, high) in pairs])
        halved = np.mean([abs(truth - (low + high) / 2) <= (high - low) / 4 for truth, (low, high) in pairs])
        assert 0.93 < held < 0.98
        assert halved < 0.8
    assert np.isnan([each.replays[0].bounds for _, each in made]).all()  # a model says what unjudged answers are worth
    others = [(0.92 * 0.7 + 0.08 * 0.8, each.values[1].interval) for _, each in made]
    assert 0.93 < np.mean([low <= truth <= high for truth, (low, high) in others]) < 0.98


@pytest.mark.parametrize("reference", ["log", "target"])
def test_a_log_that_was_not_judged_as_its_chances_say_has_no_value_either(reference: str) -> None:
    sums = dict.fromkeys(REPLAY_SUMS, 0.0) | {"turns": TURNS, "value": 60.0, "known": TURNS}
    target = ReplayedSums(np.array([np.full((G, 7), sums[name]) for name in REPLAY_SUMS]))
    logged = LoggedRewards(np.full(G, TURNS), np.full(G, 60.0), 900, judging=(0.15, 0.05))
    made = loop_values(logged, {"target": target}, [], estimand="loop", reference=reference)
    reason = "the mean weight of judged turns is 0.15"
    assert [(name, reason in why) for name, why in made.reasons] == [("log", True), ("target", True)]
    assert np.isnan([each.difference for each in made.values if each.policy != reference]).all()
    assert np.isnan([(each.value, *each.interval) for each in made.values]).all()
    assert np.isnan([each.sensitivity for each in made.replays]).all()
