"""What is left of a run is cut into cohorts, pieces and shards so that every user of every arm is made once."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.engine import tasks
from skg_bench.engine.ensembles import stacks
from skg_bench.engine.pieces import Piece, apart
from skg_bench.engine.plan import Plan
from skg_bench.engine.tasks import Existing, Left, ours, tasks_left, waves
from skg_bench.runfolder import shards
from tests.laws import world

ARMS = ("skg", "frozen_all", "frequency")
USERS = 700


@pytest.fixture(scope="module")
def plan() -> Plan:
    return world.plan(USERS, ARMS)


def made(plan: Plan, todo: Left, existing: Existing) -> np.ndarray:
    """`[arms, users]`: how often each user of an arm is in a shard that is there or will be."""
    times = np.zeros((len(plan.arms), USERS), np.int64)
    here = [task for task in todo.tasks if task.becomes == "piece"]
    names = [tuple(plan.arms[arm].name for arm in task.arms) for task in here]
    pieces = [*existing.pieces, *(Piece(Path(f"{i}"), names[i], task.users) for i, task in enumerate(here))]
    for arm, shard in np.argwhere(existing.mine & ~existing.missing).tolist():
        times[arm, list(shards.users_of(shard, USERS))] += 1
    for task in todo.tasks:
        if task.becomes == "shards":
            assert sorted(task.users) == [u for k in np.unique(task.users // 256) for u in shards.users_of(k, USERS)]
            times[np.ix_(np.array(task.arms), task.users)] += 1
    for join in todo.joins:
        users = np.concatenate([piece.users for piece in apart(pieces, [plan.arms[arm].name for arm in join.arms])])
        inside = users[users // shards.SHARD_USERS == join.shard]
        assert sorted(inside) == list(shards.users_of(join.shard, USERS))
        times[np.ix_(np.array(join.arms), inside)] += 1
    return times


@given(
    st.integers(1, 2000),
    st.lists(st.booleans(), min_size=9, max_size=9),
    st.lists(st.tuples(st.sets(st.sampled_from(ARMS), min_size=1), st.sets(st.integers(0, USERS - 1), min_size=1))),
)
@settings(max_examples=100, deadline=None)
def test_every_user_of_every_arm_is_made_once(
    plan: Plan, cohort: int, there: list[bool], kept: list[tuple[set[str], set[int]]]
) -> None:
    missing = ~np.array(there).reshape(3, 3)
    counts = plan.simulator.count(plan.seed, np.arange(USERS, dtype=np.int32), plan.weeks)
    pieces = [Piece(Path("a"), tuple(sorted(arms)), np.array(sorted(users), np.int32)) for arms, users in kept]
    existing = Existing(np.ones((3, 3), np.bool_), missing, pieces)
    todo = tasks_left(plan, counts, existing, cohort)
    assert (made(plan, todo, existing) == 1).all()
    rest = sum(int(counts[task.users].sum()) * len(task.arms) for task in todo.tasks)
    assert todo.done + rest == todo.total == 3 * int(counts.sum())
    assert all(len(task.users) * len(task.arms) <= max(len(task.arms), 1.5 * cohort) for task in todo.tasks)


def test_a_cohort_that_has_a_checkpoint_stays_as_it_is(plan: Plan) -> None:
    counts = plan.simulator.count(plan.seed, np.arange(USERS, dtype=np.int32), plan.weeks)
    names = tuple(plan.arms[i].name for i in stacks(plan.arms)[0])
    ids = np.arange(3, 90, dtype=np.int32)
    every = np.ones((3, 3), np.bool_)
    todo = tasks_left(plan, counts, Existing(every, every, (), [(names, ids), (("nobody",), ids)]), 64)
    assert sum(np.array_equal(task.users, ids) for task in todo.tasks) == 1
    assert (made(plan, todo, Existing(every, every, ())) == 1).all()


def test_waves_are_apart_whole_windows_and_together_all(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.full(256 * 40, 1000, np.int32)
    mine = np.ones((2, 40), np.bool_)
    mine[1, 5:] = False
    every = list(waves(counts, mine))
    assert len(every) == 1
    monkeypatch.setattr(tasks, "_WAVE", 3_000_000)
    several = list(waves(counts, mine))
    assert [np.flatnonzero(wave[0])[[0, -1]].tolist() for wave in several] == [[0, 15], [16, 31], [32, 39]]
    assert np.array_equal(np.sum(several, axis=0), mine.astype(np.int64))


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 50])
def test_parts_are_apart_and_together_the_whole(plan: Plan, parts: int) -> None:
    masks = np.array([ours(plan, (i, parts)) for i in range(parts)])
    assert (masks.sum(axis=0) == 1).all()
    sizes = [mask.sum() for mask in masks]
    assert max(sizes) - min(sizes) <= 1
