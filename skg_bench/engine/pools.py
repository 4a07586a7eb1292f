"""Pools: people who are in no run, from whom assistants may learn before it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from skg_bench.core.arms import Arm
from skg_bench.core.assistant import Stackable
from skg_bench.core.grid import I16, I32
from skg_bench.core.texts import Embedding
from skg_bench.engine.cohort import Rollout, Setting, cohort_of
from skg_bench.engine.logbook import NullWriter
from skg_bench.engine.plan import Plan
from skg_bench.engine.vectors import Rows

_POOL = np.int32(2**29)  # ids from here on are a pool's; no run has so many users
_TOGETHER = 256  # of them stepped together: changes speed, never a result


def fitted(plan: Plan, out: Path, vectors: I16) -> Plan:
    """The plan with what its arms learn from pools, now unless it lies in `out/pool`, where it is put.

    Raises UsageError for what lies there and does not fit an arm.
    """
    embedding = Embedding(lambda: vectors, plan.embedder)
    people = Pool(Setting(plan.salted, plan.simulator, lambda: Rows(vectors), plan.weeks, embedding, plan.comparison))
    return replace(plan, arms=tuple(_taught(arm, out / "pool", people) for arm in plan.arms))


def _taught(arm: Arm, folder: Path, people: "Pool") -> Arm:
    assistant = arm.assistant
    taught: Arm = assistant.pretrained(arm, folder, people.simulate) if isinstance(assistant, Stackable) else arm
    return taught


class Pool:
    """People of a setting who are in no run."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def simulate(self, arm: Arm, users: int) -> Iterator[I32]:
        """Runs `arm` for the first `users` of them, some at a time; gives the ids of each time's rows, afterwards."""
        for first in range(0, users, _TOGETHER):
            ids: I32 = np.arange(first, min(first + _TOGETHER, users), dtype=np.int32)
            cohort = cohort_of(self._setting, _POOL + ids)
            order = np.argsort(-cohort.n, kind="stable")
            rollout = Rollout(self._setting, [arm], cohort.rows(order))
            rollout.run(int(cohort.n.max()), NullWriter(), lambda _: None)
            yield ids[order]
