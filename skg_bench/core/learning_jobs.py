"""Learning jobs: what a curator that asks a model did at a turn, what came of it, and what it cost."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from skg_bench.core.grid import F64, I32, I64, Bool

RESULTS = ("applied", "unchanged", "timed_out", "invalid", "refused", "error", "under_way")
"""What came of a job. `applied`: operations were admitted; `unchanged`: the model proposed none; `invalid`: its answer
did not fit the schema; `refused`: it gave no answer, or nothing that it proposed was admitted; `under_way`: the user's
last turn came before the job ended.
"""
APPLIED, UNCHANGED, TIMED_OUT, INVALID, REFUSED, ERROR, UNDER_WAY = range(len(RESULTS))


@dataclass(frozen=True, slots=True)
class Jobs:
    """Learning jobs of one turn, flat over n; a user may have several, each about another turn."""

    row: I32  # [n] row of the user
    turn: I32  # [n] the turn that is learned from, this one or an earlier one
    kind: I32  # [n] the feedback that began the job: index into KINDS (core/feedback.py)
    value: I32  # [n] and what it said: index into the levels of its kind
    result: I32  # [n] index into RESULTS
    operations: I32  # [n] that were admitted
    refused: I32  # [n] operations that were proposed and not admitted
    tokens_in: I32  # [n] of all calls of the job, cached ones included
    tokens_cached: I32  # [n]
    tokens_out: I32  # [n]
    cost_usd: F64  # [n]
    latency_ms: F64  # [n] of all calls, one after the other
    reflection: I32  # [n] text id of what the model learned from the turn, -1: nothing
    refusals: I32  # [n] text id of what was not admitted and why, as JSON (core/proposals.py), -1: nothing
    reason: I32  # [n] text id of why nothing came, -1: something did
    served: I32  # [n] text id of the model as the server names it, and the form of its answers; -1: not said
    version_read: I32  # [n] of the book that the model was shown; the engine's assistant fills it in, as the next one
    version_written: I32  # [n] of the book with its operations, -1: there were none

    def rows(self, which: I64 | Bool) -> "Jobs":
        """Jobs of these rows only."""
        return Jobs(*(getattr(self, f.name)[which] for f in fields(self)))


def unheard() -> list[str]:
    """Raises ValueError: nobody noted what was said at a turn."""
    raise ValueError("nobody noted what was said at this turn")


_FLOATS = ("cost_usd", "latency_ms")
_EMPTY: dict[str, Any] = {f.name: np.zeros(0, np.float64 if f.name in _FLOATS else np.int32) for f in fields(Jobs)}
NO_JOBS = Jobs(**_EMPTY)


@dataclass(frozen=True, slots=True)
class Course:
    """Course of jobs that take time: when they ran, and what other jobs of the user did to theirs, `[n]` each.
    What a batch does is counted in its operations.
    """

    begun: I32  # turn at which the job began
    start: I64  # [ms since Monday 00:00 of the first week] when it read the skillbook
    end: I64  # [ms] when it wrote
    meanwhile: I32  # operations of other jobs that were applied between the two; 0: no conflict
    merged: I32  # ADDs of what was added meanwhile, which became TAGs
    aside: I32  # UPDATEs of what was updated meanwhile, which were not applied
    misdirected: I32  # operations on what was removed meanwhile, or on ratings that are not there
    duplicated: I32  # ADDs of what was added meanwhile, which were applied all the same
    overwritten: I32  # operations of other jobs that are lost


COURSE_COUNTS = ("meanwhile", "merged", "aside", "misdirected", "duplicated", "overwritten")
"""What a course counts."""


def joined_jobs(parts: Sequence[Jobs]) -> Jobs:
    """The jobs of one after the other."""
    return Jobs(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Jobs)))


@dataclass(frozen=True, slots=True)
class LearningCost:
    """Cost of learning at one turn, `[B]` each."""

    tokens_in: I32
    tokens_out: I32
    cost_usd: F64


def cost_of(jobs: Jobs | None, n: int) -> LearningCost:
    """The sums of each of `n` users, in order of the jobs."""
    if jobs is None:
        return LearningCost(np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n))
    tokens_in, tokens_out = (
        np.bincount(jobs.row, column, n).astype(np.int32) for column in (jobs.tokens_in, jobs.tokens_out)
    )
    usd = np.bincount(jobs.row, jobs.cost_usd, n).astype(np.float64)
    return LearningCost(tokens_in, tokens_out, usd)
