"""Runs of a subset of a user's events. Events keep their numbers, so each gets the same draws as in the full run."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from skg_bench.core.grid import F32, I64
from skg_bench.core.types import RIGHT, Events, Simulator, Truth
from skg_bench.engine.cohort import Setting, run_cohort
from skg_bench.engine.logbook import Logbook
from skg_bench.engine.plan import Arm
from skg_bench.engine.stack import stacks

_NEVER = np.iinfo(np.int64).max


class Excerpts:
    """Parts of the events of one user, the only row of `whole`."""

    def __init__(self, simulator: Simulator, whole: Events) -> None:
        self._simulator, self._whole = simulator, whole

    def rows(self, kept: Sequence[I64]) -> Events:
        """A row of events for each of `kept`, ascending turns of the user; what was between them never happened."""
        whole, truth = self._whole, self._whole.truth
        n = np.array([len(turns) for turns in kept], np.int32)
        mask = np.arange(n.max(initial=0)) < n[:, None]
        at = np.zeros(mask.shape, np.int64)
        at[mask] = np.concatenate([*kept, np.zeros(0, np.int64)])
        some = np.zeros((len(kept), whole.text.shape[1]), np.float32)
        some[np.nonzero(mask)[0], at[mask]] = 1.0
        answerable = (some @ self._holds.T).astype(np.int32)  # whole numbers: exact in any order

        def column(values: np.ndarray, empty: int) -> np.ndarray:
            return np.where(mask, values[0, at], np.array(empty, values.dtype))

        known = np.where(mask, np.take_along_axis(answerable, at, axis=1), 0)
        part = Truth(column(truth.type, -1), column(truth.intent, -1), known, column(truth.used_up, 0))
        user = np.repeat(whole.user, len(kept))
        return Events(user, n, column(whole.number, 0), column(whole.time, _NEVER), column(whole.text, 0), part)

    @cached_property
    def _holds(self) -> F32:
        """1 where an answer given rightly at turn j would be right at the later turn i, `[T, T]`."""
        type_, time = self._whole.truth.type[0], self._whole.time[0]
        always = np.ones((1, 1), np.bool_)
        quality = self._simulator.judge(type_[:, None], type_[None], always, np.maximum(time[:, None] - time[None], 0))
        holds: F32 = np.tril(quality == RIGHT, -1).astype(np.float32)
        return holds


def run_excerpts(setting: Setting, arms: Sequence[Arm], events: Events, top_k: int) -> list[Logbook]:
    """The logs of these arms; row r is user r. The users must come in order of falling number of events."""
    logbooks: dict[int, Logbook] = {}
    for stack in stacks(arms):
        logs = run_cohort(setting, [arms[i] for i in stack], events, top_k, lambda _: None)
        logbooks |= zip(stack, logs, strict=True)
    return [logbooks[i] for i in range(len(arms))]
