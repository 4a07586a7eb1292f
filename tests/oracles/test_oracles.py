"""The vectors are what their README says: an estimator that meets them meets the definitions there."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.core.grid import F64

HERE = Path(__file__).parent
ESTIMATES: dict[str, Any] = json.loads((HERE / "ope" / "obp_estimates.json").read_text("utf-8"))["policies"]


def terms(weight: F64, reward: F64, modelled: F64, expected: F64) -> dict[str, F64]:
    """Per-round terms of some estimators, by the README's definitions."""
    residual = reward - modelled
    return {
        "ipw": weight * reward,
        "cipw_lam5": np.minimum(weight, 5) * reward,
        "snipw": weight * reward / weight.mean(),
        "dm": expected,
        "dr": expected + weight * residual,
        "switch-dr_tau3": expected + (weight <= 3) * weight * residual,
        "sndr": expected + weight * residual / weight.mean(),
    }


@pytest.mark.parametrize("policy", ESTIMATES)
def test_estimates_of_the_logged_bandit_follow_from_its_rounds(policy: str) -> None:
    rounds = np.load(HERE / "ope" / "data.npz")
    target, every = rounds[f"pi_e__{policy}"], np.arange(4000)
    chosen = target[every, rounds["action"]]
    weight, modelled = chosen / rounds["pscore"], rounds["q_hat"][every, rounds["action"]]
    expected = (target * rounds["q_hat"]).sum(axis=1) / target.sum(axis=1)
    for name, values in terms(weight, rounds["reward"], modelled, expected).items():
        assert values.mean() == pytest.approx(ESTIMATES[policy]["estimates"][name]["value"], abs=1e-9), name


def test_the_behaviours_of_ace_are_120_of_three_versions_and_change_a_skillbook_or_fail() -> None:
    cases = [json.loads(line) for line in (HERE / "ace" / "cases.jsonl").read_text("utf-8").splitlines()]
    assert len({case["uid"] for case in cases}) == len(cases) == 120
    versions = {case["schema"]: case["package"] for case in cases}
    assert versions == {"v1": "ace-framework==0.7.1", "v09": "ace-framework==0.9.7", "v2": "ace-framework==0.13.0"}
    for case in cases:
        outcomes = case["expect"]["outcomes"]
        assert len(outcomes) == 1 + len(case["steps"]) or "error" in outcomes[-1], case["uid"]
        assert (case["expect"]["skillbook"] is None) == ("error" in outcomes[0]), case["uid"]
