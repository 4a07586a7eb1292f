"""Law 6: what is true, but nobody said, changes no decision."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow.compute as pc
import pytest

from skg_bench.assistant.pipeline.components import components
from skg_bench.core.world import World
from skg_bench.engine import step
from skg_bench.engine.plan import Plan
from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from tests.laws import world
from tests.laws.worlds_apart import Contrary, Lying, Remembering, redrawn

USERS = 24
TRUTH = {f.name for f in schema.turns(5) if f.metadata[b"truth"] == b"yes"}
RUN = ("procedure", "procedures")  # arms whose turns end as procedures do: tools take time, and nothing may come back
ENDED = {"serving", "skill", "matched_skill", "fallback_to_llm", "skill_score", "tokens_in"}


Told = tuple[Run, Plan, Remembering]


def told_again(out: Path, arm: str) -> Told:
    """A run of an arm, its plan, and what was said in it."""
    plan = world.plan(USERS, (arm,))
    memory = Remembering(plan.simulator)
    simulator = cast("World[Any]", memory)
    return world.carry_out(replace(plan, simulator=simulator), out, USERS, 256), plan, memory


def again(plan: Plan, simulator: object, out: Path) -> Run:
    """The run of a plan in another world."""
    return world.carry_out(replace(plan, simulator=cast("World[Any]", simulator)), out, USERS, 256)


@pytest.mark.parametrize("arm", world.BLIND)
def test_the_truth_is_another_the_world_draws_anew_and_no_decision_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arm: str
) -> None:
    """Both at once, where users say what they said: a decision that depended on either would be another one."""
    first, plan, memory = told_again(tmp_path / "first", arm)
    contrary = replace(plan.arms[0], llm=Contrary(plan.arms[0].llm))
    lies = replace(plan, arms=(contrary,))
    monkeypatch.setattr(step, "draws_of", redrawn())
    second = again(lies, Lying(plan.simulator, memory, 1), tmp_path / "second")

    differ = {difference.split()[-1] for difference in world.differences(first, second, range(USERS))}
    assert differ <= TRUTH | {"tokens_out", "cost_usd", "latency_ms"}
    assert {"intent", "request_type", "answer_correct", "latency_ms"} <= differ  # they were another truth, other draws
    if arm not in ("never", "band", "deaf", "exact"):
        assert "skill_correct" in differ
    assert pc.sum(first.turns(arm)["skill_learned"]).as_py() > 0 or arm in ("band", "deaf")


def test_the_world_draws_anew_from_an_event_on_and_nothing_changes_before(
    base: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arms = tuple(arm for arm in world.BLIND if arm != "mlp_pool")  # a pool is others' past
    plan, since = world.plan(USERS, arms), 20
    monkeypatch.setattr(step, "draws_of", redrawn(since))
    second = world.carry_out(plan, tmp_path / "second", USERS, 256)
    learning = {"learning_tokens_in", "learning_tokens_out", "learning_cost_usd"}  # of what was said of the turn
    drawn = {"tokens_out", "cost_usd", "latency_ms", "user_satisfaction", "offer", *learning, *TRUTH}
    after = {"skill_learned", "book_size", "book_version", "book_hash"}  # as they are after the turn
    for arm in arms:
        turns = [world.rows(run, "turns", arm, range(USERS)) for run in (base, second)]
        for column in turns[0].column_names:
            ended = ENDED if arm in RUN else set()
            last = since - (
                column in drawn | after | ended
            )  # at the event the decision is the same, what comes of it not
            a, b = (table.filter(pc.less_equal(table["turn"], last))[column] for table in turns)
            assert world.bits(a) == world.bits(b), (arm, column)
        assert not turns[0].equals(turns[1])
        updates = [world.rows(run, "updates", arm, range(USERS)) for run in (base, second)]
        a, b = (table.filter(pc.less(table["turn"], since)) for table in updates)
        assert a.equals(b), arm


def test_an_oracle_is_recognised_by_the_same_test(tmp_path: Path) -> None:
    """Else the test above could not fail."""
    first, plan, memory = told_again(tmp_path / "first", "oracle")
    second = again(plan, Lying(plan.simulator, memory, 1), tmp_path / "second")
    assert "oracle turns skill" in world.differences(first, second, range(USERS))


def test_only_oracles_see_the_truth() -> None:
    for arm in world.plan(1).arms:
        sees = {components(arm).router.sees_truth, components(arm).curator.sees_truth}
        assert sees == {arm.name == "oracle"}
