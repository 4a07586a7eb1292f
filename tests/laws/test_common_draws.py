"""Laws 2 and 3: arms meet the same events, and in the same situation the same random draws."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow.compute as pc
import pytest

from skg_bench.assistant.pipeline.components import components
from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.grid import I64
from skg_bench.core.types import Reranker, Scorer, TrainingRows
from skg_bench.core.world import Draws
from skg_bench.engine.scene import draws_of
from skg_bench.runfolder.run import Run
from tests.arms import changed
from tests.laws import world
from tests.laws.conftest import USERS

EVENT = ["user_msg_id", "message", "user", "turn", "time", "seed", "intent", "request_type", "answerable", "used_up"]
DRAWN = ["tokens_in", "tokens_out", "cost_usd", "latency_ms", "answer_correct"]


def columns(run: Run, arm: str, names: list[str]) -> dict[str, np.ndarray]:
    """Columns of a run's turns as arrays; text as objects."""
    table = run.turns(arm, names)
    return {
        n: np.array(table[n].to_pylist(), dtype=object) if n == "user_satisfaction" else table[n].to_numpy()
        for n in names
    }


def test_events_are_the_same_under_every_arm(base: Run) -> None:
    first = world.rows(base, "turns", "skg", range(USERS))
    for arm in world.ALL[1:]:
        other = world.rows(base, "turns", arm, range(USERS))
        assert [c for c in EVENT if world.bits(first[c]) != world.bits(other[c])] == []


def test_where_two_arms_do_the_same_they_have_the_same_draws(base: Run) -> None:
    by_arm = {
        arm: columns(base, arm, ["serving", "user_satisfaction", *DRAWN]) for arm in world.BLIND if arm != "answer"
    }
    for a, b in combinations(by_arm, 2):
        fell_back = (by_arm[a]["serving"] == "llm") & (by_arm[b]["serving"] == "llm")
        assert fell_back.sum() > 150
        judged = "vcache" in (a, b)  # it pays for comparisons of answers beside the LLM
        for column in [*(name for name in DRAWN if name != "cost_usd" or not judged), "user_satisfaction"]:
            assert (by_arm[a][column][fell_back] == by_arm[b][column][fell_back]).all(), (a, b, column)
    stored = (by_arm["skg"]["serving"] == "stored") & (by_arm["identity"]["serving"] == "stored")
    alike = stored & (by_arm["skg"]["answer_correct"] == by_arm["identity"]["answer_correct"])
    assert alike.sum() > 150


def test_ratings_follow_the_answer_and_not_the_arm(base: Run) -> None:
    """Two arms at one event: right answers never get a worse rating than wrong ones."""
    rank = {"ok": 0, "partial": 1, "miss": 2, None: -1}
    names = ["user_satisfaction", "answer_correct", "time"]
    a, b = columns(base, "never", names), columns(base, "random", names)
    said_a, said_b = (np.array([rank[s] for s in x["user_satisfaction"]]) for x in (a, b))
    both = (said_a >= 0) & (said_b >= 0)
    better = both & a["answer_correct"] & ~b["answer_correct"]
    assert better.sum() > 200
    assert (said_a[better] <= said_b[better]).all()
    assert (said_a[better] < said_b[better]).mean() > 0.5


@pytest.mark.parametrize("first", [0, 64, 1000])
def test_the_draws_of_a_turn_are_those_of_its_key(first: int) -> None:
    keys = key(3, np.arange(50))
    for t in range(first, first + 5):
        draws = draws_of(keys, np.full(50, t, np.int32))
        for name in Draws.__dataclass_fields__:
            if name != "event":
                assert np.array_equal(getattr(draws, name), draw(keys, t, Purpose[name.upper()])), name


def test_frozen_arms_are_their_live_arm_until_they_freeze(base: Run) -> None:
    live = world.rows(base, "turns", "skg", range(USERS))
    before = pc.less(live["turn"], world.FREEZE)
    for arm in ("frozen_book", "frozen_scorer", "frozen_all"):
        frozen = world.rows(base, "turns", arm, range(USERS))
        for column in live.column_names:
            if column != "arm":
                assert world.bits(live[column].filter(before)) == world.bits(frozen[column].filter(before)), column
        updates = base.updates(arm)
        later = updates.filter(pc.greater_equal(updates["turn"], world.FREEZE))
        assert set(later["op"].cast("string").to_pylist()) == (set() if arm == "frozen_all" else {"TAG"})
        offers = frozen.filter(pc.greater_equal(frozen["turn"], world.FREEZE))["offer"]
        assert offers.null_count == len(offers)


@dataclass(frozen=True)
class Counting:
    """A reranker that keeps how many rated turns each fit was given."""

    reranker: Reranker
    fits: list[int]
    window: ClassVar[int] = 0

    def start(self, n_users: int, features: Sequence[str]) -> Scorer | None:
        return self.reranker.start(n_users, features)

    def fit(self, scorer: Scorer, rows: I64, training: TrainingRows) -> Scorer:
        self.fits.append(len(training.label))
        return self.reranker.fit(scorer, rows, training)


@pytest.mark.req("K19")
def test_the_scorer_goes_on_learning_only_if_the_book_alone_is_frozen(tmp_path: Path) -> None:
    taught = {}
    for arm in ("skg", "frozen_book", "frozen_scorer", "frozen_all"):
        plan = world.plan(40, (arm,))
        counting = Counting(components(plan.arms[0]).reranker, [])
        counted = replace(plan, arms=(changed(plan.arms[0], reranker=counting),))
        world.carry_out(counted, tmp_path / arm, 40, 256)
        taught[arm] = sum(counting.fits)
    assert taught["frozen_scorer"] == taught["frozen_all"] > 0
    assert taught["frozen_scorer"] < taught["frozen_book"] < taught["skg"]
