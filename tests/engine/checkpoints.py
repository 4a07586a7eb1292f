"""Cohorts that are stopped between two turns, and go on elsewhere.

Runnable (`python -m tests.engine.checkpoints PATH TURN`): a process that leaves a checkpoint after turn TURN, and dies.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from skg_bench.core.arms import Arm
from skg_bench.core.grid import I32
from skg_bench.core.texts import Embedding
from skg_bench.engine.checkpoint import Keeper, Resumable
from skg_bench.engine.cohort import Cohort, Setting, cohort_of, run_cohort
from skg_bench.engine.ensembles import stacks
from skg_bench.engine.logbook import Logbook
from skg_bench.engine.plan import Plan
from skg_bench.engine.pools import fitted
from skg_bench.engine.relabel import Relabelled
from skg_bench.engine.vectors import Rows
from tests.laws import world

TOP_K = 20
TURNS = np.array([30, 26, 16, 9], np.int32)  # of each user: some leave early, and before forks
CASE = ("skg", "noting", "donor", "daring", "thompson", "exp4")


class Saving(Keeper):
    """Saves after the turns `after`, the how manieth of the rollout they are, each into a file of its own."""

    def __init__(self, path: Path, after: Sequence[int], then: Callable[[], None] = lambda: None) -> None:
        super().__init__(path, 0.0, lambda: 0.0)
        self.path, self.after, self.then, self.turns = path, after, then, 0

    def watch(self, log: Logbook, arms: Sequence[str], users: I32) -> Callable[[Resumable], None]:
        look = super().watch(log, arms, users)

        def now_and_then(rollout: Resumable) -> None:
            self.turns += 1
            if self.turns in self.after:
                look(rollout)
                self.path.rename(self.at(self.turns))
                self.then()

        return now_and_then

    def at(self, turn: int) -> Path:
        """The checkpoint after a turn."""
        return self.path.with_name(f"{self.path.name}.{turn}")


def settings(plan: Plan) -> Callable[[], Setting]:
    """Makes settings without written texts."""
    simulator = Relabelled(plan.simulator, plan.seed)
    vectors = plan.embedder.embed(simulator.messages, None)
    embedding = Embedding(lambda: vectors, plan.embedder)
    return lambda: Setting(plan.seed, simulator, lambda: Rows(vectors), plan.weeks, embedding)


def taught(plan: Plan, folder: Path) -> Plan:
    """With the scorers of pools, whose files are in `folder`."""
    vectors = plan.embedder.embed(plan.simulator.messages, None)
    pooled = fitted(replace(plan, simulator=Relabelled(plan.simulator, plan.seed)), folder, vectors)
    return replace(plan, arms=pooled.arms)


def stacked(plan: Plan) -> list[list[Arm]]:
    """Arms that are stepped together."""
    return [[plan.arms[i] for i in stack] for stack in stacks(plan.arms)]


def cohort(setting: Setting, users: int = len(TURNS)) -> Cohort:
    """Some users, whose turns end early."""
    made = cohort_of(setting, np.arange(users, dtype=np.int32))
    return made.until(np.minimum(made.n, TURNS[:users]))


def run(setting: Setting, arms: Sequence[Arm], keeper: Keeper | None = None, users: int = len(TURNS)) -> list[Logbook]:
    """All turns of the cohort."""
    return run_cohort(setting, arms, cohort(setting, users), TOP_K, lambda _: None, keeper=keeper)


def differences(logs: Sequence[Logbook], others: Sequence[Logbook]) -> Iterator[str]:
    """What is not the same to the bit."""
    for log, other in zip(logs, others, strict=True):
        if (log.arm, log.filled) != (other.arm, other.filled):
            yield f"{log.arm} {other.arm}"
        tables = {"turns": (log.columns, other.columns)}
        for name in ("updates", "feedbacks", "jobs"):
            tables[name] = joined(getattr(log, name)), joined(getattr(other, name))
        for table, (mine, theirs) in tables.items():
            if mine.keys() != theirs.keys():
                yield f"{log.arm} {table}"
            else:
                yield from (f"{log.arm} {table} {k}" for k in mine if not same(mine[k], theirs[k]))


def joined(parts: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}


def same(array: np.ndarray, other: np.ndarray) -> bool:
    return (array.dtype, array.shape, array.tobytes()) == (other.dtype, other.shape, other.tobytes())


@lru_cache(maxsize=1)
def case() -> tuple[Callable[[], Setting], list[Arm]]:
    """A stack of arms that write texts, fork, adopt books and learn."""
    plan = world.plan(len(TURNS), CASE)
    (arms,) = stacked(plan)
    return settings(plan), arms


if __name__ == "__main__":
    fresh, every = case()
    run(fresh(), every, Saving(Path(sys.argv[1]), [int(sys.argv[2])], lambda: os._exit(9)))
