"""Answers in words, in a world that judges words: what the model is asked, what is said, and what that costs.

The world judges what users are told, at each event at which they are told it. So words that are given again may be
right at one event and outdated at another.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from skg_bench.core.assistant import InWords, Reply
from skg_bench.core.draws import Purpose, fold
from skg_bench.core.errors import RowError, naming
from skg_bench.core.grid import I32, I64, U64
from skg_bench.core.spending_checks import check_spent
from skg_bench.core.spoken import PromptParts, SpeakingLLM, WordsAsk
from skg_bench.core.types import FREE, Completions
from skg_bench.core.world import FALLBACK, PROMPTED, STORED, UNREAD, Ledger, Served, calls, ledger_of
from skg_bench.engine.costs import as_served, total
from skg_bench.engine.replies import check_reply, in_prompt, reply_parts
from skg_bench.engine.scene import Answered, CohortState, OwnAsks, Said, Scene, Turn
from skg_bench.engine.world_checks import check_world_response


def own_asks(scene: Scene, state: CohortState, event: U64) -> OwnAsks | None:
    """Asks that assistants may make themselves at events with keys `[B]`; None: the world judges no words."""
    if not scene.world.domain.in_words:
        return None
    llm: SpeakingLLM = state.arm.llm
    draws, texts = _draws(event).tolist(), scene.texts

    def say(row: int, prompt: str) -> tuple[str, Completions]:
        with naming(llm):
            about = PromptParts(prompt, "", ())  # as the engine asks where an arm remembers nothing
            words, cost = llm.say([WordsAsk(about, draws[row], texts.recorded, texts.redacts)])
        return words[0], cost

    return OwnAsks(say)


def worded_answer(scene: Scene, state: CohortState, turn: Turn, reply: Reply) -> Answered:
    """Serve the replies; returns what is said, what it costs and what comes of it."""
    parts = words, _, says, own_cost = reply_parts(reply)
    with naming(state.arm.assistant):
        check_reply(reply, parts, state.given, answers=True)
    ledger = ledger_of(state.users)
    how, answer, mine = _served(reply, words)
    with naming(state.arm.llm):
        speech, cost = _Speech(scene, state, turn, ledger, reply, how, answer, says).made(mine)
        if words is not None:
            _add_own(cost, words, turn.asks)
        check_spent(cost, turn.rows)
    n = len(how)
    nobody, none = np.full(n, np.nan), np.full(n, -1, np.int32)
    now = Served(how, answer, nobody, nobody, none, UNREAD, in_prompt(reply, answer), speech.words)
    state.users, response = scene.world.respond(state.users, turn.event, now, turn.draws)
    check_world_response(scene.world.domain, response, state.given.shape[1], len(now.how))
    columns = scene.world.domain.columns(response.outcome)
    scene.world.domain.check_feedback(response.feedback)
    minted = (calls(how) & (response.answer == turn.event.number)).nonzero()[0]
    ledger.words[minted, turn.event.number[minted]] = speech.text[minted]
    state.mint(turn.t, response.answer)
    response, reply, how, cost = as_served(reply, how, cost, response, state.arm.hit_latency_ms)
    cost = cost if own_cost is FREE else total(cost, own_cost)
    return Answered(reply, None, how, cost, response, columns, speech)


def _served(reply: Reply, words: InWords | None) -> tuple[I32, I32, Sequence[str | None]]:
    """How users are served, with which answers, and words of the assistant's own (None: it has none): the model's where
    it was asked for them, else from memory.
    """
    n = len(reply.how)
    if words is None:
        return reply.how, reply.answer, [None] * n
    worded = np.array([text is not None for text in words.words], np.bool_)
    calling = np.zeros(n, np.bool_)
    calling[[row for row, prompts in enumerate(words.asked) if prompts]] = True
    how = np.where(worded, np.where(calling, FALLBACK, STORED), reply.how).astype(np.int32)
    return how, np.where(worded, -1, reply.answer).astype(np.int32), words.words


@dataclass(frozen=True, slots=True)
class _Speech:
    """Parts by which it is decided what the users of one turn are told, `[B]` each."""

    scene: Scene
    state: CohortState
    turn: Turn
    ledger: Ledger
    reply: Reply
    how: I32
    answer: I32
    says: U64 | None  # keys of what served skills say

    def made(self, mine: Sequence[str | None]) -> tuple[Said, Completions]:
        """Words that are said, and the cost of the model; `mine` are words of the assistant's own."""
        n, texts = len(self.how), self.scene.texts
        words, cost = ["" if each is None else each for each in mine], _nothing(n)
        silent = np.array([each is None for each in mine], np.bool_)
        again, calling = (silent & (self.how == STORED)).nonzero()[0], (silent & calls(self.how)).nonzero()[0]
        for row, before in zip(again.tolist(), self._given(again, self.answer[again]), strict=True):
            words[row] = before
        if len(calling):
            answers, spent = self._asked(calling)
            _add(cost, calling, spent)
            for row, answer in zip(calling.tolist(), answers, strict=True):
                words[row] = answer
        text, some = np.full(n, -1, np.int32), [row for row, each in enumerate(words) if each.strip()]
        text[some] = texts.add([words[row] for row in some])
        return Said(words, text), cost

    def _asked(self, rows: I64) -> tuple[list[str], Completions]:
        """Words of the model for users `rows`, in order, and what each costs. Equal asks are made once."""
        llm: SpeakingLLM = self.state.arm.llm
        texts, draws = self.scene.texts, _draws(self.turn.message.event[rows]).tolist()
        messages, skills, earlier = texts.read(self.turn.event.text[rows]), self._skills(rows), self._earlier(rows)
        asks = [
            WordsAsk(PromptParts(message, skill, before), draw, texts.recorded, texts.redacts)
            for message, skill, before, draw in zip(messages, skills, earlier, draws, strict=True)
        ]
        places: dict[WordsAsk, int] = {}
        at = [places.setdefault(ask, len(places)) for ask in asks]
        words, spent = llm.say(list(places))
        return [words[place] for place in at], Completions(*(getattr(spent, f.name)[at] for f in fields(spent)))

    def _earlier(self, rows: I64) -> list[tuple[tuple[str, str], ...]]:
        """Earlier messages in the prompts of users `rows`, with what was said to them, in the order of the reply."""
        recalled = in_prompt(self.reply, self.answer)[rows]
        at, place = ((recalled >= 0) & (self.how[rows] == PROMPTED)[:, None]).nonzero()
        row, handle = rows[at], recalled[at, place]
        messages = self.scene.texts.read(self.state.heard.messages(row, self.state.given[row, handle]))
        exchanges: list[list[tuple[str, str]]] = [[] for _ in rows]
        for user, message, words in zip(at.tolist(), messages, self._given(row, handle), strict=True):
            exchanges[user].append((message, words))
        return [tuple(each) for each in exchanges]

    def _skills(self, rows: I64) -> list[str]:
        """Words of the skills in the prompts of users `rows`; empty: there is none, or it says nothing."""
        if self.says is None:
            return [""] * len(rows)
        keys = np.where(self.how[rows] == PROMPTED, self.says[rows], 0).astype(np.uint64)
        contents = self.scene.texts.contents.of(keys)
        return ["" if each is None else "\n".join(filter(None, (each.issue, each.insight))) for each in contents]

    def _given(self, row: I64, answer: I32) -> list[str]:
        """Words of answers `[n]` of the users of rows `[n]`; empty where nothing was said."""
        text = self.ledger.words[row, answer]
        known = iter(self.scene.texts.read(text[text >= 0]))
        return [next(known) if each >= 0 else "" for each in text.tolist()]


def _draws(event: U64) -> U64:
    """Numbers of samples, the same under all arms: above temperature 0 equal prompts at one event get one answer."""
    return fold(fold(event, int(Purpose.ANSWERED)), 0) >> np.uint64(1)


def _nothing(n: int) -> Completions:
    return Completions(np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n), np.zeros(n))


def _add_own(cost: Completions, words: InWords, asks: OwnAsks | None) -> None:
    """Adds the costs of prompts that assistants asked themselves for what they say.

    Raises RowError for one that was asked and is not counted.
    """
    for row, prompt in () if asks is None else asks.made:
        if row >= len(words.asked) or prompt not in words.asked[row]:
            raise RowError(row, "the model was asked past the `model` of the message, so that nobody would pay for it")
    for row, prompts in enumerate(words.asked):
        for prompt in prompts:
            if asks is not None and (row, prompt) in asks.made:
                _add(cost, np.array([row]), asks.made[row, prompt][1])


def _add(cost: Completions, rows: I64, spent: Completions) -> None:
    """Adds costs `[n]` to those of users `rows`, each of whom comes once."""
    for each in fields(Completions):
        getattr(cost, each.name)[rows] += getattr(spent, each.name)
