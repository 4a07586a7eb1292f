"""Learns with a model, as ACE does: a reflector studies a turn that its user judged, a skill manager proposes updates
of the skillbook, and a policy admits them (Pause's `runReflection` and `curate`; ACE's Reflector and SkillManager).

The model's batch is a proposal. What the limits do not admit is logged with its reason and not applied: a text of the
data may hold orders that the model obeys.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, get_args

import numpy as np

from skg_bench.asking.asking import Completion, End, Prompt, TextModel, check_writes, timed_out
from skg_bench.asking.prompts import PromptFile, load_prompt
from skg_bench.core import learning_jobs
from skg_bench.core.batch import ADD, OPERATIONS, TAG, UPDATE, Batch, blank, joined
from skg_bench.core.domain import Domain
from skg_bench.core.draws import Purpose, fold
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING, KnownFeedback
from skg_bench.core.grid import F64, I32, Bool
from skg_bench.core.learning_jobs import Jobs
from skg_bench.core.reach import Reach, Reaches
from skg_bench.core.types import Observation, Skillbooks
from skg_bench.core.world import Reaction
from skg_bench.curator.shared.job_feedback import Acts, begins, outcomes, signal
from skg_bench.skillbook.prompt_layout import SkillOrder
from skg_bench.skillbook.proposals import Admitted, Batches, Limits, admitted_operations, listed
from skg_bench.skillbook.rendering import render
from skg_bench.skillbook.skillbook import Skill, Skillbook

REFLECTOR, MANAGER, MANAGER_V2 = "reflector", "skill_manager", "skill_manager_v2"
REFLECTING_DATA = {
    REFLECTOR: ("question", "answer", "feedback", "skills_used", "skillbook"),
    MANAGER: ("reflection", "skills_used", "skillbook"),
    MANAGER_V2: ("reflection", "skills_used", "skillbook"),  # whose batches are of ACE's schema 2
}
_RESULTS: Mapping[End, int] = {
    "timeout": learning_jobs.TIMED_OUT, "invalid": learning_jobs.INVALID, "refused": learning_jobs.REFUSED,
    "error": learning_jobs.ERROR,
}  # fmt: skip
_NOTHING = Admitted((), ())


@dataclass(slots=True)
class _Job:
    """One turn that something is known about, on its way through both roles."""

    row: int
    turn: int
    value: int
    skill: int
    kind: int
    outcome: int  # what the user did at that turn, -1: nothing is known
    calls: list[Completion] = field(default_factory=list)
    admitted: Admitted = _NOTHING

    @property
    def last(self) -> Completion:
        return self.calls[-1]


@dataclass(frozen=True, slots=True)
class _Book:
    """A user's skillbook before the turn is learned from."""

    skills: Sequence[Skill]  # that say something
    text: str  # as prompts have it


@dataclass(frozen=True)
class Reflecting:
    """Learns from each rating by two calls of a model; or from what the user did and from each later answer.

    A skill that is learned has the message as its example and keeps the turn's answer, if it had one; the model says
    the rest. What a skill's counters hold is what the model tags, also where an arm's signs say something else.
    """

    llm: TextModel
    batches: Batches
    limits: Limits
    book_characters: int
    order: SkillOrder
    answer_tokens: int
    prompts: str | None
    sees_truth: ClassVar[bool] = False
    asks_model: ClassVar[bool] = True
    reasons: ClassVar[Sequence[str]] = ("used", "learned", "reworded", "judged", "harmful")
    reaches: ClassVar[Reaches] = {"prompts": Reach(("reads",))}

    def __post_init__(self) -> None:
        check_writes(self.llm, "curator.llm")
        if self.batches not in get_args(Batches):
            raise UsageError(f"curator.batches={self.batches!r}, valid are {', '.join(get_args(Batches))}")
        if self.order not in get_args(SkillOrder):
            raise UsageError(f"curator.order={self.order!r}, valid are {', '.join(get_args(SkillOrder))}")
        for name in ("book_characters", "answer_tokens"):
            if not getattr(self, name) >= 100:
                raise UsageError(f"curator.{name}={getattr(self, name)} must be at least 100")
        for role in self._roles:
            self._file(role)

    @property
    def digest(self) -> str:
        """Hash of the prompt files."""
        return "-".join(self._file(role).digest[:16] for role in self._roles)

    @property
    def _roles(self) -> tuple[str, str]:
        return REFLECTOR, MANAGER_V2 if self.batches.endswith("v2") else MANAGER

    def start(self, n: int) -> Acts:
        """Memory of users who have done nothing."""
        return Acts(np.full((n, 0), -1, np.int32))

    def offers(self, seen: Observation, state: Acts) -> Bool:
        """Asks nobody to name a skill."""
        return np.zeros(len(seen.text), np.bool_)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: Acts
    ) -> tuple[Acts, Batch]:
        """TAGs for uses, and what the model proposed for turns that users judged, as far as admitted."""
        uses, state = _uses(seen), Acts(outcomes(state.outcome, known, seen.turn, seen.context.domain))
        heard = known.rows(begins(known, seen.context.asks, seen.context.domain))
        if not len(heard.row):
            return state, uses
        columns = (heard.row, heard.turn, heard.value, heard.skill, heard.kind, state.outcome[heard.row, heard.turn])
        jobs = [_Job(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]
        before = {row: self._book(_skills(row, books, seen)) for row in sorted({job.row for job in jobs})}
        self._reflect(jobs, before, seen)
        self._manage(jobs, before, seen)
        seen.context.report(_reported(jobs, seen))
        return state, joined(uses, _operations(jobs, seen))

    # ------------------------------------------------------------------------------------------------- roles

    def _reflect(self, jobs: Sequence[_Job], books: Mapping[int, _Book], seen: Observation) -> None:
        prompts = []
        row, turn = (np.array([getattr(job, name) for job in jobs], np.int64) for name in ("row", "turn"))
        questions = seen.context.texts.read(seen.context.messages[row, turn], row)
        for job, question in zip(jobs, questions, strict=True):
            used = _used(job, books[job.row])
            data = {
                "question": question, "answer": _served(job, used), "feedback": _feedback(job, seen.context.domain),
                "skills_used": used, "skillbook": books[job.row].text,
            }  # fmt: skip
            prompts.append(self._prompt(REFLECTOR, Purpose.REFLECT, job, data, seen))
        _answered(jobs, self.llm.complete(prompts))

    def _manage(self, jobs: Sequence[_Job], books: Mapping[int, _Book], seen: Observation) -> None:
        reflected = [job for job in jobs if job.last.end == "ok"]
        prompts = []
        for job in reflected:
            book = books[job.row]
            data = {"reflection": job.last.value, "skills_used": _used(job, book), "skillbook": book.text}
            prompts.append(self._prompt(self._roles[1], Purpose.MANAGE, job, data, seen))
        if not prompts:
            return
        _answered(reflected, self.llm.complete(prompts))
        for job in reflected:
            if job.last.end == "ok" and (update := job.last.value["update"]) is not None:
                used = [job.skill] if job.skill >= 0 else []
                frozen = bool(seen.context.tags_only[job.row])
                job.admitted = admitted_operations(
                    update, books[job.row].skills, used, self.limits, self.batches, frozen=frozen
                )

    def _book(self, skills: Sequence[Skill]) -> _Book:
        return _Book(skills, render(Skillbook(tuple(skills)), self.book_characters, self.order).text)

    def _prompt(self, role: str, purpose: Purpose, job: _Job, data: Mapping[str, Any], seen: Observation) -> Prompt:
        key = fold(fold(fold(seen.context.event[job.row], int(purpose)), job.turn), 0)
        return self._file(role).ask(
            data,
            int(key) >> 1,
            self.answer_tokens,
            recorded=seen.context.texts.recorded,
            redacted=seen.context.texts.redacts,
        )

    def _file(self, role: str) -> PromptFile:
        return load_prompt(role, self.prompts, REFLECTING_DATA[role])


def _answered(jobs: Sequence[_Job], completions: Sequence[Completion]) -> None:
    for job, completion in zip(jobs, completions, strict=True):
        job.calls.append(completion)


def _skills(row: int, books: Skillbooks, seen: Observation) -> list[Skill]:
    """The skills of a user that say something."""
    n = int(books.n_skills[row])
    columns = (books.active, books.uses, books.ok, books.partial, books.miss)
    values = zip(*(column[row, :n].tolist() for column in columns), strict=True)
    contents = seen.context.texts.contents.of(books.content[row, :n])
    return [
        Skill(i, "", -1, (), active, uses, ok, partial, miss, 0, 0, 0, (0,) * 8, 0, -1, content)
        for i, ((active, uses, ok, partial, miss), content) in enumerate(zip(values, contents, strict=True))
        if content is not None
    ]


def _served(job: _Job, used: Sequence[str]) -> str:
    """Words that the user was given."""
    if job.kind == RATING:
        return f"given by skill {used[0]}" if used else "given by the assistant itself"
    return f"a suggestion with skill {used[0]}" if used else "a generic question"


def _feedback(job: _Job, domain: Domain) -> dict[str, str]:
    """Words of the user's feedback."""
    words = signal(domain, job.kind, job.value, job.outcome)
    return {"rating": words} if job.kind == RATING else {"channel": domain.kind(job.kind).name, "signal": words}


def _used(job: _Job, book: _Book) -> list[str]:
    """As the skillbook of the prompt shows them."""
    return [skill.shown_id for skill in book.skills if skill.id == job.skill]


# ----------------------------------------------------------------------------------------------------- results


def _uses(seen: Observation) -> Batch:
    """A TAG for each skill that was served."""
    row = np.flatnonzero(seen.hit & seen.context.asks)
    batch = blank(len(row))
    batch.row[:], batch.op[:], batch.skill[:], batch.uses[:], batch.reason[:] = row, TAG, seen.skill[row], 1, 0
    batch.about[:] = seen.turn
    return batch


def _operations(jobs: Sequence[_Job], seen: Observation) -> Batch:
    """Operations that were admitted, in order of the jobs."""
    proposed = [(job, operation) for job in jobs for operation in job.admitted.operations]
    batch = blank(len(proposed))
    for i, (job, operation) in enumerate(proposed):
        batch.row[i], batch.op[i], batch.skill[i] = job.row, operation.op, operation.skill
        batch.rating[i], batch.reason[i], batch.about[i] = operation.rating, _REASON[operation.op], job.turn
        if operation.content is not None:
            batch.content[i] = seen.context.texts.contents.add(operation.content)
        if operation.op == ADD:
            batch.text[i] = seen.context.messages[job.row, job.turn]
            batch.source[i] = job.turn if job.kind == RATING else -1  # else there is no answer
    return batch


_REASON = [{ADD: 1, UPDATE: 2, TAG: 3}.get(op, 4) for op in range(len(OPERATIONS))]


def _reported(jobs: Sequence[_Job], seen: Observation) -> Jobs:
    """The jobs as the log has them."""
    n = len(jobs)

    def column(values: Sequence[int]) -> I32:
        return np.array(values, np.int32)

    def texts(values: Sequence[str]) -> I32:
        ids = np.full(n, -1, np.int32)
        some = [i for i, value in enumerate(values) if value]
        ids[some] = seen.context.texts.add([values[i] for i in some])
        return ids

    def total(name: str) -> F64:
        return np.array([sum(getattr(call, name) for call in job.calls) for job in jobs], np.float64)

    return Jobs(
        row=column([job.row for job in jobs]), turn=column([job.turn for job in jobs]),
        kind=column([job.kind for job in jobs]), value=column([job.value for job in jobs]),
        result=column([_result(job) for job in jobs]),
        operations=column([len(job.admitted.operations) for job in jobs]),
        refused=column([len(job.admitted.refusals) for job in jobs]),
        tokens_in=total("tokens_in").astype(np.int32), tokens_cached=total("tokens_cached").astype(np.int32),
        tokens_out=total("tokens_out").astype(np.int32), cost_usd=total("cost_usd"), latency_ms=total("latency_ms"),
        reflection=texts([_canonical(job.calls[0].value) if job.calls[0].end == "ok" else "" for job in jobs]),
        refusals=texts([listed(job.admitted.refusals) for job in jobs]), reason=texts([_reason(job) for job in jobs]),
        served=texts([next((call.served for call in reversed(job.calls) if call.served), "") for job in jobs]),
        version_read=np.full(n, -1, np.int32), version_written=np.full(n, -1, np.int32),
    )  # fmt: skip


def _result(job: _Job) -> int:
    if job.last.end != "ok":
        return _RESULTS[job.last.end]
    if job.admitted.operations:
        return learning_jobs.APPLIED
    return learning_jobs.REFUSED if job.admitted.refusals else learning_jobs.UNCHANGED


def _reason(job: _Job) -> str:
    if job.last.end == "timeout":
        return timed_out((REFLECTOR, MANAGER)[len(job.calls) - 1])
    return "" if job.last.end == "ok" else job.last.reason


def _canonical(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
