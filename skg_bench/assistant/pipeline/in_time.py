"""Learning that takes time: jobs begin at what users say, wait, and change the skillbook when they end.

What users say between two turns is heard at the later one, after its decision, as without jobs; a job begins when the
feedback became known, though, and reads the skillbook as it was then. Uses of skills are counted at once.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from skg_bench.assistant.pipeline.applying import apply_batch
from skg_bench.assistant.pipeline.conflicts import OVERWRITTEN, Conflicting, Settled
from skg_bench.assistant.pipeline.learning_time import LearningTime, job_keys
from skg_bench.assistant.pipeline.stack_memory import PipelineState
from skg_bench.assistant.pipeline.under_way import BegunJobs, EndedJobs, TurnJobs, UnderWay
from skg_bench.core.assistant import Applied, Message
from skg_bench.core.batch import ADD, NO_OPERATIONS, TAG, TAKEN_BACK, Batch, joined, nth, part
from skg_bench.core.content import Content, Contents
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import I32, I64, U64, Bool
from skg_bench.core.learning_jobs import (
    APPLIED,
    COURSE_COUNTS,
    NO_JOBS,
    REFUSED,
    TIMED_OUT,
    UNDER_WAY,
    Course,
    Jobs,
    joined_jobs,
)
from skg_bench.core.types import Observation
from skg_bench.core.world import Reaction
from skg_bench.skillbook.word_cosines import WordCosines

_SETTLED = tuple(name for name in COURSE_COUNTS if name not in ("meanwhile", "overwritten"))


class InTime:
    """Changes by the jobs of a turn's users, one after the other."""

    def __init__(self, state: PipelineState, query: Message, turn: TurnJobs) -> None:
        self._state, self._query, self._turn, self._n = state, query, turn, len(query.text)
        self._jobs: UnderWay = state.under_way
        self._time: LearningTime = state.stack.shared.jobs

    # ------------------------------------------------------------------------------------------------ ends

    def end(self, limit: I64) -> None:
        """The jobs that end by `limit` `[B, ms]` change the skillbooks, in order of their ends."""
        while (ending := self._jobs.due(limit)) is not None:
            self._write(ending)
        self._jobs.forget()

    def _write(self, ending: EndedJobs) -> None:
        jobs, ops = ending.jobs, ending.ops
        met = (self._jobs.writes[jobs.row] > jobs.writes).nonzero()[0]
        counts = {name: np.zeros(len(jobs.row), np.int32) for name in COURSE_COUNTS}
        if len(met) and len(ops.op):
            ops, undo = self._settle(ending, met, counts)
        else:
            undo = NO_OPERATIONS
        undone, was_before = self._apply(undo)
        ops, short = _with_counters(self._state, ops)
        dropped = counts["aside"] + (counts["misdirected"] if self._time.conflict == "rebase" else 0)
        for column in (counts["misdirected"], dropped):
            np.add.at(column, np.searchsorted(jobs.row, short), 1)
        made, was = self._apply(ops)
        if len(made.op) or len(undone.op):
            undoes = np.arange(len(undone.op) + len(made.op)) < len(undone.op)
            self._jobs.wrote(joined(undone, made), np.concatenate([was_before, was]), undoes)
        self._tell(ending, counts, dropped)

    def _settle(self, ending: EndedJobs, met: I64, counts: dict[str, I32]) -> tuple[Batch, Batch]:
        """The operations of all, those of jobs `met` as the rule has them, and what is undone before."""
        jobs, state = ending.jobs, self._state
        kept, undone = [part(ending.ops, ~np.isin(ending.job, met))], [NO_OPERATIONS]
        for job in met.tolist():
            ops, row = part(ending.ops, ending.job == job), int(jobs.row[job])
            if not len(ops.op):
                continue
            meanwhile = self._jobs.meanwhile(row, int(jobs.writes[job]))
            conflict = Conflicting(
                ops, row, int(jobs.skills[job]), meanwhile, state.table,
                _alike(self._query.texts.contents, self._time.alike), state.stack.reasons.index(OVERWRITTEN),
            )  # fmt: skip
            settled: Settled = conflict.settled(self._time.conflict)
            counts["meanwhile"][job] = len(meanwhile.batch.op)
            for name in _SETTLED:
                counts[name][job] = getattr(settled, name)
            if self._time.conflict == "blind":
                counts["overwritten"][job] = self._jobs.overwrite(row, int(jobs.writes[job]))
            kept.append(settled.batch)
            undone.append(settled.undo)
        return joined(*kept), joined(*undone)

    def _apply(self, batch: Batch) -> tuple[Batch, U64]:
        """The operations as they are applied, and what their skills said before."""
        content = self._state.table.content
        was = content[batch.row, np.clip(batch.skill, 0, content.shape[1] - 1)]
        if not len(batch.op):
            return batch, was
        state = self._state
        made, applied = apply_batch(state, self._query, batch, self._turn.last_skill, _nobody, added=self._turn.added)
        self._turn.applied.append((self._query.turn, made, _kept(applied)))
        np.add.at(self._turn.added, made.row[made.op == ADD], 1)
        return made, was

    def _tell(self, ending: EndedJobs, counts: dict[str, I32], dropped: I32) -> None:
        reports, by = ending.reports, ending.reporter
        if not len(by):
            return
        jobs, version = ending.jobs, self._state.table.version
        operations = np.maximum(reports.operations - dropped[by], 0).astype(np.int32)
        nothing = (operations == 0) & (reports.result == APPLIED)
        report = replace(
            reports, version_read=jobs.version[by], operations=operations,
            version_written=np.where(operations > 0, version[reports.row], -1).astype(np.int32),
            refused=reports.refused + reports.operations - operations,
            result=np.where(nothing, REFUSED, reports.result).astype(np.int32),
        )  # fmt: skip
        self._turn.ended.append((report, _course(jobs.rows(by), {name: column[by] for name, column in counts.items()})))

    # ---------------------------------------------------------------------------------------------- begins

    def learn(self, seen: Observation, reaction: Reaction, known: KnownFeedback, known_at: I64) -> None:
        """A job for each earlier turn that users spoke of, when they did, and one for this turn."""
        n, now = self._n, seen.time * 1000
        late = known.turn < seen.turn
        before, apart = self._jobs.spoke[:n], self._time.apart
        row, turn, heard = _spoken(known.rows(late), known_at[late] * 1000)
        rank, nothing = nth(row), np.full(n, -1, np.int32)
        silent = replace(seen, skill=nothing, rating=nothing)
        for place in range(int(rank.max(initial=-1)) + 1):
            rows, about = row[rank == place], turn[rank == place]
            start = before.copy()
            start[rows] = np.maximum(heard[rank == place], before[rows] + apart)
            before[rows] = start[rows]
            asks = np.zeros(n, np.bool_)
            asks[rows] = True
            topic = np.full(n, -1)
            topic[rows] = about
            spoken = known.rows(known.turn == topic[known.row])
            context = replace(seen.context, asks=seen.context.asks & asks)
            self._job(replace(silent, context=context), Reaction(nothing, nothing, nothing), spoken, start, topic)
        start = np.maximum(now, before + apart)
        begun = self._job(seen, reaction, known.rows(~late), start, np.full(n, seen.turn))
        before[begun] = start[begun]

    def _job(self, seen: Observation, reaction: Reaction, known: KnownFeedback, start: I64, about: I64) -> I64:
        """Jobs of the users who are asked about, each about one turn; uses are counted at once. Who has one?"""
        state, jobs, n = self._state, self._jobs, self._n
        if self._time.conflict == "serial":
            start = np.maximum(start, jobs.last_end[:n])
        self.end(np.where(seen.context.asks, start, np.iinfo(np.int64).min))
        books = state.table.view(n)
        self._turn.reported.clear()
        views = state.stack.views(seen, books)
        state.curators, batch = state.stack.curate(views, reaction, known, state.curators)
        at_once = (batch.op == TAG) & (batch.rating < 0)
        reports = joined_jobs([NO_JOBS, *self._turn.reported])
        ops = part(batch, ~at_once)
        row = np.unique(np.concatenate([ops.row, reports.row]))
        took, late = self._took(seen, row, about, reports)
        timed_out = np.zeros(n, np.bool_)
        timed_out[row] = late
        reports = _timed(reports, took, row, timed_out, seen)
        self._turn.begun.append(reports)
        running = BegunJobs(
            row.astype(np.int32), np.full(len(row), seen.turn, np.int32), start[row], start[row] + took,
            jobs.writes[row], state.table.n_skills[row], state.table.version[row],
        )  # fmt: skip
        jobs.add(running, part(ops, ~timed_out[ops.row]), reports)
        self._apply(part(batch, at_once))
        return row

    def _took(self, seen: Observation, row: I64, about: I64, reports: Jobs) -> tuple[I64, Bool]:
        """Milliseconds of the jobs of these users, and which of them timed out."""
        drawn = self._time.drawn(job_keys(seen.context.event[row], about[row]))
        if drawn is not None:
            return drawn
        took = np.bincount(reports.row, reports.latency_ms, self._n)[row]
        return np.rint(took).astype(np.int64), np.zeros(len(row), np.bool_)


def jobs_left(jobs: UnderWay, n: int) -> tuple[Jobs, Course] | None:
    """Jobs under way for the rows from `n` on, whose users have had their last turn."""
    endings = [ending for ending in jobs.of_rows(n) if len(ending.reporter)]
    if not endings:
        return None
    reports = joined_jobs([ending.reports for ending in endings])
    going = reports.result != TIMED_OUT
    reports = replace(
        reports, result=np.where(going, UNDER_WAY, reports.result).astype(np.int32),
        version_written=np.full(len(reports.row), -1, np.int32),
        version_read=np.concatenate([ending.jobs.version[ending.reporter] for ending in endings]),
    )  # fmt: skip
    running = [ending.jobs.rows(ending.reporter) for ending in endings]
    together = BegunJobs(*(np.concatenate([getattr(r, name) for r in running]) for name in BegunJobs.__slots__))
    none = {name: np.zeros(len(reports.row), np.int32) for name in COURSE_COUNTS}
    return reports, _course(together, none)


def _course(jobs: BegunJobs, counts: dict[str, I32]) -> Course:
    return Course(jobs.begun, jobs.start, jobs.end, **counts)


def _spoken(known: KnownFeedback, heard: I64) -> tuple[I32, I32, I64]:
    """Users and the earlier turns that they spoke of, with when they did, in order of it."""
    if not len(known.row):
        return known.row, known.turn, heard
    order = np.lexsort((known.turn, known.row))
    row, turn = known.row[order], known.turn[order]
    first = np.concatenate([[True], (np.diff(row) != 0) | (np.diff(turn) != 0)])
    moment = np.maximum.reduceat(heard[order], first.nonzero()[0])
    row, turn = row[first], turn[first]
    order = np.lexsort((turn, moment, row))
    return row[order], turn[order], moment[order]


def _timed(reports: Jobs, took: I64, row: I64, timed_out: Bool, seen: Observation) -> Jobs:
    """Jobs with the time that they took; those that timed out come to nothing."""
    if not len(reports.row):
        return reports
    seconds = np.zeros(len(timed_out))
    seconds[row] = took
    late = timed_out[reports.row]
    why = seen.context.texts.add(["a call took longer than jobs.timeout_seconds"])[0] if late.any() else -1
    return replace(
        reports, latency_ms=seconds[reports.row],
        result=np.where(late, TIMED_OUT, reports.result).astype(np.int32),
        operations=np.where(late, 0, reports.operations).astype(np.int32),
        refused=np.where(late, reports.refused + reports.operations, reports.refused).astype(np.int32),
        reflection=np.where(late, -1, reports.reflection).astype(np.int32),
        reason=np.where(late, why, reports.reason).astype(np.int32),
    )  # fmt: skip


def _with_counters(state: PipelineState, ops: Batch) -> tuple[Batch, I32]:
    """Batch without taking back ratings that are not there, and the users of these: another job may have written."""
    back = ((ops.op == TAG) & (ops.rating >= TAKEN_BACK)).nonzero()[0]
    if not len(back):
        return ops, np.zeros(0, np.int32)
    row, skill, code, table = ops.row[back], ops.skill[back], ops.rating[back] - TAKEN_BACK, state.table
    same = (row.astype(np.int64) * table.active.shape[1] + skill) * TAKEN_BACK + code
    have = np.choose(code, [table.ok[row, skill], table.partial[row, skill], table.miss[row, skill]])
    _, index = np.unique(same, return_inverse=True)
    short = back[nth(index.astype(np.int32)) >= have]
    kept = np.ones(len(ops.op), np.bool_)
    kept[short] = False
    return part(ops, kept), ops.row[short]


def _kept(applied: Applied) -> Applied:
    """As it is now: later batches of the turn change version and hash."""
    return replace(applied, version=applied.version.copy(), hash=applied.hash.copy())


def _nobody(_row: I64, _earlier: I32) -> None:
    """Answers that were made one skill some time ago."""


def _alike(contents: Contents, least: float) -> Callable[[int, int], bool]:
    """Do two contents say nearly the same? By words, within a section."""

    def alike(key: int, other: int) -> bool:
        first, second = contents.of(np.array([key, other], np.uint64))
        return (
            first is not None
            and second is not None
            and first.section == second.section
            and _cosine(first, second) >= least
        )

    return alike


@lru_cache(maxsize=2**16)
def _cosine(first: Content, second: Content) -> float:
    texts = ["\n".join([c.issue, c.insight or "", *c.keywords]) for c in (first, second)]
    return float(WordCosines(texts).of(texts[:1])[0, 1])
