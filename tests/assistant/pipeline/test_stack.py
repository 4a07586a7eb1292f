"""Arms that may be stepped together, and that being stepped together changes nothing for any of them."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.assistant.pipeline import parts
from skg_bench.assistant.pipeline import stack as stack_module
from skg_bench.assistant.pipeline.components import AT_ONCE, Components
from skg_bench.assistant.pipeline.own_rows import OwnRows
from skg_bench.assistant.pipeline.seeding import SeedBook
from skg_bench.assistant.pipeline.signals import GROUPS, Signals
from skg_bench.assistant.pipeline.signs import Signs
from skg_bench.assistant.pipeline.stack import Stack, stacked
from skg_bench.core.arms import Arm, Fork
from skg_bench.core.batch import NO_OPERATIONS, Batch
from skg_bench.core.deciding import Candidates, Policy
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import F64, Bool
from skg_bench.core.types import Observation, Query, Shortlist, Skillbooks
from skg_bench.core.world import Reaction
from skg_bench.curator.none import NoLearning
from skg_bench.curator.oracle import RightAnswers as OracleCurator
from skg_bench.curator.skg import SKG
from skg_bench.engine.cohort import Setting, cohort_of, run_cohort
from skg_bench.engine.ensembles import stacks
from skg_bench.engine.logbook import Logbook
from skg_bench.engine.plan import Plan
from skg_bench.engine.vectors import Rows
from skg_bench.llm.simulated import Simulated
from skg_bench.policy.always import Always
from skg_bench.policy.epsilon_threshold import EpsilonThreshold
from skg_bench.policy.exp4 import Exp4
from skg_bench.policy.threshold import Threshold
from skg_bench.policy.vcache import VCache
from skg_bench.reranker.identity import Identity
from skg_bench.reranker.linear import Linear
from skg_bench.router.exact import Exact
from skg_bench.router.maxsim import MaxSim
from skg_bench.simulator.advice.levels import OUTCOMES
from tests.arms import changed, pipeline_arm
from tests.core import samples
from tests.policy.test_policies import candidates

PAPER = SKG("any", 0.6, "ok", 3, 60)
SIGNALS = Signals(0.6, 0.2, 0.2, 1.0, 1.0, 30, tuple(GROUPS))
SIGNS = Signs(dict.fromkeys(OUTCOMES, 0), {}, ("immediate",), "sum")
LLM = Simulated(0.9, 0.93, 0.3, 400, 60, 1.3, 120.0, 0.6, 3.0, 15.0, 2000.0, 0.4)
PARTS: Any = (MaxSim(5), Linear(1.0), Threshold(0.5), PAPER, SIGNALS, "stored", "type", 50, True, 1, False)
ARM = pipeline_arm("skg", LLM, 50.0, *PARTS)

EXP4 = Exp4(0.5, ((0.6, 0.2, 0.2), (1.0, 0.0, 0.0)), 0.05, 0.1, 0.85)

TOGETHER: list[dict[str, Any]] = [
    {"name": "other"},
    {"policy": Always()},
    {"freeze": "all", "freeze_at": 9},
    {"policy": VCache(0.3, 1)},
    {"policy": EXP4},
    {"name": "other", "policy": EpsilonThreshold(0.5, 0.1), "curator": NoLearning()},
    {"fork": Fork(ARM, 9), "policy": Always()},
    {"fork": Fork(changed(ARM, name="other", fork=Fork(ARM, 5), policy=Always()), 9), "curator": NoLearning()},
    {"fork": Fork(ARM, 9), "book": "donor", "curator": NoLearning()},
    {"fork": Fork(changed(ARM, router=Exact(5)), 0)},  # nothing of the other arm is left
    {"router": MaxSim(6)},
    {"router": Exact(5)},
    {"serving": "prompted"},
    {"named_by": "intent"},
    {"curator": OracleCurator()},  # sees the truth
    {"fork": Fork(ARM, 9), "router": Exact(5)},
    {"fork": Fork(changed(ARM, router=Exact(5)), 9)},
    {"fork": Fork(changed(ARM, curator=OracleCurator()), 9)},
]
APART: list[dict[str, Any]] = [
    {"reranker": Linear(2.0)},
    {"reranker": Identity()},
    {"llm": replace(LLM, right=0.8)},
    {"signals": replace(SIGNALS, half_life_days=None)},
    {"hit_latency_ms": 60.0},
    {"mood": "fresh"},
    {"refit_every": 51},
    {"refit_on_capture": False},
    {"refit_apart": 25},
    {"decline_is_miss": True},
    {"scope": "pool"},
    {"pool": 50},
    {"signs": SIGNS},
    {"seeds": SeedBook(())},
    {"jobs": replace(AT_ONCE, spread=1.0)},
    {"fork": Fork(ARM, 9), "reranker": Linear(2.0)},
    {"fork": Fork(changed(ARM, reranker=Linear(2.0)), 9)},
    {"fork": Fork(ARM, 9), "book": "hindsight", "curator": NoLearning()},  # goes through its turns twice
]


@pytest.mark.parametrize("change", TOGETHER, ids=str)
def test_arms_that_differ_in_what_has_rows_of_its_own_share_a_stack(change: dict[str, Any]) -> None:
    assert stacks([ARM, changed(ARM, **change)]) == [[0, 1]]


@pytest.mark.parametrize("change", APART, ids=str)
def test_arms_that_differ_in_anything_else_do_not(change: dict[str, Any]) -> None:
    assert stacks([ARM, changed(ARM, **change)]) == [[0], [1]]


def test_every_field_of_an_arm_is_known_to_part_arms_or_not_to() -> None:
    keys = {key for change in (*TOGETHER, *APART) for key in change}
    assert keys == {*Arm.__dataclass_fields__, *Components.__dataclass_fields__} - {"assistant"}


def test_each_arm_is_in_one_stack_in_order() -> None:
    arms = [changed(ARM, name=str(i), reranker=Linear(1.0 + i % 3)) for i in range(8)]
    assert stacks(arms) == [[0, 3, 6], [1, 4, 7], [2, 5]]
    assert stacks([]) == []
    assert stacked(arms[:1]).arms == (arms[0],)


def test_a_row_of_a_stack_is_decided_by_its_own_arm() -> None:
    policies: list[Policy[Any]] = [Threshold(0.5), Always(), Threshold(0.5), EpsilonThreshold(0.4, 0.5)]
    stack = stacked([changed(ARM, name=str(i), policy=p) for i, p in enumerate(policies)])
    assert [part.arms for part in stack.policies] == [(0, 2), (1,), (3,)]
    c = candidates(0, b=40)
    memories, _ = stack.start(40)
    share = stack.propensities(c, memories)
    for j, policy in enumerate(policies):
        assert np.array_equal(share[j::4], policy.propensities(c, None)[j::4])
    assert not np.array_equal(share, Threshold(0.5).propensities(c, None))


def test_a_policy_that_states_no_distribution_is_refused_by_name() -> None:
    class Careless(Threshold):
        def propensities(self, candidates: Candidates, state: None) -> F64:
            return 0.9 * super().propensities(candidates, state)

    stack = stacked([changed(ARM, policy=Careless(0.5))])
    with pytest.raises(UsageError, match=r"Careless.propensities gave rows with sums from 0\.9 to 0\.9; valid are"):
        stack.propensities(candidates(0, b=40), (None,))


def test_a_stack_answers_for_each_arm_whether_its_scorer_may_learn() -> None:
    frozen: list[dict[str, Any]] = [
        {}, {"freeze": "all", "freeze_at": 9}, {"curator": NoLearning()}, {"freeze": "book", "freeze_at": 9},
        {"freeze": "book+scorer", "freeze_at": 9},
    ]  # fmt: skip
    stack = stacked([changed(ARM, name=str(i), **f) for i, f in enumerate(frozen)])
    assert stack.refits(8).tolist() == [True, True, False, True, True]
    assert stack.refits(9).tolist() == [True, False, False, True, False]
    assert list(stack.reasons) == list(PAPER.reasons)


def test_a_stack_with_forks_counts_its_reasons_in_the_same_way_before_and_after() -> None:
    arms = [ARM, changed(ARM, name="other", curator=OracleCurator(), fork=Fork(ARM, 9))]
    before, after = stacked(arms, 8), stacked(arms, 9)
    assert list(before.reasons) == list(after.reasons) == list(dict.fromkeys([*PAPER.reasons, *OracleCurator.reasons]))


def test_equal_components_share_a_memory_only_if_they_began_at_the_same_turn() -> None:
    learner = changed(ARM, name="learner", policy=EXP4)
    late = changed(ARM, name="late", policy=EXP4, fork=Fork(ARM, 9))
    same = changed(ARM, name="same", policy=EXP4, fork=Fork(learner, 9))
    donor = changed(ARM, name="donor", policy=EXP4, fork=Fork(learner, 9), book="donor", curator=NoLearning())
    arms = [learner, late, same, donor]
    before, after = stacked(arms, 8), stacked(arms, 9)
    assert [(p.arms, p.since) for p in before.policies] == [((0, 2, 3), 0), ((1,), 0)]
    assert [(p.arms, p.since) for p in after.policies] == [((0, 2), 0), ((1, 3), 9)]
    memories, curators = before.start(12)
    for i, column in enumerate((memories[0].gained, memories[0].tried)):
        column[...] = 100 * i + np.arange(9)[:, None]
    carried, _ = after.carried(before, memories, curators, 8)  # the third user has left
    assert carried[0].gained[:, 0].tolist() == [0, 1, 3, 4]
    assert carried[0].tried[:, 0].tolist() == [100, 101, 103, 104]
    assert not carried[1].gained.any()
    assert len(carried[1].gained) == 4


def test_a_stack_whose_curators_do_nothing_does_nothing() -> None:
    stack = stacked([changed(ARM, curator=NoLearning()), changed(ARM, name="other", curator=NoLearning())])
    rng = np.random.default_rng(0)
    books, nobody = samples.ragged(rng, 4, 9), np.full(4, -1, np.int32)
    context = samples.context(rng, nobody * 0, books, turns=3)
    seen = Observation(
        np.full(4, samples.NOW), 3, nobody * 0, nobody, np.zeros(4), nobody, context
    )  # fmt: skip
    late = KnownFeedback(*np.zeros((5, 0), np.int32))
    states, batch = stack.curate(stack.views(seen, books), Reaction(nobody, nobody, nobody), late, (None,))
    assert (states, batch) == ((None,), NO_OPERATIONS)
    assert isinstance(NO_OPERATIONS, Batch)


# ------------------------------------------------------------------------------------------------ a whole run

USERS, TOP_K = np.arange(6, dtype=np.int32), 7

ARMS = (
    "{skg: [], band: [curator.capture=band, curator.band_low=0.3],"
    " frozen: [freeze=book, freeze_at=10], deaf: [curator=none],"
    " epsilon: [policy=epsilon_threshold, policy.epsilon=0.3], exact: [router=exact], last: [router=repeat_last],"
    " centroid: [router=centroid], bm25: [router=bm25, policy.threshold=0.2],"
    " prompted: [serving=prompted, router.top_k=7], everything: [curator=everything],"
    " procedure: [serving=procedure, named_by=intent], oracle: [router=oracle, curator=oracle, policy=always]}"
)


@pytest.fixture(scope="module")
def plan() -> Plan:
    dense = [
        "simulator.messages_per_day=4", "simulator.volume_spread=0.2", "simulator.active_low=1",
        "simulator.rated_share=0.6", "simulator.late_share=0.3",
        "simulator.late_hours=6", "simulator.concentration=3", "simulator.accept=0.9", "curator.unused_days=3",
        "curator.harmful_misses=1", "policy.threshold=0.4", "refit_every=10",
    ]  # fmt: skip
    return prepare(compose([*dense, "users=6", "weeks=1", "seed=3", f"arms={ARMS}", "reference=skg"])).plan


def world(plan: Plan) -> Setting:
    vectors = plan.embedder.embed(plan.simulator.messages)
    return Setting(plan.seed, plan.simulator, lambda: Rows(vectors), plan.weeks)


def logs(log: Logbook) -> list[dict[str, list[Any]]]:
    """The three tables, with words in place of codes, as each log has dictionaries of its own."""
    return [table.to_pydict() for table in (log._turn_table(), log._update_table(), log._feedback_table())]


def apart(plan: Plan, alone: Sequence[Logbook]) -> list[str]:
    """What differs between the arms of a plan in one stack and each alone."""
    together = run_cohort(world(plan), plan.arms, cohort_of(world(plan), USERS), TOP_K, lambda _made: None)
    differ = []
    for one, other in zip(together, alone, strict=True):
        assert one.arm == other.arm
        differ += [f"{one.arm} {name}" for name, column in other.columns.items()
                   if one.columns[name].tobytes() != column.tobytes()]  # fmt: skip
        differ += [f"{one.arm} log" for a, b in zip(logs(one), logs(other), strict=True) if repr(a) != repr(b)]
    return differ  # by text, as NaN is itself


@pytest.fixture(scope="module")
def alone(plan: Plan) -> list[Logbook]:
    """The logs of each arm of the plan, stepped alone."""
    cohort = cohort_of(world(plan), USERS)
    return [run_cohort(world(plan), [arm], cohort, TOP_K, lambda _made: None)[0] for arm in plan.arms]


@pytest.mark.req("K16")
def test_a_stacked_run_is_to_the_bit_that_of_each_arm_alone(plan: Plan, alone: list[Logbook]) -> None:
    assert stacks(plan.arms) == [list(range(len(plan.arms)))]
    assert apart(plan, alone) == []
    sizes = {
        log.arm: (int(log.columns["book_size"].max()), int((log.columns["skill"] >= 0).sum())) for log in alone
    }  # fmt: skip
    assert sizes["band"] == sizes["deaf"] == (0, 0)  # neither can start from nothing
    assert sizes["skg"][0] > sizes["frozen"][0] > 0
    assert all(hits > 0 for arm, (_, hits) in sizes.items() if arm not in ("band", "deaf"))


def test_arms_with_wide_books_are_routed_apart_to_the_same_bits(
    plan: Plan, alone: list[Logbook], monkeypatch: pytest.MonkeyPatch
) -> None:
    called: dict[tuple[int, ...], int] = {}
    rows = OwnRows.query

    def noted(own: OwnRows, *more: Any) -> Query:
        called[own.arms] = called.get(own.arms, 0) + 1
        return rows(own, *more)

    monkeypatch.setattr(OwnRows, "query", noted)
    together = apart(plan, alone)
    names = [arm.name for arm in plan.arms]
    everything, skg = names.index("everything"), names.index("skg")
    assert any({everything, skg} <= set(arms) for arms in called)
    called.clear()
    monkeypatch.setattr(parts, "_PADDING", 1)
    monkeypatch.setattr(stack_module, "_EVERY", 8)
    assert together == apart(plan, alone) == []
    assert any(everything in arms and skg not in arms for arms in called)


def test_a_stack_tells_how_many_turns_it_made(plan: Plan) -> None:
    cohort, ticks = cohort_of(world(plan), USERS), list[int]()
    run_cohort(world(plan), plan.arms[:2], cohort, TOP_K, ticks.append)
    assert ticks[-1] == int(cohort.n.sum()) * 2


def _beside(own: OwnRows) -> OwnRows:
    return OwnRows(tuple((j + 1) % own.n_arms for j in own.arms), own.n_arms, own.n_rows)


def _longer(books: Skillbooks, n: int) -> Skillbooks:
    return samples.with_examples(books, count=np.maximum(books.examples.count + np.int32(n), 0))


PLANTED: dict[str, tuple[type, str, Callable[[Any], Any]]] = {
    "books of another arm": (OwnRows, "books", lambda books: lambda own, of: books(_beside(own), of)),
    "padding that counts as an example": (OwnRows, "books", lambda books: lambda own, of: _longer(books(own, of), 1)),
    "a last example that does not count": (OwnRows, "books", lambda books: lambda own, of: _longer(books(own, of), -1)),
    "feedback of another arm": (OwnRows, "feedback", lambda heard: lambda own, known: heard(_beside(own), known)),
    "reactions of another arm": (OwnRows, "reaction", lambda told: lambda own, given: told(_beside(own), given)),
    "one serving for all": (Stack, "hits", lambda _hits: property(lambda stack: np.ones(len(stack.arms), np.int32))),
    "names of intents": (Stack, "by_intent", lambda _named: property(lambda stack: np.ones(len(stack.arms), np.bool_))),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_rows_of_another_arm_are_seen(
    plan: Plan, alone: list[Logbook], monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Else the test above could not fail."""
    kind, name, change = PLANTED[fault]
    monkeypatch.setattr(kind, name, change(getattr(kind, name)))
    with suppress(ValueError, IndexError, UsageError):  # of books that do not have the skills, or of texts unheard of
        assert apart(plan, alone)


@dataclass(frozen=True)
class Beyond:
    """A router that reads the row behind its own."""

    top_k: ClassVar[int] = 1
    sees_truth: ClassVar[bool] = False

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """Fails, where rows are the router's own."""
        return Shortlist(books.name[len(query.text) :][:1], books.uses[[len(query.text)]].astype(np.float64))


@dataclass(frozen=True)
class Short(Beyond):
    """A router that gives the shortlist of one row for all."""

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """Of the first row."""
        return Shortlist(np.full((1, 3), -1, np.int32), np.zeros((1, 3)))


@dataclass(frozen=True)
class Mute(SKG):
    """A curator that reads the text of one row for all."""

    def offers(self, seen: Observation, state: None) -> Bool:
        """Reads the first text."""
        seen.context.texts.read(seen.text[:1])
        return super().offers(seen, state)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"router": Short()}, r"test_stack\.Short\.route gave \(1, 3\) and \(1, 3\); valid is \[6, K\] for both"),
        (
            {"curator": Mute(**vars(PAPER))},
            r"test_stack\.Mute of arm 'second', user \d+, turn 0: read 1 texts of 6",
        ),
    ],
)
def test_a_part_that_gives_or_reads_too_few_rows_is_named(plan: Plan, change: dict[str, Any], words: str) -> None:
    arms = [plan.arms[0], changed(plan.arms[0], name="second", **change)]
    with pytest.raises(UsageError, match=words):
        run_cohort(world(plan), arms, cohort_of(world(plan), USERS), TOP_K, lambda _made: None)


@pytest.mark.parametrize("several", [False, True])
def test_a_router_that_reads_rows_beyond_its_own_is_named(plan: Plan, several: bool) -> None:
    arms = [changed(plan.arms[0], router=Beyond()), *plan.arms[1 : 1 + several]]
    with pytest.raises(IndexError, match=r"test_stack\.Beyond, which is given its own rows: index 6 is out of bounds"):
        run_cohort(world(plan), arms, cohort_of(world(plan), USERS), TOP_K, lambda _made: None)
