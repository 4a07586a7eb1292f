"""Replies of assistants, read by case: what they serve, what they say themselves, and whether they may."""

from dataclasses import dataclass, replace

import numpy as np

from skg_bench.core.assistant import FromBook, GivenAgain, GroundTruth, InWords, Recalled, Reply
from skg_bench.core.errors import RowError
from skg_bench.core.grid import F64, I32, I64, U64, Bool
from skg_bench.core.spending_checks import check_spent
from skg_bench.core.spoken import ANSWER_FRAME
from skg_bench.core.types import CAUSES, FREE, Completions
from skg_bench.core.world import (
    FALLBACK,
    PROMPTED,
    UNKNOWN,
    WRONG,
    AsServed,
    Execution,
    Metered,
    Response,
    Silence,
    calls,
)
from skg_bench.engine.text_view import Heard

_NONE = CAUSES.index("none")

ReplyParts = tuple[InWords | None, I32 | None, U64 | None, Completions]
"""Words of the assistant's own, answers to compare, keys of what skills say (None: there are none), and own costs."""


def reply_parts(reply: Reply) -> ReplyParts:
    """Parts of a reply that its case has."""
    match reply.case:
        case FromBook(compared=compared, says=says, cost=cost):
            return None, compared, says, cost
        case InWords(cost=cost) as words:
            return words, None, None, cost
        case _:
            return None, None, None, FREE


def in_prompt(reply: Reply, answer: I32) -> I32:
    """Answers `[B, K]` that are in the prompt, if there is one: those that were recalled, or `answer` `[B]` alone."""
    match reply.case:
        case Recalled(answers):
            return answers
        case _:
            return answer[:, None]


def counting(row: I64, handle: I32, n: int, truth: GroundTruth, given: I32) -> I32:
    """Answers `[n]` that count of those in prompts: the newest that is about this request, else the newest, in whatever
    order they stand there; -1: none is there. These are flat over m, with their users `row`, -1: of nobody's. `given`
    `[B, W]`: the turn of each, by handle.
    """
    answer = np.full(n, -1, np.int32)
    if len(row):
        about = (truth.judge(row, handle, "rightly now") != WRONG) & (handle >= 0)
        order = np.lexsort((np.where(handle >= 0, given[row, handle], -1), about, row))
        answer[row[order]] = handle[order]  # of several the last stays
    return answer


def answer_of(reply: Reply, truth: GroundTruth, given: I32) -> I32:
    """Answers `[B]` with which the users are served, -1: none."""
    match reply.case:
        case Recalled(answers):
            row, column = (answers >= 0).nonzero()
            counted = counting(row, answers[row, column], len(answers), truth, given)
            return np.where(reply.how == PROMPTED, counted, reply.answer)
        case _:
            return reply.answer


@dataclass(frozen=True, slots=True)
class Earlier:
    """Answers that the users' assistants had, and how long these and all messages are."""

    given: I32  # [B, W] the turn of each, by handle, -1: never
    heard: Heard
    words_of: I32  # [N] length of each text in words

    def words(self, row: I64, handle: I32) -> I32:
        """Lengths `[n]` of answers `[n]` of the users of rows `[n]` in words (core/spoken.py: `answer_words`)."""
        return self.words_of[self.heard.messages(row, self.given[row, handle])] + ANSWER_FRAME


def recalled_words(reply: Reply, earlier: Earlier) -> I32 | int:
    """Words `[B]` that earlier answers add to the prompt, each once; a skill costs `skill_tokens` of the model."""
    match reply.case:
        case FromBook() | InWords():
            return 0
        case _:
            answers = np.where((reply.how == PROMPTED)[:, None], in_prompt(reply, reply.answer), -1)
    row, column = (answers >= 0).nonzero()
    row, handle = np.unique(np.stack([row, answers[row, column]]), axis=1)
    return np.bincount(row, earlier.words(row, handle), len(answers)).astype(np.int32)


def check_given(given: I32, name: str, answer: I32, which: Bool) -> None:
    """Hold the field `name` of a reply, at the users of a mask, to answers that they were given. `given` `[B, W]`: the
    turn of each, by handle, -1: never.

    Raises RowError for the first that is none.
    """
    if not len(rows := which.nonzero()[0]):
        return
    width, handle = given.shape[1], answer[rows]
    known = (given[rows, np.clip(handle, 0, width - 1)] >= 0) & (handle >= 0) & (handle < width)
    if not known.all():
        row = int(rows[(~known).nonzero()[0][0]])
        raise RowError(
            row,
            f"Reply.{name} is {answer[row]}, and this user was given no such answer; valid are those of "
            "Experience.answer at the user's earlier turns",
        )


def check_reply(reply: Reply, parts: ReplyParts, given: I32, *, answers: bool) -> None:
    """Hold a reply to answers that its users were given (`given` `[B, W]`, as above), and to costs that are some.
    `answers`: skills keep answers.

    Raises RowError for the first user for whom it is neither.
    """
    words, compared, says, cost = parts
    if cost is not FREE:
        check_spent(cost, np.arange(len(reply.how)))
    if compared is not None:
        check_given(given, "compared", compared, compared >= 0)
        _check_compared(reply.how, compared)
    if not answers:
        return
    serves = reply.how != FALLBACK
    if words is not None:
        serves &= np.array([text is None for text in words.words], np.bool_)
    if says is not None:  # what says something may be served without an answer
        serves &= (reply.answer >= 0) | (says == 0)
    check_given(given, "answer", reply.answer, serves)
    match reply.case:
        case Recalled(recalled):
            for column in recalled.T:
                check_given(given, "answers", column, column >= 0)
            _check_recalled(reply, recalled)


def _check_compared(how: I32, compared: I32) -> None:
    if np.logical_or.reduce(idle := (compared >= 0) & ~calls(how)):
        row = int(idle.argmax())
        raise RowError(
            row,
            f"Reply.compared is {compared[row]}, and the model does not answer this user: a judge compares the model's "
            "answer with another one. Valid is -1 where how is STORED or PROCEDURE",
        )


def _check_recalled(reply: Reply, recalled: I32) -> None:
    elsewhere = (reply.how == PROMPTED) & (reply.answer >= 0) & (recalled != reply.answer[:, None]).all(axis=1)
    if elsewhere.any():
        row = int(elsewhere.argmax())
        raise RowError(
            row,
            f"Reply.answer is {reply.answer[row]}, and Recalled.answers of this user do not hold it; valid is one of "
            "them, as each answer in a prompt is paid",
        )


def skills_of(reply: Reply, n: int) -> I32:
    """Skills that replies of `n` users come from; -1: none."""
    match reply.case:
        case FromBook(skill=skill):
            return skill
        case _:
            return np.full(n, -1, np.int32)


def chosen_by(reply: Reply, n: int) -> tuple[I32, I32, F64]:
    """Skills, turns whose answers are given again, and probabilities with which the replies were chosen."""
    match reply.case:
        case FromBook(skill=skill, source=source, propensity=propensity):
            return skill, source, propensity
        case GivenAgain(source):
            return np.full(n, -1, np.int32), source, np.ones(n)
        case _:
            return np.full(n, -1, np.int32), np.full(n, -1, np.int32), np.ones(n)


def without_judgement(response: Response, which: Bool) -> Response:
    """Response with no judgement where `which` are words that nobody can judge: nobody rates them, and the model
    gave no answer.
    """
    quality, answer = (
        np.where(which, none, column).astype(np.int32)
        for none, column in ((UNKNOWN, response.quality), (-1, response.answer))
    )
    heard = response.feedback.rows(~which[response.feedback.row])
    return replace(response, quality=quality, answer=answer, feedback=heard)


def with_execution(cause: I32, response: Response) -> I32:
    """Causes `[B]`, with those of procedures: a right skill was served, and failed."""
    match response.case:
        case Execution(cause=failed):
            return np.where((cause == _NONE) & (failed >= 0), failed, cause).astype(np.int32)
        case AsServed() | Silence() | Metered():
            return cause
