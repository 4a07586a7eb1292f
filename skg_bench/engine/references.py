"""Replies in words: which answers they are, by the references in them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np

from skg_bench.core.assistant import GroundTruth, InWords, Message, Reply
from skg_bench.core.draws import fold, unfolded
from skg_bench.core.errors import RowError
from skg_bench.core.grid import F32, I32, I64, U64, Bool, cosine
from skg_bench.core.spoken import answer_words, references
from skg_bench.core.text import word_count
from skg_bench.core.texts import Texts
from skg_bench.core.types import CAUSES, LLM, Completions, Prompts
from skg_bench.core.world import FALLBACK, LEAKED, PROMPTED, RIGHT, STORED, WRONG, Draws, Response, Served
from skg_bench.engine.costs import total, without_calls
from skg_bench.engine.replies import Earlier, counting, without_judgement
from skg_bench.engine.text_view import Heard

_CODES = {cause: code for code, cause in enumerate(CAUSES)}


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of the arm's model that an assistant made itself, flat over n, by row and then in order."""

    row: I64  # [n]
    words: I32  # [n] length of the prompt in words; no less than message and recalled answers, which the answer needs
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
    recalled: I32  # [B, K] all answers in prompts of the model, -1: none
    unsaid: Bool  # the model answered, and the words are no answer of this turn
    calls: Calls

    def served(self, reply: Reply) -> tuple[I32, I32]:
        """How users are served, and with which answers."""
        return (
            np.where(self.worded, self.how, reply.how).astype(np.int32),
            np.where(self.worded, self.answer, reply.answer).astype(np.int32),
        )

    def in_prompt(self, answer: I32) -> I32:
        """Answers `[B, K]` that are in the prompt, if there is one: `answer` `[B]`, and all to which prompts refer."""
        return np.column_stack([answer, self.recalled]).astype(np.int32)

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
        """Costs `called` and of the assistant's own calls, in which those of words are what the model cost for them;
        without a call an earlier answer takes `latency_ms`.
        """
        spent, free = self.calls.cost(llm, draws), self.worded & ~self.calls.made(len(self.worded))
        latency = np.where(self.unjudged, 0.0, latency_ms)
        mine, more = replace(spent, latency_ms=np.where(free, latency, spent.latency_ms)), total(called, spent)
        columns = (np.where(self.worded, getattr(mine, f.name), getattr(more, f.name)) for f in fields(Completions))
        return Completions(*columns)


def spoken(query: Message, case: InWords, keys: U64, truth: GroundTruth, earlier: Earlier, *, answers: bool) -> Spoken:
    """Meaning of the words of a reply. `keys` `[B]` of the users make their events' keys. `answers`: there are some, as
    skills keep answers.

    Raises RowError for the answer to this very message where the model was not asked for it.
    """
    n, event = len(query.text), query.event
    worded = np.array([words is not None for words in case.words], np.bool_)
    words_said = [(row, words) for row, words in enumerate(case.words) if answers and words]
    prompts = [(row, prompt) for row, each in enumerate(case.asked) for prompt in each]
    quotes, memory = (
        _not_of_users(_quotes(texts, keys, earlier.given), query.store.texts) for texts in (words_said, prompts)
    )
    memory = memory.where(memory.key != event[memory.row])
    calls = _calls(prompts, query.text, memory, earlier)
    made = calls.made(n)
    last, handle, referred = np.zeros(n, np.uint64), np.full(n, -1, np.int32), np.zeros(n, np.bool_)
    last[quotes.row], handle[quotes.row] = quotes.key, quotes.handle  # of several the last one stays
    referred[quotes.row] = True
    fresh = referred & (last == event)
    if (unasked := fresh & ~made).any():
        raise RowError(
            int(unasked.argmax()),
            "keep all memory in self: it gave the answer to this very message without having asked the model for it, "
            "as a class or a module does that was played before. Valid are words with the reference of an answer that "
            "it was given, at this turn or earlier",
        )
    strange = np.zeros(n, np.bool_)
    others = quotes.where((quotes.key != event[quotes.row]) & (quotes.key != last[quotes.row]))
    strange[others.row[others.handle < 0]] = True
    strange[memory.row[memory.handle < 0]] = answers
    referred |= strange
    fresh, known = fresh & ~strange, referred & ~fresh & ~strange & (handle >= 0)
    fallback, prompt = np.full(n, FALLBACK, np.int32), counting(memory.row, memory.handle, n, truth, earlier.given)
    fallback[memory.row] = PROMPTED
    how = np.where(fresh, fallback, np.where(known, STORED, np.where(referred, LEAKED, FALLBACK))).astype(np.int32)
    answer = np.where(fresh, prompt, np.where(known, handle, -1)).astype(np.int32)
    source = np.where(known, earlier.given[np.arange(n), np.where(known, handle, 0)], -1).astype(np.int32)
    return Spoken(
        worded, how, answer, worded & ~referred, source, (fallback, prompt), _by_user(memory, n),
        answers & made & ~fresh, calls,
    )  # fmt: skip


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


@dataclass(frozen=True, slots=True)
class _Quotes:
    """References to answers in texts, flat over n, by text and then in order."""

    text: I64  # [n] which of the texts
    row: I64  # [n] its user
    key: U64  # [n]
    handle: I32  # [n] of the answer; -1: of none that the user's assistant had

    def where(self, which: Bool) -> "_Quotes":
        """References of a mask `[n]`."""
        return _Quotes(self.text[which], self.row[which], self.key[which], self.handle[which])


def _quotes(texts: Sequence[tuple[int, str]], keys: U64, given: I32) -> _Quotes:
    """References in texts, each with its user. `keys` `[B]` and `given` `[B, W]` as above."""
    inside = [(text, row, key) for text, (row, words) in enumerate(texts) for key in references(words)]
    text, row = (np.array([each[part] for each in inside], np.int64) for part in (0, 1))
    key = np.array([each[2] for each in inside], np.uint64)
    number = unfolded(keys[row], key)
    possible = (number >= 0) & (number < given.shape[1])
    known = possible & (given[row, np.where(possible, number, 0)] >= 0)
    return _Quotes(text, row, key, np.where(known, number, -1).astype(np.int32))


def _not_of_users(quotes: _Quotes, texts: Texts) -> _Quotes:
    """Quotes without references that people wrote themselves into messages of a log: no answer is behind them."""
    if not (strange := quotes.handle < 0).any() or not (known := _in_messages(texts)):
        return quotes
    theirs = np.array([key in known for key in quotes.key.tolist()], np.bool_)
    return quotes.where(~(strange & theirs))


@lru_cache(maxsize=1)
def _in_messages(texts: Texts) -> frozenset[int]:
    messages = texts.read(np.arange(texts.n_messages, dtype=np.int32))
    return frozenset(key for message in messages for key in references(message))


def _calls(prompts: Sequence[tuple[int, str]], message: I32, quotes: _Quotes, earlier: Earlier) -> Calls:
    """Calls of the model, by user and prompt; `message` `[B]` are the texts of the messages. Each answer to which a
    prompt refers is paid whole and once, as the reference alone tells the model all of it.
    """
    row = np.array([row for row, _ in prompts], np.int64)
    counted, recalls = np.array([word_count(prompt) for _, prompt in prompts], np.int32), np.zeros(len(row), np.bool_)
    recalls[quotes.text] = True
    had = quotes.where(quotes.handle >= 0)
    _, first = np.unique(np.stack([had.text, had.handle]), axis=1, return_index=True)
    paid = np.bincount(had.text[first], earlier.words(had.row[first], had.handle[first]), len(row))
    words = np.maximum(counted, earlier.words_of[message[row]] + paid)
    return Calls(row, words.astype(np.int32), recalls)


def _by_user(memory: _Quotes, n: int) -> I32:
    """Handles of answers in prompts by user, `[n, K]`, -1: none."""
    place = np.arange(len(memory.row)) - np.searchsorted(memory.row, memory.row)
    handles = np.full((n, int(place.max(initial=-1)) + 1), -1, np.int32)
    handles[memory.row, place] = memory.handle
    return handles
