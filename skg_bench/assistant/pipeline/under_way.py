"""Learning jobs that have begun and not ended: what they read and will write, and what others wrote meanwhile."""

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from skg_bench.assistant.pipeline.conflicts import Meanwhile
from skg_bench.core.assistant import Applied
from skg_bench.core.batch import NO_OPERATIONS, Batch, joined, part
from skg_bench.core.grid import I32, I64, U64, Bool
from skg_bench.core.learning_jobs import NO_JOBS, Course, Jobs, joined_jobs


@dataclass(frozen=True, slots=True)
class BegunJobs:
    """Jobs of one user each, flat over n."""

    row: I32  # row of the user
    begun: I32  # turn at which the job began
    start: I64  # [ms since Monday 00:00 of the first week] when it read the skillbook
    end: I64  # [ms] when it writes
    writes: I32  # how many batches of jobs the user's skillbook had when it was read
    skills: I32  # how many skills
    version: I32  # and its version

    def rows(self, which: I64 | Bool) -> "BegunJobs":
        """Rows of these jobs only."""
        return BegunJobs(*(getattr(self, f.name)[which] for f in fields(self)))


@dataclass(slots=True)
class TurnJobs:
    """Jobs of one turn: which began and ended, and what they changed."""

    last_skill: I32  # [B] used last before the turn
    added: I32  # [B] skills that were added at this turn so far
    applied: list[tuple[int, Batch, Applied]] = field(default_factory=list)  # turn, operations, and what came of them
    ended: list[tuple[Jobs, Course]] = field(default_factory=list)
    begun: list[Jobs] = field(default_factory=list)
    reported: list[Jobs] = field(default_factory=list)  # by the curators, of the jobs that begin just now

    @classmethod
    def begin(cls, last_skill: I32) -> "TurnJobs":
        """State in which no job has begun, ended or changed anything."""
        return cls(last_skill, np.zeros(len(last_skill), np.int32))


@dataclass(frozen=True, slots=True)
class EndedJobs:
    """Jobs that end now, at most one a user, with their operations and what is logged of them."""

    jobs: BegunJobs
    ops: Batch
    job: I64  # index into `jobs` of each operation
    reports: Jobs
    reporter: I64  # index into `jobs` of each report


@dataclass(frozen=True, slots=True)
class _Written:
    """Operations as they were applied, and what their skills said before; `nth` batch of the user's jobs that was."""

    batch: Batch
    was: U64
    nth: int
    lost: Bool  # [n] is it overwritten, or what overwrites?


_EMPTY: dict[str, Any] = {
    f.name: np.zeros(0, np.int64 if f.name in ("start", "end") else np.int32) for f in fields(BegunJobs)
}
_NONE = BegunJobs(**_EMPTY)


class UnderWay:
    """The jobs of B users."""

    def __init__(self, n: int) -> None:
        self.jobs = _NONE
        self.writes = np.zeros(n, np.int32)  # batches of jobs that were applied
        self.spoke = np.full(n, np.iinfo(np.int64).min // 2)  # [ms] when the user last said what begins a job
        self.last_end = np.full(n, np.iinfo(np.int64).min)  # [ms] when the user's last job ends
        self._number, self._numbers = np.zeros(0, np.int64), 0  # of each job; how many there were
        self._ops, self._owner = NO_OPERATIONS, np.zeros(0, np.int64)
        self._reports, self._reporter = NO_JOBS, np.zeros(0, np.int64)
        self._written: dict[int, list[_Written]] = {}  # by row, of users with a job under way

    def add(self, jobs: BegunJobs, ops: Batch, reports: Jobs) -> None:
        """Jobs of one user each; operations and reports are theirs by row."""
        number = np.full(len(self.writes), -1)
        number[jobs.row] = self._numbers + np.arange(len(jobs.row))
        self._numbers += len(jobs.row)
        self.jobs = BegunJobs(
            *(np.concatenate([getattr(self.jobs, f.name), getattr(jobs, f.name)]) for f in fields(BegunJobs))
        )
        self._number = np.concatenate([self._number, number[jobs.row]])
        self._ops, self._owner = joined(self._ops, ops), np.concatenate([self._owner, number[ops.row]])
        self._reports = joined_jobs([self._reports, reports])
        self._reporter = np.concatenate([self._reporter, number[reports.row]])
        self.last_end[jobs.row] = np.maximum(self.last_end[jobs.row], jobs.end)

    def due(self, limit: I64) -> EndedJobs | None:
        """First job of each user that ends by `limit` `[B, ms]`; None: nobody has one."""
        jobs = self.jobs
        if not len(jobs.row):
            return None
        at = (jobs.end <= limit[jobs.row]).nonzero()[0]
        if not len(at):
            return None
        order = at[np.lexsort((self._number[at], jobs.end[at], jobs.row[at]))]
        return self._taken(order[np.unique(jobs.row[order], return_index=True)[1]])

    def of_rows(self, n: int) -> list[EndedJobs]:
        """All jobs of the rows from `n` on, which are over."""
        endings = []
        while len(at := (self.jobs.row >= n).nonzero()[0]):
            at = at[np.unique(self.jobs.row[at], return_index=True)[1]]
            endings.append(self._taken(at))
        return endings

    def drop(self, rows: I64) -> None:
        """Drop the jobs of these users: nothing is written."""
        while len(at := np.isin(self.jobs.row, rows).nonzero()[0]):
            self._taken(at[np.unique(self.jobs.row[at], return_index=True)[1]])

    def wrote(self, batch: Batch, was: U64, undoes: Bool) -> None:
        """Operations of jobs as they were applied, and what their skills said before; one batch a user. Those that undo
        others are no loss themselves.
        """
        self.writes[np.unique(batch.row)] += 1
        for row in np.intersect1d(batch.row, self.jobs.row).tolist():
            at = (batch.row == row).nonzero()[0]
            written = _Written(part(batch, at), was[at], int(self.writes[row]), undoes[at])
            self._written.setdefault(row, []).append(written)

    def meanwhile(self, row: int, writes: int) -> Meanwhile:
        """Batches applied to the skillbook of `row` after its `writes`-th batch."""
        later = self._later(row, writes)
        if not later:
            return Meanwhile(NO_OPERATIONS, np.zeros(0, np.uint64))
        return Meanwhile(joined(*(w.batch for w in later)), np.concatenate([w.was for w in later]))

    def overwrite(self, row: int, writes: int) -> int:
        """How many operations are lost when the skillbook of `row` is written as it was after its `writes`-th batch."""
        lost = 0
        for written in self._later(row, writes):
            lost += int((~written.lost).sum())
            written.lost[:] = True
        return lost

    def _later(self, row: int, writes: int) -> list[_Written]:
        return [written for written in self._written.get(row, []) if written.nth > writes]

    def forget(self) -> None:
        """Forgets what was written for users without a job."""
        if self._written:
            rows = set(self.jobs.row.tolist())
            self._written = {row: written for row, written in self._written.items() if row in rows}

    def _taken(self, at: I64) -> EndedJobs:
        """The jobs at these places, which are no longer under way."""
        taken, numbers = self.jobs.rows(at), self._number[at]
        order = np.argsort(numbers)

        def index(owner: I64) -> I64:
            place = np.minimum(np.searchsorted(numbers[order], owner), max(len(numbers) - 1, 0))
            hit = numbers[order][place] == owner
            return np.where(hit, order[place], -1)

        job = index(self._owner)
        theirs = job >= 0
        ending_ops, ending_job = part(self._ops, theirs), job[theirs]
        self._ops, self._owner = part(self._ops, ~theirs), self._owner[~theirs]
        reporter = index(self._reporter)
        mine = reporter >= 0
        reports, reporter = self._reports.rows(mine), reporter[mine]
        self._reports, self._reporter = self._reports.rows(~mine), self._reporter[~mine]
        stay = np.ones(len(self._number), np.bool_)
        stay[at] = False
        self.jobs, self._number = self.jobs.rows(stay), self._number[stay]
        return EndedJobs(taken, ending_ops, ending_job, reports, reporter)
