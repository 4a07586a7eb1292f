"""Law 6: what is true, but nobody said, changes no decision."""

from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pyarrow.compute as pc
import pytest

from skg_bench.assistant.pipeline.components import components
from skg_bench.assistant.pipeline.parts import Part
from skg_bench.assistant.pipeline.stack import Stack
from skg_bench.core.types import Query, Router, Shortlist, Skillbooks, TurnTruth
from skg_bench.core.world import World
from skg_bench.engine import step
from skg_bench.engine.ensembles import stacks
from skg_bench.engine.plan import Plan
from skg_bench.router.oracle import RightSkill
from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from tests.arms import changed
from tests.laws import world
from tests.laws.conftest import SOME
from tests.laws.worlds_apart import Contrary, Lying, Remembering, redrawn

TRUTH = {f.name for f in schema.turns(5) if f.metadata[b"truth"] == b"yes"}
RUN = ("procedure", "procedures")  # arms whose turns end as procedures do: tools take time, and nothing may come back
MODEL = {"tokens_out", "cost_usd", "latency_ms"}  # drawn of the model
ENDED = {"serving", "skill", "matched_skill", "fallback_to_llm", "skill_score", "tokens_in"}


Told = tuple[Run, Plan, Remembering]


def planned(*arms: str) -> Plan:
    """Some users of the dense world under these arms."""
    return replace(world.plan(SOME, arms), seed=world.EVEN)


def told_again(out: Path, *arms: str) -> Told:
    """A run of arms of one stack, its plan, and what was said in it."""
    plan = planned(*arms)
    assert len(stacks(plan.arms)) == 1
    memory = Remembering(plan.simulator)
    simulator = cast("World[Any]", memory)
    return world.carry_out(replace(plan, simulator=simulator), out, SOME, 1000), plan, memory


def again(plan: Plan, simulator: object, out: Path) -> Run:
    """The run of a plan in another world."""
    return world.carry_out(replace(plan, simulator=cast("World[Any]", simulator)), out, SOME, 1000)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[Told]:
    """A run of each stack of blind arms."""
    folder = tmp_path_factory.mktemp("told")
    names = [[world.BLIND[i] for i in stack] for stack in stacks(planned(*world.BLIND).arms)]
    return [told_again(folder / some[0], *some) for some in names]


def test_the_truth_is_another_the_world_draws_anew_and_no_decision_changes(tmp_path: Path, told: list[Told]) -> None:
    """Both at once, where users say what they said: a decision that depended on either would be another one."""
    for first, plan, memory in told:
        lies = replace(plan, arms=tuple(replace(arm, llm=Contrary(arm.llm)) for arm in plan.arms))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(step, "draws_of", redrawn())
            second = again(lies, Lying(plan.simulator, memory, 1), tmp_path / plan.arms[0].name)
        for arm in first.arms:
            check_blind(arm, first, second)


def check_blind(arm: str, first: Run, second: Run) -> None:
    """The arm decides the same in both, and they were another truth and other draws."""
    differ = {difference.split()[-1] for difference in world.differences(first, second, range(SOME), [arm])}
    assert differ <= TRUTH | MODEL, arm
    assert {"intent", "request_type", "answer_correct", "latency_ms"} <= differ, arm
    assert "skill_correct" in differ or arm in ("never", "band", "deaf", "exact"), arm
    assert pc.sum(first.turns(arm)["skill_learned"]).as_py() > 0 or arm in ("band", "deaf"), arm


@dataclass(frozen=True)
class Peeking:
    """A router that is no oracle, and takes the truth where it finds it."""

    router: Router
    sees_truth: ClassVar[bool] = False

    @property
    def top_k(self) -> int:
        """Of the router inside."""
        return self.router.top_k

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """Of the router inside, unless the truth is there."""
        return self.router.route(query, books) if query.truth is None else RightSkill(near=False).route(query, books)


MIXED = ("skg", "prompted", "procedure", "exact", "everything", "oracle")


def beside_an_oracle(out: Path) -> set[str]:
    """Columns of blind arms in one stack with an oracle that differ where the truth is another."""
    plan = planned(*MIXED)
    arms = [arm if arm.name == "oracle" else changed(arm, router=Peeking(components(arm).router)) for arm in plan.arms]
    plan = replace(plan, arms=tuple(arms))
    assert len(stacks(plan.arms)) == 1
    memory = Remembering(plan.simulator)
    first = again(plan, memory, out / "first")
    lies = replace(plan, arms=tuple(replace(arm, llm=Contrary(arm.llm)) for arm in arms))
    second = again(lies, Lying(plan.simulator, memory, 1), out / "second")
    differences = world.differences(first, second, range(SOME), MIXED[:-1])
    return {difference.split()[-1] for difference in differences}


def test_blind_arms_beside_an_oracle_decide_the_same_where_the_truth_is_another(tmp_path: Path) -> None:
    differ = beside_an_oracle(tmp_path)
    assert {"intent", "request_type", "answer_correct", "skill_correct"} <= differ <= TRUTH | MODEL


def test_truth_that_is_left_in_the_query_of_a_blind_arm_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the test above could not fail."""
    truth_for, seeing = Stack.truth_for, SimpleNamespace(sees_truth=True)

    def left(stack: Stack, part: Part, truth: TurnTruth | None, books: Skillbooks) -> TurnTruth | None:
        return truth_for(stack, replace(part, component=seeing), truth, books)

    monkeypatch.setattr(Stack, "truth_for", left)
    monkeypatch.setattr(Stack, "oracles", property(lambda stack: tuple(range(len(stack.arms)))))
    with pytest.raises((AssertionError, KeyError)):  # an offer at an event at which nobody was asked before
        assert beside_an_oracle(tmp_path) <= TRUTH | MODEL


def test_the_world_draws_anew_from_an_event_on_and_nothing_changes_before(
    told: list[Told], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arms = tuple(arm for arm in world.BLIND if arm != "mlp_pool")  # a pool is others' past
    before = {arm: first for first, _, _ in told for arm in first.arms}
    plan, since = planned(*arms), 20
    monkeypatch.setattr(step, "draws_of", redrawn(since))
    second = world.carry_out(plan, tmp_path / "second", SOME, 256)
    learning = {"learning_tokens_in", "learning_tokens_out", "learning_cost_usd"}  # of what was said of the turn
    drawn = {"tokens_out", "cost_usd", "latency_ms", "user_satisfaction", "offer", *learning, *TRUTH}
    after = {"skill_learned", "book_size", "book_version", "book_hash"}  # as they are after the turn
    for arm in arms:
        turns = [world.rows(run, "turns", arm, range(SOME)) for run in (before[arm], second)]
        for column in turns[0].column_names:
            ended = ENDED if arm in RUN else set()
            last = since - (
                column in drawn | after | ended
            )  # at the event the decision is the same, what comes of it not
            a, b = (table.filter(pc.less_equal(table["turn"], last))[column] for table in turns)
            assert world.bits(a) == world.bits(b), (arm, column)
        assert not turns[0].equals(turns[1])
        updates = [world.rows(run, "updates", arm, range(SOME)) for run in (before[arm], second)]
        a, b = (table.filter(pc.less(table["turn"], since)) for table in updates)
        assert a.equals(b), arm


def test_an_oracle_is_recognised_by_the_same_test(tmp_path: Path) -> None:
    """Else the test above could not fail."""
    first, plan, memory = told_again(tmp_path / "first", "oracle")
    second = again(plan, Lying(plan.simulator, memory, 1), tmp_path / "second")
    assert "oracle turns skill" in world.differences(first, second, range(SOME))


def test_only_oracles_see_the_truth() -> None:
    for arm in world.plan(1).arms:
        sees = {components(arm).router.sees_truth, components(arm).curator.sees_truth}
        assert sees == {arm.name == "oracle"}
