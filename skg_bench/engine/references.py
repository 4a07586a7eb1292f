"""Replies in words: which answers they are, by the references in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from skg_bench.core.assistant import GroundTruth, InWords, Message, Reply
from skg_bench.core.draws import fold, unfolded
from skg_bench.core.errors import RowError
from skg_bench.core.grid import F32, I32, I64, U64, Bool, cosine
from skg_bench.core.spoken import answer_words, references
from skg_bench.core.types import CAUSES, LLM, Completions, Prompts
from skg_bench.core.world import FALLBACK, LEAKED, PROMPTED, RIGHT, STORED, WRONG, Draws, Response, Served
from skg_bench.engine.costs import total, without_calls
from skg_bench.engine.replies import without_judgement
from skg_bench.engine.text_view import Heard

_CODES = {cause: code for code, cause in enumerate(CAUSES)}


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of the arm's model that an assistant made itself, flat over n, by row and then in order."""

    row: I64  # [n]
    words: I32  # [n] length of the prompt in words; no less than that of the message, which the answer needs
    recalls: Bool  # [n] earlier answers stand in the prompt

    def made(self, n: int) -> Bool:
        """Users `[n]` for whom there was one."""
        mask = np.zeros(n, np.bool_)
        mask[self.row] = True
        return mask

    def cost(self, llm: LLM, draws: Draws) -> Completions:
        """Costs of them, `[B]`; those of one event have the same luck."""
        n = len(draws.length)
        spent = Completions(np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n), np.zeros(n))
        nth = np.arange(len(self.row)) - np.searchsorted(self.row, self.row)
        for k in range(int(nth.max(initial=-1)) + 1):
            at, words, recalls, made = nth == k, np.zeros(n, np.int32), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
            words[self.row[at]], recalls[self.row[at]], made[self.row[at]] = self.words[at], self.recalls[at], True
            called = llm.complete(Prompts(words, recalls, draws.length, draws.latency))
            spent = total(spent, without_calls(called, ~made, 0.0))
        return spent


@dataclass(frozen=True, slots=True)
class Spoken:
    """Replies in words, `[B]` each: what they are. Any value where nothing was said."""

    worded: Bool  # something was said
    how: I32  # FALLBACK (also where nobody can judge it), STORED, PROMPTED or LEAKED
    answer: I32  # handle of the earlier answer that was said, or that stood in the prompt; -1: none
    unjudged: Bool  # no reference is in the words
    source: I32  # turn whose answer was said, -1: none
    model: tuple[I32, I32]  # how the model answered, if it did, and the answer in its prompt, as `how` and `answer`
    unsaid: Bool  # the model answered, and the words are no answer of this turn
    calls: Calls

    def served(self, reply: Reply) -> tuple[I32, I32]:
        """How users are served, and with which answers."""
        return (
            np.where(self.worded, self.how, reply.how).astype(np.int32),
            np.where(self.worded, self.answer, reply.answer).astype(np.int32),
        )

    def beside(self, reply: Reply) -> tuple[I32, I32] | None:
        """How users are served if they are given what the model said where they were not; None: there is no such user.
        So the world mints an answer that the assistant may give later.
        """
        if not self.unsaid.any():
            return None
        how, answer = self.served(reply)
        how = np.where(self.unsaid, self.model[0], np.where(self.worded & (how == LEAKED), STORED, how))
        return how.astype(np.int32), np.where(self.unsaid, self.model[1], answer).astype(np.int32)

    def causes(self, truth: GroundTruth, response: Response) -> I32:
        """Codes in CAUSES `[B]` why no right answer was given again; -1: nobody can judge the words; any value where
        nothing was said.

        An earlier answer was *stale*, another request's (*threshold*), or *wrong* from the beginning; or it was no
        answer of this user's, a leak (*routing*). Where the model answered, one that holds was there (*capture*), or
        none (*novelty*).
        """
        rows, earlier = np.arange(len(self.how)), np.maximum(self.answer, 0)
        about, holds = (truth.judge(rows, earlier, way) == RIGHT for way in ("rightly now", "rightly"))
        again = np.where(about, np.where(holds, _CODES["wrong_source"], _CODES["staleness"]), _CODES["threshold"])
        again[response.quality == RIGHT] = _CODES["none"]
        anew = np.where(truth.answerable > 0, _CODES["capture"], _CODES["novelty"])
        prompted = np.where(about, _CODES["none"], _CODES["threshold"])
        by_how = [(self.how == STORED, again), (self.how == PROMPTED, prompted), (self.how == FALLBACK, anew)]
        cause = np.select([at for at, _ in by_how], [code for _, code in by_how], _CODES["routing"])
        return np.where(self.unjudged, -1, cause).astype(np.int32)

    def to_world(self, served: Served, *, reads: bool) -> Served:
        """The same as the world knows it: a leak, and what nobody can judge, is the stored answer -1. `reads`: what the
        world reads has no answers, and words are those of the model, of unknown ability.
        """
        if reads:
            return replace(served, ability=np.where(self.unjudged, np.nan, served.ability))
        how = np.where((served.how == LEAKED) | self.unjudged, STORED, served.how)
        return replace(served, how=how.astype(np.int32))

    def judged(self, response: Response) -> Response:
        """Response in which leaks are wrong, and nobody judges what cannot be judged."""
        if self.unjudged.any():
            response = without_judgement(response, self.unjudged)
        leaked = self.worded & (self.how == LEAKED)
        return replace(response, quality=np.where(leaked, WRONG, response.quality).astype(np.int32))

    def cost(self, called: Completions, llm: LLM, draws: Draws, latency_ms: float) -> Completions:
        """Costs `called`, in which those of words are what the model cost for them; without a call an earlier answer
        takes `latency_ms`.
        """
        spent, free = self.calls.cost(llm, draws), self.worded & ~self.calls.made(len(self.worded))
        latency = np.where(self.unjudged, 0.0, latency_ms)
        mine = replace(spent, latency_ms=np.where(free, latency, spent.latency_ms))
        columns = (np.where(self.worded, getattr(mine, f.name), getattr(called, f.name)) for f in fields(Completions))
        return Completions(*columns)


def spoken(query: Message, case: InWords, keys: U64, given: I32, truth: GroundTruth, *, answers: bool) -> Spoken:
    """Meaning of the words of a reply. `keys` `[B]` of the users make their events' keys; `given` `[B, W]`: the turn at
    which the assistant had each answer, by handle, -1: never. `answers`: there are some, as skills keep answers.

    Raises RowError for the answer to this very message where the model was not asked for it.
    """
    n, event = len(query.text), query.event.tolist()
    worded = np.array([words is not None for words in case.words], np.bool_)
    last, referred = np.zeros(n, np.uint64), np.zeros(n, np.bool_)
    quoted = dict[int, list[int]]()  # by row, where more than the last stand in the words
    for row, words in enumerate(case.words if answers else ()):
        if words is not None and (inside := references(words)):
            last[row], referred[row] = inside[-1], True
            if before := [key for key in inside[:-1] if key != event[row]]:
                quoted[row] = before
    calls, recalled = _calls(case.asked, query.store.texts.read(query.text), event, keys, given)
    made = calls.made(n)
    fresh = referred & (last == query.event)
    if (unasked := fresh & ~made).any():
        raise RowError(
            int(unasked.argmax()),
            "keep all memory in self: it gave the answer to this very message without having asked the model for it, "
            "as a class or a module does that was played before. Valid are words with the reference of an answer that "
            "it was given, at this turn or earlier",
        )
    handle, strange = _handles(keys, last, given), np.zeros(n, np.bool_)
    others = (*recalled, *_handles_of(quoted, keys, given)) if answers else ()
    strange[[row for row, handles in others if (handles < 0).any()]] = True
    referred |= strange
    fresh, earlier = fresh & ~strange, referred & ~fresh & ~strange & (handle >= 0)
    fallback, prompt = _model(recalled, n, truth)
    how = np.where(fresh, fallback, np.where(earlier, STORED, np.where(referred, LEAKED, FALLBACK))).astype(np.int32)
    answer = np.where(fresh, prompt, np.where(earlier, handle, -1)).astype(np.int32)
    source = np.where(earlier, given[np.arange(n), np.where(earlier, handle, 0)], -1).astype(np.int32)
    return Spoken(worded, how, answer, worded & ~referred, source, (fallback, prompt), answers & made & ~fresh, calls)


def said_words(query: Message, keys: U64, answer: I32, reply: Reply) -> list[str]:
    """Words said to the users: those of the reply, where it has some; else those of answers `answer` (handles `[B]`,
    -1: none).
    """
    made = fold(keys[: len(answer)], answer).tolist()
    requests = query.store.texts.read(query.text)
    out = [
        answer_words(request, key) if handle >= 0 else ""
        for handle, key, request in zip(answer.tolist(), made, requests, strict=True)
    ]
    match reply.case:
        case InWords(words):
            return [heard if mine is None else mine for mine, heard in zip(words, out, strict=True)]
        case _:
            return out


def cosines(query: Message, how: I32, answer: I32, given: I32, heard: Heard) -> F32:
    """Cosines of messages to those that were answered first by the answers `[B]` that are given again, or stand in the
    prompt; NaN: there is none. `how` and `answer` are those of `Spoken.served`.
    """
    rows = ((how != FALLBACK) & (answer >= 0)).nonzero()[0]
    near = np.full(len(answer), np.nan, np.float32)
    if len(rows):
        earlier = heard.messages(rows, given[rows, answer[rows]])
        near[rows] = cosine(query.store.similarity.pairs(query.text[rows], earlier))
    return near


def _calls(
    prompts_by_user: Sequence[Sequence[str]], messages: Sequence[str], event: Sequence[int], keys: U64, given: I32
) -> tuple[Calls, Sequence[tuple[int, I32]]]:
    """Calls of the model; and rows in whose prompts other answers stand, each with their handles (-1: of nobody's)."""
    row, length, recalls = list[int](), list[int](), list[bool]()
    recalled = dict[int, list[int]]()
    for user, prompts in enumerate(prompts_by_user):
        for prompt in prompts:
            inside = [key for key in references(prompt) if key != event[user]]
            row.append(user)
            length.append(max(prompt.count(" "), messages[user].count(" ")) + 1)  # counted as in core/vocabulary.py
            recalls.append(bool(inside))
            if inside:
                recalled.setdefault(user, []).extend(inside)
    calls = Calls(np.array(row, np.int64), np.array(length, np.int32), np.array(recalls, np.bool_))
    return calls, _handles_of(recalled, keys, given)


def _handles_of(references_by_row: Mapping[int, Sequence[int]], keys: U64, given: I32) -> Sequence[tuple[int, I32]]:
    """Rows with the handles of the answers to which they refer, in order; -1: of none that the user's assistant had."""
    by_row = [(row, np.array(inside, np.uint64)) for row, inside in references_by_row.items()]
    return [
        (row, _handles(np.full(len(k), keys[row]), k, np.repeat(given[row : row + 1], len(k), 0))) for row, k in by_row
    ]


def _handles(keys: U64, reference: U64, given: I32) -> I32:
    """Handles of the answers to which keys `[n]` refer, of users with keys `[n]` and answers `[n, W]`; -1: none of
    these.
    """
    number = unfolded(keys[: len(reference)], reference)
    inside = (number >= 0) & (number < given.shape[1])
    number = np.where(inside, number, 0)
    known = inside & (given[np.arange(len(number)), number] >= 0)
    return np.where(known, number, -1).astype(np.int32)


def _model(recalled: Sequence[tuple[int, I32]], n: int, truth: GroundTruth) -> tuple[I32, I32]:
    """How the model answers each user, and the answer in its prompt that counts: the first about this request, else the
    last.
    """
    how, answer = np.full(n, FALLBACK, np.int32), np.full(n, -1, np.int32)
    for user, handles in recalled:
        about = truth.judge(np.full(len(handles), user, np.int64), handles, "rightly now") != WRONG
        about &= handles >= 0
        how[user], answer[user] = PROMPTED, handles[about.argmax()] if about.any() else handles[-1]
    return how, answer
