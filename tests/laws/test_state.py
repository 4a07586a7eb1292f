"""Law 1 for components with a memory: kept in their state, it is the user's own; kept anywhere else, that shows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from skg_bench.core.arms import Arm, Fork
from skg_bench.core.batch import Batch, part
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import I32, Bool
from skg_bench.core.types import Curator, Observation, Skillbooks
from skg_bench.core.world import Reaction
from skg_bench.curator.everything import Everything
from skg_bench.engine.plan import Plan
from skg_bench.runfolder.run import Run
from tests.arms import changed
from tests.laws import world

USERS = 24


@dataclass(frozen=True, slots=True)
class Count:
    """Answers of the LLM that a curator has seen."""

    seen: I32  # [B]


@dataclass(frozen=True)
class EveryThird:
    """Captures every third answer of the LLM to a user, and remembers the count in its state."""

    sees_truth: ClassVar[bool] = False
    reasons: ClassVar[Sequence[str]] = Everything.reasons

    def start(self, n: int) -> Count:
        return Count(np.zeros(n, np.int32))

    def offers(self, seen: Observation, state: Count) -> Bool:
        return np.zeros(len(seen.text), np.bool_)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: Count
    ) -> tuple[Count, Batch]:
        _, batch = Everything().curate(seen, reaction, known, books, None)
        state.seen[:] += seen.context.asks & ~seen.hit
        return state, part(batch, (batch.source < 0) | (state.seen[batch.row] % 3 == 0))


def plan(curator: Curator[Any], **fork: Any) -> Plan:
    """One arm with this curator."""
    made = world.plan(USERS, ("skg",))
    return replace(made, arms=(changed(made.arms[0], name="third", curator=curator, **fork),))


def run(made: Plan, out: Path, cohort: int) -> Run:
    return world.carry_out(made, out, USERS, cohort)


def test_a_memory_in_the_state_is_the_users_own(tmp_path: Path) -> None:
    large, small = (run(plan(EveryThird()), tmp_path / str(cohort), cohort) for cohort in (1000, 5))
    assert world.differences(large, small, range(USERS)) == []
    assert large.updates("third").num_rows > 100


def test_a_memory_is_the_same_alone_and_in_a_stack(tmp_path: Path) -> None:
    alone = run(plan(EveryThird()), tmp_path / "alone", 1000)
    beside = world.plan(USERS, ("everything", "always", "frozen_all"))
    stacked = replace(beside, arms=(*beside.arms, *plan(EveryThird()).arms))
    together = world.carry_out(stacked, tmp_path / "together", USERS, 1000)
    assert world.differences(alone, together, range(USERS), ["third"]) == []


def forked(trunk: Arm, arm: Arm, turn: int) -> Plan:
    made = plan(EveryThird())
    return replace(made, arms=(trunk, replace(arm, name="fork", fork=Fork(trunk, turn))))


def test_at_a_fork_an_equal_curator_keeps_its_memory_and_another_begins(tmp_path: Path) -> None:
    (arm,) = plan(EveryThird()).arms
    kept = run(forked(arm, arm, world.FORK), tmp_path / "kept", 1000)
    rows = [world.rows(kept, "updates", name, range(USERS)).drop_columns("arm") for name in ("third", "fork")]
    assert rows[0].equals(rows[1])

    other = changed(arm, name="other", curator=Everything())
    begun = run(forked(other, arm, world.FORK), tmp_path / "begun", 1000)
    turns = begun.turns("fork", ["user", "turn", "skill_learned", "fallback_to_llm"]).to_pandas()
    after = turns[turns["turn"] >= world.FORK]
    for _, user in after.groupby("user"):
        answers = user[user["fallback_to_llm"]]
        learned = np.flatnonzero(answers["skill_learned"])
        assert np.array_equal(learned, np.arange(2, len(answers), 3))  # the third from the fork on, the sixth, ...
