"""A panel against a baseline: same bits, other panels, and what adds up between releases."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skg_bench.analysis.gate.against import Reference, hold
from skg_bench.analysis.gate.baseline import BUDGET
from skg_bench.analysis.gate.panel import EVENTS_DIGEST, SIMULATED, Panel, panel
from skg_bench.analysis.gate.rules import LEAD, RULES, Rule
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import Bool
from skg_bench.runfolder import shards
from skg_bench.runfolder.run import Run
from tests.analysis.gate.panels import ANCHORS, held_to, made, rule, worse
from tests.analysis.synthetic import World, make_run
from tests.runs import rewritten


def test_the_same_bits_pass_at_once() -> None:
    outcome = held_to(worse([50]), worse([50]))
    assert (outcome.state, outcome.same, outcome.judged) == ("pass", True, ())


def test_other_bits_with_the_same_totals_are_judged_and_pass() -> None:
    base = worse([50])
    outcome = held_to(replace(base, digests={**base.digests, "answer_correct": "other"}), base)
    assert (outcome.state, outcome.same, outcome.changed) == ("pass", False, ("answer_correct",))
    assert all(judgement.mean == 0 for judgement in outcome.judged if judgement.metric != LEAD)


def test_a_column_that_the_baseline_does_not_know_is_no_change_and_one_that_went_is() -> None:
    base = worse([50])
    assert held_to(replace(base, digests={**base.digests, "new": "x"}), base).same
    assert held_to(base, replace(base, digests={**base.digests, "old": "x"})).changed == ("old",)


def test_harm_is_positive_where_it_is_worse() -> None:
    hit, wrong = np.zeros((40, 100), np.bool_), np.zeros((40, 100), np.bool_)
    hit[:, :20], wrong[:, :4] = True, True
    fewer_hits, more_wrong = hit.copy(), wrong.copy()
    fewer_hits[:, 10:20], more_wrong[:, :6] = False, True
    base = made(hit, wrong, "a")
    harms = {judgement.metric: judgement.mean for judgement in held_to(made(fewer_hits, wrong, "b"), base).judged}
    assert harms == pytest.approx(
        {
            "lead": -0.96,
            "utility": 0.0,
            "utility_late": 0.0,
            "err_per_request": 0.0,
            "right_hits": 0.1,
            "offers_per_week": 0.0,
            "worst_users": 0.0,
            "harmed_users": 0.0,
        }
    )
    harms = {judgement.metric: judgement.mean for judgement in held_to(made(hit, more_wrong, "c"), base).judged}
    assert harms == pytest.approx(
        {
            "lead": -0.92,
            "utility": 0.04,
            "utility_late": 0.0,
            "err_per_request": 0.02,
            "right_hits": 0.02,
            "offers_per_week": 0.0,
            "worst_users": 0.02,
            "harmed_users": 0.0,
        }
    )


def test_users_without_a_hit_are_left_out_and_counted() -> None:
    base, new = worse([50]), worse([50])
    hit = new.hit.reshape(100, -1).copy()
    hit[:5] = False
    by_metric = {
        judgement.metric: judgement
        for judgement in held_to(
            made(hit, new.wrong.reshape(100, -1), "x"), base, Rule("err_per_hit", "errors", "lower", 0.03), *RULES
        ).judged
    }
    assert (by_metric["err_per_hit"].n, by_metric["err_per_hit"].excluded) == (95, 5)
    assert (by_metric["utility"].n, by_metric["utility"].excluded) == (100, 0)


def test_ten_passes_of_half_a_margin_do_not_lose_five() -> None:
    """Half a margin of utility is 2.5 wrong answers in 1,000 turns: two users of three lose 2, the third 4, or so."""
    versions = [worse([50 + 5 * step // 2, 51 + 5 * step // 2]) for step in range(11)]
    each = [held_to(new, base) for base, new in pairwise(versions)]
    assert [outcome.state for outcome in each] == ["pass"] * 10
    assert all(any(judged.worse for judged in outcome.judged) for outcome in each)
    since_release = [held_to(new, versions[0], factor=BUDGET).state for new in versions[1:]]
    stopped = since_release.index("fail")
    assert set(since_release[stopped:]) == {"fail"}
    lost = {
        judgement.metric: judgement.mean / judgement.margin
        for judgement in held_to(versions[stopped + 1], versions[0]).judged
        if judgement.margin > 0
    }
    assert max(lost.values()) <= BUDGET + 0.5 < 5


def nothing(users: int) -> tuple[Bool, Bool]:
    return np.zeros((users, 9), np.bool_), np.zeros((users, 9), np.bool_)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (made(*nothing(100), "x", seed=7), "seed=7 there, 0 in the run"),
        (made(*nothing(100), "x", first=100), "100 users there, 100 in the run, 0 of them the same"),
        (made(*nothing(20), "x"), "20 users there, 100 in the run, 20 of them the same"),
    ],
)  # fmt: skip
def test_a_baseline_of_another_panel_is_refused(other: Panel, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        held_to(worse([50]), other)


def test_a_metric_whose_counts_were_not_kept_is_refused() -> None:
    with pytest.raises(UsageError, match="no counts of ok, rated for metric 'rated_ok'; write it with --update"):
        held_to(worse([51]), worse([50]), Rule("rated_ok", "errors", "higher", 0.01))


# ---------------------------------------------------------------------------------------------- roles


def traded(right: int, wrong: int, errors: int = 50, users: int = 100) -> Panel:
    """The skillbook answers `right` of 1,000 turns rightly and `wrong` wrongly; the LLM is wrong in `errors`."""
    hit, bad = np.zeros((users, 1000), np.bool_), np.zeros((users, 1000), np.bool_)
    hit[:, : right + wrong], bad[:, right : right + wrong] = True, True
    bad[:, -errors:] = True
    return made(hit, bad, f"{right}-{wrong}-{errors}")


def test_right_hits_that_are_lost_for_nothing_block_and_those_that_avoid_wrong_answers_do_not() -> None:
    base = traded(40, 40)
    lost, paid = held_to(traded(20, 40), base), held_to(traded(20, 20), base)
    assert lost.state == "fail"
    assert [judged.metric for judged in lost.judged if judged.state == "fail"] == ["right_hits"]
    assert paid.state == "pass"
    assert [judged.metric for judged in paid.judged if judged.paid] == ["right_hits"]


def test_fewer_hits_alone_never_block_and_are_shown() -> None:
    outcome = held_to(traded(40, 0), traded(40, 40))
    assert outcome.state == "pass"
    assert not any(judged.paid for judged in outcome.judged)
    assert {metric.name: (before, after) for metric, before, after in outcome.informs} == {
        "hit_rate": pytest.approx((0.08, 0.04)), "err_per_hit": pytest.approx((0.5, 0.0))
    }  # fmt: skip


def test_right_hits_may_not_be_paid_for_with_wrong_answers_that_are_not_proven_fewer() -> None:
    rng = np.random.default_rng(0)
    base, new = traded(40, 40), traded(20, 40)
    wrong = new.wrong.reshape(100, -1).copy()
    wrong[:50, 80:87], wrong[50:, -7:] = True, False  # as many more for half of the users as fewer for the others
    outcome = held_to(made(new.hit.reshape(100, -1), wrong, str(rng)), base)
    assert outcome.state == "fail"
    assert not any(judged.paid for judged in outcome.judged)


# ---------------------------------------------------------------------------------------------- few users


def few(users: int, share: float, points: float, noise: int = 3, turns: int = 1000) -> tuple[Panel, Panel]:
    """`share` of the users get `points` more wrong answers; at `noise` turns of everybody chance changes the answer."""
    rng = np.random.default_rng(7)
    before = rng.random((users, turns)) < 0.1
    after = before.copy()
    for row in range(users):
        at = rng.choice(turns, noise, replace=False)
        after[row, at] = rng.random(noise) < 0.1
    harmed = rng.random((round(share * users), turns)) < points / 0.9
    after[: len(harmed)] |= harmed
    hit = np.zeros_like(before)
    return made(hit, before, "a"), made(hit, after, "b")


def test_a_twentieth_of_users_with_five_points_more_wrong_answers_fails() -> None:
    base, new = few(1000, 0.05, 0.05)
    outcome = held_to(new, base)
    states = {judged.metric: judged.state for judged in outcome.judged}
    assert states == {rule.metric: "fail" if rule.role == "tail" else "pass" for rule in RULES if rule.blocks}
    (worst,) = (judged for judged in outcome.judged if judged.metric == "worst_users")
    assert worst.mean == pytest.approx(0.05, abs=0.005)
    assert outcome.state == "fail"


def test_harm_to_few_is_found_beside_gains_of_others() -> None:
    base, new = few(1000, 0.05, 0.05)
    wrong = new.wrong.reshape(1000, -1).copy()
    wrong[-100:] &= np.random.default_rng(1).random((100, 1000)) < 0.5
    assert held_to(made(new.hit.reshape(1000, -1), wrong, "c"), base).state == "fail"


def test_the_worst_of_what_is_noise_are_not_harmed() -> None:
    """The worst 5 % of all harms of such noise are 1.4 points worse, though nobody is."""
    base, new = few(1000, 0.0, 0.0, noise=300)
    outcome = held_to(new, base, rule("worst_users"))
    harm = (new.counts["wrong"] - base.counts["wrong"]) / 1000
    assert np.sort(harm)[-50:].mean() > 0.012
    assert abs(outcome.judged[0].mean) < 0.003
    assert outcome.state == "pass"


# ---------------------------------------------------------------------------------------------- the world


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"config": {"simulator": {"rated_share": 0.5}}}, "simulator.rated_share: 0.2 -> 0.5"),
        ({"config": {"utility": {"wrong": 2.0, "usd": 0.0, "second": 0.0, "offer": 0.0}}}, "utility.wrong: 1.0 -> 2.0"),
        ({"compositions": {"skg": {"llm": {"right": 0.95}}}}, "llm.right: 0.9 -> 0.95"),
        ({"compositions": {"skg": {"hit_latency_ms": 10}}}, "hit_latency_ms: 50 -> 10"),
        ({"data": {"simulator": "other"}}, 'data.simulator: null -> "other"'),
    ],
)
def test_a_change_of_the_world_is_no_verdict_but_two_runs(change: dict[str, Any], key: str) -> None:
    base = simulated(worse([50]))
    new = replace(worse([50]), made=merged(base.made, {**change, "overrides": ["experiment=gate", "policy=never"]}))
    with pytest.raises(UsageError, match="is of another world") as error:
        held_to(new, base)
    lines = str(error.value).splitlines()
    assert lines[1].strip() == key
    runs = [line.strip() for line in lines if " run " in line]
    name, value = key.partition(": ")[0], key.partition(" -> ")[2]
    assert runs[1] == "python -m skg_bench run experiment=gate policy=never out=runs/new_system"
    changes = "" if name.startswith("data") else f"{name}={value} "
    assert runs[0] == f"python -m skg_bench run experiment=gate {changes}out=runs/old_system"


def simulated(panel: Panel) -> Panel:
    """With a simulated LLM in the place of a real one."""
    llm = {"_target_": SIMULATED, "right": 0.9}
    return replace(panel, made=merged(panel.made, {"compositions": {"skg": {"llm": llm}}}))


def merged(node: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """`node` with nested values replaced."""
    return {
        **node,
        **{
            key: merged(node[key], value) if isinstance(value, dict) and isinstance(node.get(key), dict) else value
            for key, value in change.items()
        },
    }


def test_the_old_system_of_other_code_runs_in_a_checkout_of_its_commit() -> None:
    base = worse([50])
    new = replace(base, made=merged(base.made, {"code": "d", "config": {"simulator": {"rated_share": 0.5}}}))
    with pytest.raises(UsageError, match=r"git worktree add \.\./old_system c\n  \(cd \.\./old_system && python -m"):
        held_to(new, base)


def test_a_component_of_the_world_is_replaced_whole() -> None:
    base, new = worse([50]), worse([50])
    old, other = ["simulator=a", "simulator.rated_share=0.2", "policy=never"], ["simulator=b", "policy=always"]
    targets = [{"config": {"simulator": {"_target_": target}}} for target in ("x.A", "x.B")]
    base = replace(base, made=merged(base.made, {**targets[0], "overrides": old}))
    new = replace(new, made=merged(new.made, {**targets[1], "overrides": other}))
    with pytest.raises(UsageError, match=r"run policy=never simulator=b out=runs/old_system\n"):
        held_to(new, base)


def test_another_model_prompt_or_router_is_another_system() -> None:
    base = worse([50])
    real = {"_target_": "package.Endpoint", "model": "a"}
    before = replace(base, made=merged(base.made, {"compositions": {"skg": {"llm": real}}}))
    after = replace(before, made=merged(before.made, {"compositions": {"skg": {"llm": {"model": "b"}, "router": {}}}}))
    assert held_to(after, before).state == "pass"


@pytest.mark.parametrize("name", ["events", "intent", "answerable"])
def test_events_and_truth_belong_to_the_world(name: str) -> None:
    base = worse([50])
    with pytest.raises(UsageError, match=f"differs in\n  (events: what users bring|truth: the column {name})"):
        held_to(replace(base, digests={**base.digests, name: "other"}), base)


def test_code_of_the_world_shows_before_the_first_hit() -> None:
    """A user's first turns, which every system leaves to the LLM, show other answers or ratings."""
    base = simulated(worse([50]))
    wrong, rated = base.wrong.copy(), base.rated.copy()
    wrong[60], rated[70] = True, 3
    digests = {**base.digests, "answer_correct": "other"}
    with pytest.raises(UsageError, match="what the LLM answers rightly: 1 of 90,000 turns before a user's first hit"):
        held_to(replace(base, wrong=wrong, digests=digests), base)
    with pytest.raises(UsageError, match="how users rate: 1 of 90,000 turns before a user's first hit"):
        held_to(replace(base, rated=rated, digests=digests), base)
    wrong = base.wrong.copy()
    wrong[950] = True  # a hit: the system's
    assert not held_to(replace(base, wrong=wrong, digests=digests), base).same


# ---------------------------------------------------------------------------------------------- several references


def test_limits_are_corrected_for_the_metrics_of_all_references() -> None:
    base, new = worse([50]), worse([51, 52])
    reference = Reference("baseline", base, RULES, "a")
    (alone,), both = hold(new, [reference]), hold(new, [reference, Reference("anchor", base, RULES, "b")])
    assert [held.which for held in both] == ["baseline", "anchor"]
    for one, two in zip(alone.judged[:2], both[0].judged[:2], strict=True):
        assert two.lower < one.lower < one.mean
        assert two.upper == one.upper


# ---------------------------------------------------------------------------------------------- read from a run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("runs") / "a", users=12, weeks=2, arms={"skg": World(), **ANCHORS})


def test_digests_do_not_depend_on_the_order_of_a_dictionary(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "b"
    shutil.copytree(run.path, other)
    (file,) = Run(other).shards("turns", "skg")
    whole = pq.read_table(file, partitioning=None)
    plain = [pc.cast(pa.string()) if pa.types.is_dictionary(pc.type) else pc for pc in whole.columns]
    mixed = [
        column.dictionary_encode() if pa.types.is_dictionary(old.type) else column
        for old, column in zip(whole.columns, plain, strict=True)
    ]
    monkeypatch.setattr(shards, "canonical", lambda table: table)
    rewritten(file, lambda _: pa.table(mixed, whole.schema))
    assert panel(Run(other), "skg").digests == panel(run, "skg").digests


def test_every_column_has_a_digest_of_its_own_that_a_changed_value_changes(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "b"
    shutil.copytree(run.path, other)
    shard = Run(other).shards("turns", "skg")[0]
    table = pq.read_table(shard, partitioning=None)
    before = panel(run, "skg")
    for name, index, value in (("skill_score", 3, 0.123), ("answer_correct", 5, None), ("book_hash", 0, b"x" * 16)):
        values = table[name].to_pylist()
        values[index] = (not values[index]) if value is None else value
        at = table.schema.get_field_index(name)
        changed = table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))
        rewritten(shard, lambda _, changed=changed: changed)
        after = panel(Run(other), "skg")
        assert [key for key in before.digests if before.digests[key] != after.digests[key]] == [name]
    assert EVENTS_DIGEST in before.digests


def test_totals_are_those_of_the_turns(run: Run) -> None:
    skg_panel = panel(run, "skg")
    table = run.turns("skg").to_pandas()
    assert skg_panel.counts["hit"].tolist() == (~table.fallback_to_llm).groupby(table.user).sum().tolist()
    assert skg_panel.counts["cost"] == pytest.approx(table.groupby("user").cost_usd.sum().to_numpy(), rel=1e-8)
    assert skg_panel.turns.tolist() == table.groupby("user").size().tolist()
    assert skg_panel.wrong.tolist() == (~table.answer_correct).tolist()
    assert set(skg_panel.made["compositions"]) == {"skg"}


def test_an_arm_that_the_run_lacks_and_an_unfinished_run_are_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no arm 'live', which the baseline gates; it has skg, never, oracle"):
        panel(run, "live")
    unfinished = Run(run.path)
    unfinished.manifest["incomplete"] = True
    with pytest.raises(UsageError, match="unfinished"):
        panel(unfinished, "skg")


def test_a_user_with_a_single_hit_before_and_after_has_a_share_of_wrong_hits() -> None:
    hit = np.zeros((60, 10), np.bool_)
    hit[:40, 0] = True  # the others have none
    wrong = hit & (np.arange(60) < 10)[:, None]
    per_hit = Rule("err_per_hit", "errors", "lower", 0.01)
    (harm,) = held_to(made(hit, wrong, "after"), made(hit, hit & False, "before"), per_hit).harms
    assert (len(harm.each), harm.excluded) == (40, 20)
    assert harm.each.mean() == pytest.approx(10 / 40)
