"""Arms that may be stepped together, and that being stepped together changes nothing for any of them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.core.batch import NOTHING, Batch
from skg_bench.core.types import Curator, Observation, Policy
from skg_bench.curator.frozen import Frozen
from skg_bench.curator.none import NoLearning
from skg_bench.curator.oracle import RightAnswers as OracleCurator
from skg_bench.curator.skg import SKG
from skg_bench.engine.cohort import Setting, run_cohort
from skg_bench.engine.logbook import Logbook
from skg_bench.engine.plan import Arm, Fork, Plan
from skg_bench.engine.signals import GROUPS, Signals
from skg_bench.engine.stack import stacked, stacks
from skg_bench.engine.vectors import Rows
from skg_bench.llm.simulated import Simulated
from skg_bench.policy.always import Always
from skg_bench.policy.epsilon_threshold import EpsilonThreshold
from skg_bench.policy.threshold import Threshold
from skg_bench.reranker.identity import Identity
from skg_bench.reranker.linear import Linear
from skg_bench.router.exact import Exact
from skg_bench.router.maxsim import MaxSim
from tests.core import samples
from tests.policy.test_policies import candidates

PAPER = SKG("any", 0.6, "ok", 3, 60)
SIGNALS = Signals(0.6, 0.2, 0.2, 1.0, 1.0, 30, tuple(GROUPS))
LLM = Simulated(0.9, 0.93, 400, 60, 1.3, 120.0, 0.6, 3.0, 15.0, 2000.0, 0.4, 50.0)
ARM = Arm("skg", MaxSim(5), Linear(1.0), Threshold(0.5), PAPER, LLM, SIGNALS, "stored", 50, True, 1, False)

TOGETHER: list[dict[str, Any]] = [
    {"name": "other"},
    {"policy": Always()},
    {"curator": Frozen(PAPER, 9, "all")},
    {"name": "other", "policy": EpsilonThreshold(0.5, 0.1), "curator": NoLearning()},
    {"fork": Fork(ARM, 9), "policy": Always()},
    {"fork": Fork(replace(ARM, name="other", fork=Fork(ARM, 5), policy=Always()), 9), "curator": NoLearning()},
    {"fork": Fork(ARM, 9), "book": "donor", "curator": NoLearning()},
    {"fork": Fork(replace(ARM, router=Exact(5)), 0)},  # nothing of the other arm is left
]
APART: list[dict[str, Any]] = [
    {"router": MaxSim(6)},
    {"router": Exact(5)},
    {"reranker": Linear(2.0)},
    {"reranker": Identity()},
    {"llm": replace(LLM, right=0.8)},
    {"signals": replace(SIGNALS, half_life_days=None)},
    {"serving": "prompted"},
    {"refit_every": 51},
    {"refit_on_capture": False},
    {"refit_apart": 25},
    {"decline_is_miss": True},
    {"curator": OracleCurator()},  # sees the truth
    {"scope": "pool"},
    {"pool": 50},
    {"fork": Fork(ARM, 9), "router": Exact(5)},
    {"fork": Fork(replace(ARM, router=Exact(5)), 9)},
    {"fork": Fork(replace(ARM, curator=OracleCurator()), 9)},
    {"fork": Fork(ARM, 9), "book": "hindsight", "curator": NoLearning()},  # goes through its turns twice
]


@pytest.mark.parametrize("change", TOGETHER, ids=str)
def test_arms_that_differ_in_name_policy_and_curator_share_a_stack(change: dict[str, Any]) -> None:
    assert stacks([ARM, replace(ARM, **change)]) == [[0, 1]]


@pytest.mark.parametrize("change", APART, ids=str)
def test_arms_that_differ_in_anything_else_do_not(change: dict[str, Any]) -> None:
    assert stacks([ARM, replace(ARM, **change)]) == [[0], [1]]


def test_every_field_of_an_arm_is_known_to_part_arms_or_not_to() -> None:
    changed = {key for change in (*TOGETHER, *APART) for key in change}
    assert changed == set(Arm.__dataclass_fields__)


def test_each_arm_is_in_one_stack_in_order() -> None:
    arms = [replace(ARM, name=str(i), router=MaxSim(5 + i % 3)) for i in range(8)]
    assert stacks(arms) == [[0, 3, 6], [1, 4, 7], [2, 5]]
    assert stacks([]) == []
    assert stacked(arms[:1]) is arms[0]


def test_a_row_of_a_stack_is_decided_by_its_own_arm() -> None:
    policies: list[Policy] = [Threshold(0.5), Always(), Threshold(0.5), EpsilonThreshold(0.4, 0.5)]
    stack = stacked([replace(ARM, name=str(i), policy=p) for i, p in enumerate(policies)])
    c, draws = candidates(0, b=40), samples.draws(np.random.default_rng(0), 40)
    made = stack.policy.choose(c, draws)
    for j, policy in enumerate(policies):
        alone = policy.choose(c, draws)
        for field in ("place", "propensity", "explored"):
            assert np.array_equal(getattr(made, field)[j::4], getattr(alone, field)[j::4])
    assert not np.array_equal(made.place, Threshold(0.5).choose(c, draws).place)


def test_a_stack_answers_for_each_arm_whether_it_learns() -> None:
    curators: list[Curator] = [PAPER, Frozen(PAPER, 9, "all"), NoLearning(), Frozen(PAPER, 9, "book")]
    stack = stacked([replace(ARM, name=str(i), curator=c) for i, c in enumerate(curators)])
    assert np.asarray(stack.curator.learns(8)).tolist() == [True, True, False, True]
    assert np.asarray(stack.curator.learns(9)).tolist() == [True, False, False, True]
    assert list(stack.curator.reasons) == list(PAPER.reasons)


def test_a_stack_with_forks_counts_its_reasons_in_the_same_way_before_and_after() -> None:
    arms = [ARM, replace(ARM, name="other", curator=OracleCurator(), fork=Fork(ARM, 9))]
    before, after = stacked(arms, 8), stacked(arms, 9)
    assert (
        list(before.curator.reasons)
        == list(after.curator.reasons)
        == list(dict.fromkeys([*PAPER.reasons, *OracleCurator.reasons]))
    )
    assert (before.fork, before.book) == (None, "own")


def test_a_stack_whose_curators_do_nothing_does_nothing() -> None:
    stack = stacked([replace(ARM, curator=NoLearning()), replace(ARM, name="other", curator=NoLearning())])
    rng = np.random.default_rng(0)
    books, nobody = samples.ragged(rng, 4, 9), np.full(4, -1, np.int32)
    no = np.zeros(4, np.bool_)
    past = samples.history(rng, 4, turns=3)
    seen = Observation(np.full(4, samples.NOW), 3, nobody * 0, no, nobody, np.zeros(4), nobody, *past, None)
    late: Any = None
    assert stack.curator.curate(seen, nobody, nobody, late, books) is NOTHING
    assert isinstance(NOTHING, Batch)


# ------------------------------------------------------------------------------------------------ a whole run

ARMS = (
    "{skg: [], band: [curator.capture=band, curator.band_low=0.3],"
    " frozen: [curator=frozen, curator.at_turn=20, curator.freeze=book], deaf: [curator=none],"
    " epsilon: [policy=epsilon_threshold, policy.epsilon=0.3]}"
)


@pytest.fixture(scope="module")
def plan() -> Plan:
    dense = [
        "simulator.messages_per_day=6", "simulator.rated_share=0.6", "simulator.late_share=0.3",
        "simulator.late_hours=6", "simulator.concentration=3", "simulator.accept=0.9", "curator.unused_days=3",
        "curator.harmful_misses=1", "policy.threshold=0.4", "refit_every=10",
    ]  # fmt: skip
    return prepare(compose([*dense, "users=6", "weeks=2", "seed=3", f"arms={ARMS}", "reference=skg"])).plan


def world(plan: Plan) -> Setting:
    vectors = plan.embedder.embed(plan.simulator.messages)
    return Setting(plan.seed, plan.simulator, lambda: Rows(vectors), plan.weeks)


def logs(log: Logbook) -> list[dict[str, list[Any]]]:
    """The three tables, with words in place of codes, as each log has dictionaries of its own."""
    return [table.to_pydict() for table in (log._turn_table(), log._update_table(), log._feedback_table())]


@pytest.mark.req("K16")
def test_a_stacked_run_is_to_the_bit_that_of_each_arm_alone(plan: Plan) -> None:
    events = plan.simulator.population(plan.seed, np.arange(6, dtype=np.int32), 2)
    assert stacks(plan.arms) == [[0, 1, 2, 3, 4]]
    ticks: list[int] = []
    together = run_cohort(world(plan), plan.arms, events, 5, ticks.append)
    assert ticks[-1] == int(events.n.sum()) * 5
    sizes = {}
    for arm, stacked_log in zip(plan.arms, together, strict=True):
        (alone,) = run_cohort(world(plan), [arm], events, 5, lambda _made: None)
        assert stacked_log.arm == alone.arm == arm.name
        for name, column in alone.columns.items():
            assert stacked_log.columns[name].tobytes() == column.tobytes(), (arm.name, name)
        for one, other in zip(logs(stacked_log), logs(alone), strict=True):
            assert repr(one) == repr(other)  # NaN is itself
        sizes[arm.name] = int(alone.columns["book_size"].max()), int((alone.columns["skill"] >= 0).sum())
    assert sizes["band"] == sizes["deaf"] == (0, 0)  # neither can start from nothing
    assert sizes["skg"][0] > sizes["frozen"][0] > 0
    assert sizes["skg"][1] > 0
