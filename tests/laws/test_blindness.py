"""Law 6: what is true, but nobody said, changes no decision."""

from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pytest

from skg_bench.core import schema
from tests.laws import world
from tests.laws.worlds_apart import Contrary, Lying, Remembering

USERS = 24
TRUTH = {f.name for f in schema.turns(5) if f.metadata[b"truth"] == b"yes"}


@pytest.mark.parametrize("arm", world.BLIND)
def test_the_truth_can_be_shuffled_and_no_decision_changes(tmp_path: Path, arm: str) -> None:
    plan = world.plan(USERS, (arm,))
    memory = Remembering(plan.simulator)
    first = world.carry_out(replace(plan, simulator=memory), tmp_path / "first", USERS, 256)
    contrary = replace(plan.arms[0], llm=Contrary(plan.arms[0].llm))
    lies = replace(plan, simulator=Lying(plan.simulator, memory, 1), arms=(contrary,))
    second = world.carry_out(lies, tmp_path / "second", USERS, 256)

    differ = {difference.split()[-1] for difference in world.differences(first, second, range(USERS))}
    assert differ <= TRUTH
    assert {"intent", "request_type", "answer_correct"} <= differ  # it was another truth
    if arm not in ("never", "band", "deaf", "exact"):
        assert "skill_correct" in differ
    assert pc.sum(first.turns(arm)["skill_learned"]).as_py() > 0 or arm in ("band", "deaf")


def test_an_oracle_is_recognised_by_the_same_test(tmp_path: Path) -> None:
    """Else the test above could not fail."""
    plan = world.plan(USERS, ("oracle",))
    memory = Remembering(plan.simulator)
    first = world.carry_out(replace(plan, simulator=memory), tmp_path / "first", USERS, 256)
    lies = replace(plan, simulator=Lying(plan.simulator, memory, 1))
    second = world.carry_out(lies, tmp_path / "second", USERS, 256)
    assert "oracle turns skill" in world.differences(first, second, range(USERS))


def test_only_oracles_see_the_truth() -> None:
    for arm in world.plan(1).arms:
        sees = {arm.router.sees_truth, arm.curator.sees_truth}
        assert sees == {arm.name == "oracle"}
