"""Seam for what proposes: which turns begin a job, what is admitted, and how jobs are logged are the same for all.

A proposer says who is asked, and what. Its batch is a proposal: what the limits do not admit is logged with its reason
and not applied, as a text of the data may hold orders that a model obeys.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from skg_bench.asking.asking import Completion, End, timed_out
from skg_bench.core import learning_jobs
from skg_bench.core.batch import ADD, OPERATIONS, TAG, UPDATE, Batch, blank, joined
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING, KnownFeedback
from skg_bench.core.grid import F64, I32, Bool
from skg_bench.core.learning_jobs import Jobs
from skg_bench.core.types import Observation, Skillbooks
from skg_bench.core.world import Reaction
from skg_bench.curator.shared.job_feedback import Acts, begins, outcomes
from skg_bench.curator.shared.learning_job import HeardFeedback, LearningJob, Proposal, heard_feedback
from skg_bench.skillbook.proposals import Admitted, Limits, admitted_operations, listed

_REASON = [{ADD: 1, UPDATE: 2, TAG: 3}.get(op, 4) for op in range(len(OPERATIONS))]
_RESULTS: Mapping[End, int] = {
    "timeout": learning_jobs.TIMED_OUT, "invalid": learning_jobs.INVALID, "refused": learning_jobs.REFUSED,
    "error": learning_jobs.ERROR,
}  # fmt: skip
_NOTHING = Admitted((), ())


class Proposer(Protocol):
    """Inherited by a curator that proposes operations for each turn that a user judged.

    A skill that is learned has the message as its example and keeps the turn's answer, if it had one. What a skill's
    counters hold is what is tagged, also where an arm's signs say something else.
    """

    sees_truth: ClassVar[bool] = False
    asks_model: ClassVar[bool] = True
    reasons: ClassVar[Sequence[str]] = ("used", "learned", "reworded", "judged", "harmful")
    limits: Limits  # of what a proposal may do; a field of the class that inherits

    def propose(self, jobs: Sequence[LearningJob]) -> Sequence[Proposal]:
        """A proposal for each job, in order."""
        ...

    def start(self, n: int) -> Acts:
        """Memory of users who have done nothing."""
        return Acts(np.full((n, 0), -1, np.int32))

    def offers(self, seen: Observation, state: Acts) -> Bool:
        """Asks nobody to name a skill."""
        return np.zeros(len(seen.text), np.bool_)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: Acts
    ) -> tuple[Acts, Batch]:
        """TAGs for uses, and what was proposed for turns that users judged, as far as it is admitted."""
        uses, state = _uses(seen), Acts(outcomes(state.outcome, known, seen.turn, seen.context.domain))
        begin = begins(known, seen.context.asks, seen.context.domain)
        if not len(begin):
            return state, uses
        heard = heard_feedback(known, begin, state.outcome, books, seen)
        proposals = self.propose(heard.jobs)
        if len(proposals) != len(heard.jobs):
            raise UsageError(
                f"{type(self).__name__}.propose gave {len(proposals)} proposals for {len(heard.jobs)} jobs; give one "
                "for each, with batch=None where nothing is to change"
            )
        admitted = [
            admitted_of(proposal, job, skill, self.limits, frozen=bool(seen.context.tags_only[row]))
            for proposal, job, skill, row in zip(proposals, heard.jobs, heard.skill, heard.row, strict=True)
        ]
        seen.context.report(reported_jobs(heard, proposals, admitted, seen))
        return state, joined(uses, _operations(heard, admitted, seen))


def completed(calls: Mapping[str, Completion]) -> bool:
    """Did the last call give an answer, or was none made?"""
    return not calls or [*calls.values()][-1].end == "ok"


def admitted_of(proposal: Proposal, job: LearningJob, skill: int, limits: Limits, *, frozen: bool) -> Admitted:
    """Operations of a proposal that are admitted; `skill`: that was served, -1: none."""
    if proposal.batch is None or not completed(proposal.calls):
        return _NOTHING
    used = [skill] if skill >= 0 else []
    return admitted_operations(proposal.batch, job.book.skills, used, limits, proposal.batches, frozen=frozen)


def _uses(seen: Observation) -> Batch:
    """A TAG for each skill that was served."""
    row = np.flatnonzero(seen.hit & seen.context.asks)
    batch = blank(len(row))
    batch.row[:], batch.op[:], batch.skill[:], batch.uses[:], batch.reason[:] = row, TAG, seen.skill[row], 1, 0
    batch.about[:] = seen.turn
    return batch


def _operations(heard: HeardFeedback, admitted: Sequence[Admitted], seen: Observation) -> Batch:
    """Operations that were admitted, in order of the jobs."""
    proposed = [(job, operation) for job, each in enumerate(admitted) for operation in each.operations]
    batch = blank(len(proposed))
    for i, (job, operation) in enumerate(proposed):
        row, turn = heard.row[job], heard.turn[job]
        batch.row[i], batch.op[i], batch.skill[i] = row, operation.op, operation.skill
        batch.rating[i], batch.reason[i], batch.about[i] = operation.rating, _REASON[operation.op], turn
        if operation.content is not None:
            batch.content[i] = seen.context.texts.contents.add(operation.content)
        if operation.op == ADD:
            batch.text[i] = seen.context.messages[row, turn]
            batch.source[i] = turn if heard.kind[job] == RATING else -1  # else there is no answer
    return batch


# ----------------------------------------------------------------------------------------------------- the log


def reported_jobs(
    heard: HeardFeedback, proposals: Sequence[Proposal], admitted: Sequence[Admitted], seen: Observation
) -> Jobs:
    """The jobs as the log has them."""
    n = len(proposals)
    calls = [[*proposal.calls.values()] for proposal in proposals]

    def column(values: Sequence[int]) -> I32:
        return np.array(values, np.int32)

    def texts(values: Sequence[str]) -> I32:
        ids = np.full(n, -1, np.int32)
        some = [i for i, value in enumerate(values) if value]
        ids[some] = seen.context.texts.add([values[i] for i in some])
        return ids

    def total(name: str) -> F64:
        return np.array([sum(getattr(call, name) for call in each) for each in calls], np.float64)

    return Jobs(
        row=column(heard.row), turn=column(heard.turn), kind=column(heard.kind), value=column(heard.value),
        result=column([_result(*pair) for pair in zip(proposals, admitted, strict=True)]),
        operations=column([len(each.operations) for each in admitted]),
        refused=column([len(each.refusals) for each in admitted]),
        tokens_in=total("tokens_in").astype(np.int32), tokens_cached=total("tokens_cached").astype(np.int32),
        tokens_out=total("tokens_out").astype(np.int32), cost_usd=total("cost_usd"), latency_ms=total("latency_ms"),
        reflection=texts(["" if each.reflection is None else _canonical(each.reflection) for each in proposals]),
        refusals=texts([listed(each.refusals) for each in admitted]),
        reason=texts([_reason(proposal) for proposal in proposals]),
        served=texts([next((call.served for call in reversed(each) if call.served), "") for each in calls]),
        version_read=np.full(n, -1, np.int32), version_written=np.full(n, -1, np.int32),
    )  # fmt: skip


def _result(proposal: Proposal, admitted: Admitted) -> int:
    if not completed(proposal.calls):
        return _RESULTS[[*proposal.calls.values()][-1].end]
    if admitted.operations:
        return learning_jobs.APPLIED
    return learning_jobs.REFUSED if admitted.refusals else learning_jobs.UNCHANGED


def _reason(proposal: Proposal) -> str:
    if completed(proposal.calls):
        return ""
    role, last = [*proposal.calls.items()][-1]
    return timed_out(role) if last.end == "timeout" else last.reason


def _canonical(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
