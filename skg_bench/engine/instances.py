"""Users who share one memory of an assistant, played in order of time: one after the other, with one clock."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skg_bench.core.arms import Arm
from skg_bench.core.assistant import Applied, Keeping
from skg_bench.core.batch import Batch
from skg_bench.core.draws import unsalted
from skg_bench.core.feedback import Feedback
from skg_bench.core.grid import I32, I64
from skg_bench.core.learning_jobs import Course, Jobs
from skg_bench.core.world import timetable
from skg_bench.engine.cohort import Cohort, Rollout, Setting
from skg_bench.engine.logbook import Logbook

_BLOCK = 64  # turns between two calls of `progress`


def run_instances(
    setting: Setting, arm: Arm, cohort: Cohort, top_k: int, progress: Callable[[int], None], *, size: int
) -> list[Logbook]:
    """All turns of whole instances of `size` users under an arm, as `engine.cohort.run_cohort` gives them.

    Instances come one after the other, by ids of users. Within one, the next turn is that of the user whose event is
    the earliest; at the same time, that of the lowest id.
    """
    rows = cohort.side_by_side(1)
    labels, made = setting.labels(()), 0
    log = Logbook.empty(arm.name, unsalted(setting.seed), rows.user, rows.n, top_k=top_k, labels=labels)
    by_instance = np.argsort(rows.user, kind="stable").reshape(-1, size)
    progress(0)
    for instance in by_instance:
        waiting = [(each.time, at, each) for at, each in enumerate(_played(setting, arm, rows, instance, log))]
        heapq.heapify(waiting)
        while waiting:
            _, at, each = waiting[0]
            if each.step():
                heapq.heapreplace(waiting, (each.time, at, each))
            else:
                heapq.heappop(waiting)
            made += 1
            if made % _BLOCK == 0:
                progress(made)
    progress(made)
    return log.split([arm.name])


@dataclass(slots=True)
class _Played:
    """A user of an instance, who has turns left."""

    rollout: Rollout
    times: list[int]  # of the events
    writer: "RowWriter"
    turn: int = 0  # the next

    @property
    def time(self) -> int:
        """Time of the next event."""
        return self.times[self.turn]

    def step(self) -> bool:
        """Play a turn; returns whether there is another."""
        self.rollout.turns(range(self.turn, self.turn + 1), self.writer, lambda _: None)
        self.turn += 1
        return self.turn < len(self.times)


def _played(setting: Setting, arm: Arm, rows: Cohort, instance: I64, log: Logbook) -> list[_Played]:
    """Users of rows `instance`, who have one memory; those without any event are left out."""
    memory, played = None, list[_Played]()
    for row in instance.tolist():
        if rows.n[row]:
            alone = rows.rows(np.array([row]))
            times = timetable(setting.world, alone.memory, int(alone.n[0]))[0]
            rollout = Rollout(setting, [arm], alone, memory=None if memory is None else _shared(arm, memory))
            memory = rollout.state.memory if memory is None else memory
            played.append(_Played(rollout, times.tolist(), RowWriter(log, row)))
    return played


def _shared(arm: Arm, memory: Any) -> Any:
    match arm.assistant:
        case Keeping() as assistant:
            return assistant.shared(memory)
        case other:
            raise TypeError(f"{type(other).__qualname__} has no memory that users could share")


@dataclass(frozen=True, slots=True)
class RowWriter:
    """Writer of the turns of one user, who is stepped alone, into a row of a logbook."""

    log: Logbook
    row: int

    def turn(self, t: int, **values: np.ndarray) -> None:
        """Values of turn `t`, `[1]` each."""
        at = int(self.log.start[t]) + self.row
        self.log.put(slice(at, at + 1), values)

    def update(self, t: int, batch: Batch, applied: Applied) -> None:
        """A batch of turn `t`."""
        self.log.update(t, batch, applied)
        self._move(self.log.updates)

    def feedback(self, t: int, feedback: Feedback, time: I64, skill: I32) -> None:
        """Feedback on turn `t`."""
        self.log.feedback(t, feedback, time, skill)
        self._move(self.log.feedbacks)

    def learning(self, t: int, jobs: Jobs, time: I64, course: Course | None) -> None:
        """Learning jobs that ended by turn `t`."""
        self.log.learning(t, jobs, time, course)
        self._move(self.log.jobs)

    def _move(self, parts: list[dict[str, np.ndarray]]) -> None:
        parts[-1]["row"] = parts[-1]["row"] + self.row
