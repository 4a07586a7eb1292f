"""`skg-bench plan`: designs of a pilot held against one another, what it prints, and bad input that it refuses."""

import re
from pathlib import Path

import numpy as np
import pytest

import skg_bench
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.policy_value.contrast_plan import ContrastPlan
from skg_bench.runfolder.run import Run
from tests.app import test_replayed_arms
from tests.app.test_cli import call, refused

run = test_replayed_arms.run  # twelve users under many arms, made once
STRICT = "strict=[policy=threshold,policy.threshold=0.6]"


@pytest.fixture(scope="module")
def plan(run: Run) -> ContrastPlan:
    return skg_bench.plan_contrast(run, "strict", effect=0.01)


def test_a_plan_is_of_the_differences_that_compare_shows(run: Run, plan: ContrastPlan) -> None:
    prices = Utility.of(run.config)
    by_arm = {}
    for arm in ("rule", "strict"):
        turns = run.turns(arm)
        worth = turns.select(["user"]).append_column("worth", [1.0 - prices.loss(turns)]).to_pandas()
        by_arm[arm] = worth.groupby("user")["worth"].mean().to_numpy()
    assert plan.reference == "rule"
    assert plan.users == 12
    assert plan.difference == pytest.approx(float(np.mean(by_arm["strict"] - by_arm["rule"])))
    users = {design.name: design.users for design in plan.designs}
    assert list(users) == ["simulation", "A/B in two groups", "interleave", "softmax, temperature 0.05",
                           "epsilon_threshold, epsilon 0.05"]  # fmt: skip
    assert users["simulation"] <= users["interleave"] <= users["epsilon_threshold, epsilon 0.05"]
    assert users["interleave"] < users["A/B in two groups"]
    assert all(design.planned.low <= design.planned.users <= design.planned.high for design in plan.designs)
    assert not any(design.planned.trusted for design in plan.designs)


def test_exploring_costs_users_more_than_a_coin_where_the_arms_differ(plan: ContrastPlan) -> None:
    simulation, groups, coin, softmax, epsilon = plan.designs
    assert simulation.lost == 0.0
    assert groups.lost == pytest.approx(abs(plan.difference) / 2)
    assert coin.lost == pytest.approx(groups.lost)
    assert min(softmax.lost, epsilon.lost) > coin.lost
    assert coin.apart / coin.turns == pytest.approx(simulation.apart / simulation.turns)


def test_a_target_that_is_replayed_on_the_log_gives_about_the_plan_of_the_arm_that_was_run(
    run: Run, plan: ContrastPlan
) -> None:
    made = skg_bench.plan_contrast(
        run, target=("other", ["policy=threshold", "policy.threshold=0.6"]), reference="rule", effect=0.01
    )
    assert [design.name for design in made.designs] == ["simulation", "A/B in two groups", "interleave"]
    assert made.difference == pytest.approx(plan.difference, abs=0.01)
    for mine, theirs in zip(made.designs, plan.designs, strict=False):
        assert 0.4 < mine.users / theirs.users < 2.5, mine.name
        assert mine.turns / mine.users == pytest.approx(theirs.turns / theirs.users)
    assert made.designs[2].apart / made.designs[2].turns == pytest.approx(
        plan.designs[2].apart / plan.designs[2].turns, rel=0.3
    )


def test_arms_that_differ_in_more_than_the_policy_have_no_log_and_the_screen_says_so(run: Run) -> None:
    code, shown, _ = call("plan", str(run.path), "--arm", "more", "--reference", "rule", "--effect", "0.02")
    assert code == 0
    text = " ".join(shown.split())
    assert "interleave" not in text
    assert "the arms differ in curator, not in the policy alone" in text
    assert "not trusted: the pilot is too small" in text
    assert "It needs 50 users, and has 12" in text
    assert re.search(r"for a verdict of skg-bench compare, which is also for new requests, by simulation: [\dn]", text)
    assert "lost: utility a request that users lose during the test" in text


def test_without_an_effect_the_luck_of_the_pilot_is_in_the_interval(run: Run) -> None:
    code, shown, _ = call("plan", str(run.path), "--arm", "strict")
    text = " ".join(shown.split())
    assert code == 0
    assert re.search(r"as large as the pilot's, [+-]0\.\d+ in 80 % of cases", text)
    assert "the pilot's own difference is an estimate" in text
    assert "no end: the pilot sets no upper end, as the difference may be 0" in text


def test_results_that_were_made_elsewhere_are_a_pilot_too(elsewhere: Path) -> None:
    """All that these tell of an answer is whether it was right."""
    rows = [f"u{u},{e},{arm},{int((u * 7 + e * 3 + more) % 5 > 1)}" for u in range(12) for e in range(9)
            for arm, more in (("old", 0), ("new", u % 3))]  # fmt: skip
    Path("results.csv").write_text("\n".join(["user,event,arm,right", *rows]) + "\n")
    assert call("data", "import", "results.csv", "--out", "made", "--reference", "old")[0] == 0
    code, shown, error = call("plan", "made", "--arm", "new", "--effect", "0.1")
    assert code == 0, error
    (groups,) = (line.split() for line in shown.splitlines() if line.startswith("A/B in two groups"))
    assert groups[-1] == "-"  # no costs are known
    assert "no log is planned: an arm has no policy" in " ".join(shown.split())
    text = " ".join(call("plan", "made", "--arm", "new", "--effect", "1e-12")[1].split())
    assert "a billion users may not find 1e-12" in text
    right = np.array([[[(u * 7 + e * 3 + more) % 5 > 1 for more in (0, u % 3)] for e in range(9)] for u in range(12)])
    largest = 2 * np.abs(right[..., 1].mean(axis=1) - right[..., 0].mean(axis=1)).max()  # a wrong answer costs one
    for effect, said in (("1e9", True), ("0.1", False)):
        text = " ".join(call("plan", "made", "--arm", "new", "--effect", effect)[1].split())
        assert (f"no user of the pilot differs by 1e+09: by {largest:.4g} at most" in text) is said


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("--arm strikt", "strict"),
        ("--arm rule", "it is the reference itself"),
        ("--arm strict --reference non", "--reference non"),
        ("--arm strict --effect 0", "--effect 0"),
        ("--arm strict --effect=-1", "above 0"),
        ("--arm strict --reward clicks", "--reward clicks"),
        ("", "which arm is to be planned for? Give --arm; arms of the run: "),
        (f"--arm strict --target {STRICT}", "give one of --arm and --target"),
        ("--target strict", "write --target"),
        ("--target rule2=[serving=prompted]", "a target may change"),
        ("--target same=[policy.threshold=0.5]", "the same answers on every turn"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(run: Run, words: str, wanted: str) -> None:
    assert wanted in " ".join(refused("plan", str(run.path), *words.split()).split())


def test_a_pilot_of_four_users_and_a_folder_that_is_none_are_refused(tiny_run: Run) -> None:
    assert "at least" in refused("plan", str(tiny_run.path), "--arm", "skg", "--reference", "never")
    assert "missing" in refused("plan", "missing", "--arm", "skg")
