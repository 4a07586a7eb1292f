"""Learning jobs as a proposer sees them, and what it proposes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skg_bench.asking.asking import Completion, Prompt
from skg_bench.asking.prompts import PromptFile
from skg_bench.core.domain import Domain
from skg_bench.core.draws import Purpose, fold
from skg_bench.core.feedback import RATING, KnownFeedback
from skg_bench.core.grid import I32, I64
from skg_bench.core.types import RATINGS, Observation, Skillbooks
from skg_bench.curator.shared.job_feedback import signal
from skg_bench.skillbook.proposals import Batches
from skg_bench.skillbook.skillbook import Skill, Skillbook


@dataclass(frozen=True, slots=True)
class LearningJob:
    """One turn that a user judged, or at which something became known, with what may be learned from it."""

    question: str  # message of the turn
    answer: str  # how it was answered, in words
    feedback: Mapping[str, str]  # `rating`, or `channel` and `signal`, in words
    rating: str | None  # of the turn, as the arm's signs have it: ok, partial or miss; None: they say nothing
    used: Sequence[str]  # shown ids of the skills that were served; no other one may be TAGged
    book: Skillbook  # skills that say something, archived ones too; one object for all jobs of a user
    key: int  # of the user and the event, for draws
    turn: int  # that is learned from
    recorded: bool  # people wrote the messages, in a log
    redacted: bool  # logs show other texts

    @property
    def data(self) -> dict[str, Any]:
        """The turn as data of a prompt."""
        return {
            "question": self.question, "answer": self.answer, "feedback": self.feedback, "skills_used": self.used,
        }  # fmt: skip

    def prompt(self, file: PromptFile, data: Mapping[str, Any], purpose: Purpose, limit: int) -> Prompt:
        """A prompt of at most `limit` tokens of answer, with a draw of its own for each user, event, turn and purpose,
        and marked as private where its data are.
        """
        key = np.full(1, self.key, np.uint64)
        draw = fold(fold(fold(key, int(purpose)), self.turn), 0)
        return file.ask(data, int(draw[0]) >> 1, limit, recorded=self.recorded, redacted=self.redacted)


@dataclass(frozen=True, slots=True)
class Proposal:
    """Result of a job, before anything of it is admitted."""

    batch: Any  # update operations as parsed JSON; None: nothing is to change
    batches: Batches  # format of `batch`, and how it is taken
    calls: Mapping[str, Completion]  # by role, in order; where the last one failed, nothing is proposed
    reflection: Any = None  # what was learned, as parsed JSON for the log; None: nothing


@dataclass(frozen=True, slots=True)
class HeardFeedback:
    """Feedback that began jobs, `[n]` each, and the books `[n]` as they were then."""

    row: Sequence[int]
    turn: Sequence[int]
    kind: Sequence[int]
    value: Sequence[int]
    skill: Sequence[int]  # that was served, -1: none
    jobs: Sequence[LearningJob]


def heard_feedback(
    known: KnownFeedback, begin: I64, outcome: I32, books: Skillbooks, seen: Observation
) -> HeardFeedback:
    """The jobs that rows `begin` of the feedback begin; `outcome` `[B, T]`: what users did at each turn, -1: nothing is
    known.
    """
    heard, rated = known.rows(begin), known.rows(known.kind == RATING)
    ratings = dict(zip(zip(rated.row.tolist(), rated.turn.tolist(), strict=True), rated.value.tolist(), strict=True))
    context = seen.context
    row, turn = heard.row.astype(np.int64), heard.turn.astype(np.int64)
    questions = context.texts.read(context.messages[row, turn], row)
    before = {user: _book(user, books, seen) for user in sorted(set(row.tolist()))}
    acts = outcome[row, turn].tolist()
    rows, turns, kinds, values, skills = (
        column.tolist() for column in (row, turn, heard.kind, heard.value, heard.skill)
    )
    jobs = []
    for user, about, kind, value, skill, act, question in zip(
        rows, turns, kinds, values, skills, acts, questions, strict=True
    ):
        used = [each.shown_id for each in before[user].skills if each.id == skill]
        signalled = signal(context.domain, kind, value, act)
        feedback = (
            {"rating": signalled}
            if kind == RATING
            else {"channel": context.domain.kind(kind).name, "signal": signalled}
        )
        code = ratings.get((user, about))
        rating = None if code is None else RATINGS[code]
        words, key = (question, _answer(kind, used)), int(context.event[user])
        private = context.texts.recorded, context.texts.redacts
        jobs.append(LearningJob(*words, feedback, rating, used, before[user], key, about, *private))
    return HeardFeedback(rows, turns, kinds, values, skills, jobs)


def _feedback(domain: Domain, kind: int, words: str) -> dict[str, str]:
    return {"rating": words} if kind == RATING else {"channel": domain.kind(kind).name, "signal": words}


def _answer(kind: int, used: Sequence[str]) -> str:
    """Words that the user was given."""
    if kind == RATING:
        return f"given by skill {used[0]}" if used else "given by the assistant itself"
    return f"a suggestion with skill {used[0]}" if used else "a generic question"


def _book(row: int, books: Skillbooks, seen: Observation) -> Skillbook:
    """The skills of a user that say something."""
    n = int(books.n_skills[row])
    columns = (books.active, books.uses, books.ok, books.partial, books.miss)
    values = zip(*(column[row, :n].tolist() for column in columns), strict=True)
    contents = seen.context.texts.contents.of(books.content[row, :n])
    return Skillbook(
        tuple(
            Skill(i, "", -1, (), active, uses, ok, partial, miss, 0, 0, 0, (0,) * 8, 0, -1, content)
            for i, ((active, uses, ok, partial, miss), content) in enumerate(zip(values, contents, strict=True))
            if content is not None
        )
    )
