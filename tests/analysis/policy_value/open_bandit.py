"""Answers of Open Bandit Pipeline, where a checkout has them beside it, in the words of our estimators."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.analysis.policy_value.decision_sums import DecisionSums, LoggedDecisions, PolicyChoices, needed_terms
from skg_bench.analysis.policy_value.estimates import PolicyEstimates
from skg_bench.analysis.policy_value.estimators import chosen_estimators
from skg_bench.analysis.policy_value.step_values import step_values
from skg_bench.core.grid import F64, I64

ROOT = Path(__file__).resolve().parents[3]
SHARED = Path(os.environ.get("SKG_BENCH_SHARED", ROOT.parent / "shared"))
_PLAIN = {"ipw": "ips", "snipw": "snips", "dm": "dm", "dr": "dr", "sndr": "sndr"}
_SIZED = {"cipw_lam": "clipped", "cdr_lam": "clipped-dr", "switch-dr_tau": "switch", "dr-os_lam": "dros",
          "sg-ipw_lam": "sg-ips", "sg-dr_lam": "sg-dr"}  # fmt: skip
_TUNED = {"ipw": "clipped", "dr": "clipped-dr", "switch-dr": "switch", "dr-os": "dros"}


def vectors(*parts: str) -> Path:
    """A file of the oracles; the test is skipped where it is absent."""
    path = SHARED.joinpath("oracles", "ope", *parts)
    if not path.exists():
        pytest.skip(f"answers of Open Bandit Pipeline are absent: {path}; SKG_BENCH_SHARED says where they lie")
    return path


def arrays(*parts: str) -> dict[str, Any]:
    with np.load(vectors(*parts)) as file:
        return dict(file)


def answers(*parts: str) -> dict[str, Any]:
    known: dict[str, Any] = json.loads(vectors(*parts).read_text("utf-8"))
    return known


def our_name(key: str) -> str:
    """`dr-os_lam10` as `dros=10`, `dr_tuned_slope` as `clipped-dr=slope`."""
    if "_tuned_" in key:
        family, tuning = key.split("_tuned_")
        return f"{_TUNED[family]}={tuning}"
    for prefix, name in _SIZED.items():
        if key.startswith(prefix):
            return f"{name}={float(key.removeprefix(prefix)):g}"
    return _PLAIN[key]


def estimated(
    action: I64, reward: F64, pscore: F64, predicted: F64, policies: Mapping[str, F64], names: list[str]
) -> PolicyEstimates:
    """Our answers; policies and model `[n, K]`."""
    rows, estimators = np.arange(len(action)), chosen_estimators(names, model=True)
    sums = DecisionSums([needed_terms(estimators)] * len(policies), rows=False)
    choices = [PolicyChoices(p[rows, action], (p * predicted).sum(axis=1) / p.sum(axis=1)) for p in policies.values()]
    sums.add(LoggedDecisions(pscore, reward, predicted=predicted[rows, action]), choices)
    wanted = dict.fromkeys(policies, estimators)
    return step_values(sums.total(), wanted, reference=list(policies)[-1], users=False)
