"""Values, weights, errors and tuned sizes are those of Open Bandit Pipeline, to 1e-9."""

from math import sqrt

import numpy as np
import pytest

from skg_bench.analysis.policy_value.estimates import PolicyEstimates
from skg_bench.analysis.statistics.intervals import t_quantile
from tests.analysis.policy_value.open_bandit import answers, arrays, estimated, our_name

POLICIES = ("soft", "greedy", "uniform", "behavior", "eps_greedy")
EXACT = 1e-9


@pytest.fixture(scope="module")
def made() -> PolicyEstimates:
    """All that set A asks for."""
    data, known = arrays("A", "data.npz"), answers("A", "obp_estimates.json")["policies"]
    keys = {key for policy in known.values() for part in ("estimates", "tuned") for key in policy[part]} - {"rm"}
    policies = {name: data[f"pi_e__{name}"] for name in POLICIES}
    assert set(known) == set(policies)
    names = sorted(map(our_name, keys))
    return estimated(data["action"], data["reward"], data["pscore"], data["q_hat"], policies, names)


def errors(made: PolicyEstimates) -> dict[tuple[str, str], float]:
    """Standard errors by policy and estimator."""
    half = 2 * t_quantile(0.975, made.rows - 1.0)
    return {(each.policy, each.estimator): (each.interval[1] - each.interval[0]) / half for each in made.values}


def test_values_and_tuned_ones_are_those_of_open_bandit_pipeline(made: PolicyEstimates) -> None:
    ours = {(each.policy, each.estimator): each.value for each in made.values}
    known = answers("A", "obp_estimates.json")["policies"]
    theirs = {
        (policy, our_name(key)): answer["value"]
        for policy, parts in known.items()
        for part in ("estimates", "tuned")
        for key, answer in parts[part].items()
        if key != "rm"  # rejection sampling
    }
    assert theirs.pop(("greedy", "dros=0")) is None  # they divide nothing by nothing; the limit is the model alone
    assert ours.pop(("greedy", "dros=0")) == ours["greedy", "dm"]
    assert len(theirs) == 5 * 29 - 1
    assert set(ours) == set(theirs)
    assert max(abs(ours[key] - value) for key, value in theirs.items()) < EXACT


def test_weights_and_errors_are_those_that_are_known(made: PolicyEstimates) -> None:
    known, error = answers("A", "derived.json"), errors(made)
    for weights in made.weights:
        theirs = known[weights.policy]
        assert weights.effective == pytest.approx(theirs["ess"], abs=EXACT)
        assert weights.mean == pytest.approx(theirs["w_mean"], abs=EXACT)
        assert weights.largest == pytest.approx(theirs["w_max"], abs=EXACT)
        whole = sqrt((made.rows - 1) / made.rows)  # theirs has no correction for the number of rows
        assert error[weights.policy, "snips"] * whole == pytest.approx(theirs["snips_delta_method_se"], abs=EXACT)
        for key, (low, high) in theirs["normal_ci95"].items():
            if key not in ("snipw", "sndr") and low is not None:
                assert error[weights.policy, our_name(key)] == pytest.approx(
                    (high - low) / 2 / 1.959963984540054, abs=EXACT
                )


def test_the_interval_of_self_normalised_ones_is_not_theirs_which_holds_the_mean_weight_fixed(
    made: PolicyEstimates,
) -> None:
    known, error = answers("A", "derived.json"), errors(made)
    for policy in ("soft", "greedy", "eps_greedy"):
        for key in ("snipw", "sndr"):
            low, high = known[policy]["normal_ci95"][key]
            assert error[policy, our_name(key)] < 0.995 * (high - low) / 2 / 1.959963984540054


def test_differences_of_policies_are_paired(made: PolicyEstimates) -> None:
    known = answers("A", "derived.json")["_paired_soft_minus_eps_greedy"]
    for key, theirs in known.items():
        (ours,) = (each for each in made.values if (each.policy, each.estimator) == ("soft", our_name(key)))
        half = (ours.difference_interval[1] - ours.difference_interval[0]) / 2 / t_quantile(0.975, made.rows - 1.0)
        assert ours.difference == pytest.approx(theirs["diff"], abs=EXACT)
        assert half == pytest.approx(theirs["se_paired"], abs=EXACT)


@pytest.mark.parametrize("case", ["men__random_logs__eval_bts", "men__bts_logs__eval_random"])
def test_the_open_bandit_data_set_has_the_same_values(case: str) -> None:
    data, known = arrays("obd", f"{case}.npz"), answers("obd", "estimates.json")["cases"][case]
    policy = data["pi_e_action_by_position"].T[data["position"]]
    theirs = {our_name(key): answer["value"] for key, answer in known["estimates"].items() if key != "rm"}
    reward = data["reward"].astype(np.float64)
    made = estimated(data["action"], reward, data["pscore"], data["q_hat_at_position"], {"new": policy}, sorted(theirs))
    ours = {each.estimator: each.value for each in made.values}
    assert len(theirs) == 10
    assert max(abs(ours[key] - value) for key, value in theirs.items()) < EXACT
    assert made.weights[0].effective == pytest.approx(known["ess"], abs=1e-7)
    assert made.weights[0].largest == pytest.approx(known["w_max"], abs=EXACT)
    assert made.weights[0].mean == pytest.approx(known["w_mean"], abs=EXACT)
