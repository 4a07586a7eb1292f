"""Verdicts on replays: what few answers of the log were by luck shows nothing."""

import numpy as np
import pytest

from skg_bench.analysis.policy_value.estimates import ModelCalibration
from skg_bench.analysis.policy_value.loop_values import (
    LLM_ANSWERS,
    REPLAY_SUMS,
    LoggedRewards,
    ReplayedSums,
    loop_values,
)

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
