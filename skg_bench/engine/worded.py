"""Answers in words, in a world that judges words: what the model is asked, what is said, and what that costs.

The world judges what users are told, at each event at which they are told it. So what was said once may be right at one
event and outdated at another.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import cast

import numpy as np

from skg_bench.core.assistant import FromBook, InWords, Reply
from skg_bench.core.draws import Purpose, fold
from skg_bench.core.errors import naming
from skg_bench.core.grid import I32, U64, Bool
from skg_bench.core.spending_checks import check_spent
from skg_bench.core.types import FREE, Completions, Exchange, SpeakingLLM, WordsAsk
from skg_bench.core.world import PROMPTED, STORED, UNREAD, Ledger, Served, calls, ledger_of
from skg_bench.engine.costs import as_served, total
from skg_bench.engine.replies import check_reply, in_prompt, reply_parts
from skg_bench.engine.scene import Answered, CohortState, OwnAsks, Said, Scene, Turn


def own_asks(scene: Scene, state: CohortState, event: U64) -> OwnAsks | None:
    """Asks of a turn with event keys `event` `[B]`, where the arm's model answers in words; None: it does not."""
    if not scene.world.domain.in_words:
        return None
    llm, draws = cast("SpeakingLLM", state.arm.llm), _draws(event).tolist()

    def say(row: int, prompt: str) -> tuple[str, Completions]:
        with naming(llm):
            words, cost = llm.say([WordsAsk(prompt, draws[row], scene.texts.recorded, scene.texts.redacts)])
        return words[0], cost

    return OwnAsks(say)


def answer_in_words(scene: Scene, state: CohortState, turn: Turn, reply: Reply) -> Answered:
    """Serve the replies; returns what is said, what it costs and what comes of it."""
    parts = words, compared, says, own_cost = reply_parts(reply)
    with naming(state.arm.assistant):
        check_reply(reply, parts, state.given, answers=True)
    n, ledger = len(reply.how), ledger_of(state.users)
    how, answer, own = _served(turn, reply, words)
    with naming(state.arm.llm):
        said, cost = _said(scene, state, turn, _Serving(reply, how, answer, own, says), ledger)
        check_spent(cost, turn.rows)
    nobody = np.full(n, np.nan)
    now = Served(
        how, answer, nobody, nobody, np.full(n, -1, np.int32) if compared is None else compared, UNREAD,
        in_prompt(reply, answer), said.words,
    )  # fmt: skip
    state.users, response = scene.world.respond(state.users, turn.event, now, turn.draws)
    columns = scene.world.domain.columns(response.outcome)
    scene.world.domain.check_feedback(response.feedback)
    feedback, paid = scene.comparison.judged(response.feedback, turn.draws.event)
    if paid is not None:
        response, cost = replace(response, feedback=feedback), replace(cost, cost_usd=cost.cost_usd + paid)
    minted = (calls(how) & (response.answer == turn.event.number)).nonzero()[0]
    ledger.words[minted, turn.event.number[minted]] = said.text[minted]
    state.mint(turn.t, response.answer)
    response, reply, how, cost = as_served(reply, how, cost, response, state.arm.hit_latency_ms)
    return Answered(reply, None, how, cost if own_cost is FREE else total(cost, own_cost), response, columns, said)


@dataclass(frozen=True, slots=True)
class _Serving:
    reply: Reply
    how: I32
    answer: I32
    own: Sequence[str | None]  # words of the assistant's own
    says: U64 | None  # keys of what served skills say


def _served(turn: Turn, reply: Reply, words: InWords | None) -> tuple[I32, I32, Sequence[str | None]]:
    """How users are served, with which answers, and words of the assistant's own: these are the model's where it was
    asked for them, else they were in its memory.
    """
    n = len(reply.how)
    if words is None:
        return reply.how, reply.answer, [None] * n
    own = np.array([text is not None for text in words.words], np.bool_)
    asked = np.zeros(n, np.bool_)
    asked[[row for row, prompts in enumerate(words.asked) if prompts]] = True
    how = np.where(own, np.where(asked, 0, STORED), reply.how).astype(np.int32)
    return how, np.where(own, -1, reply.answer).astype(np.int32), words.words


def _said(scene: Scene, state: CohortState, turn: Turn, serving: _Serving, ledger: Ledger) -> tuple[Said, Completions]:
    """What the users are told, and what the model costs for it, `[B]`."""
    n, how = len(serving.how), serving.how
    words = ["" if mine is None else mine for mine in serving.own]
    silent = np.array([mine is None for mine in serving.own], np.bool_)
    again = (silent & (how == STORED)).nonzero()[0]
    for row, text in zip(again.tolist(), _words_of(scene, ledger, again, serving.answer[again]), strict=True):
        words[row] = text
    asked = (silent & calls(how)).nonzero()[0]
    cost = _nothing(n)
    if turn.asks is not None:
        for row, spent in turn.asks.spent:
            for each in fields(Completions):
                getattr(cost, each.name)[row] += getattr(spent, each.name)[0]
    if len(asked):
        mask = np.zeros(n, np.bool_)
        mask[asked] = True
        spoken, spent = _asked(scene, state, turn, serving, ledger, mask)
        for row, text in zip(asked.tolist(), spoken, strict=True):
            words[row] = text
        for each in fields(Completions):
            getattr(cost, each.name)[asked] = getattr(spent, each.name)
    some, text = [row for row, mine in enumerate(words) if mine], np.full(n, -1, np.int32)
    text[some] = scene.texts.add([words[row] for row in some])
    return Said(words, text), cost


def _asked(
    scene: Scene, state: CohortState, turn: Turn, serving: _Serving, ledger: Ledger, asked: Bool
) -> tuple[list[str], Completions]:
    """Words of the model for the users `asked`, in order, and what each ask costs. Equal asks are made once."""
    llm, texts = cast("SpeakingLLM", state.arm.llm), scene.texts
    rows, draws = asked.nonzero()[0], _draws(turn.message.event)
    messages = texts.read(turn.event.text[rows])
    earlier, skills = _earlier(scene, state, serving, ledger, asked), _skills(scene, serving, rows)
    asks = [
        WordsAsk(Exchange(message, skill, tuple(earlier.get(row, ()))), draw, texts.recorded, texts.redacts)
        for row, message, skill, draw in zip(rows.tolist(), messages, skills, draws[rows].tolist(), strict=True)
    ]
    places = {ask: place for place, ask in enumerate(dict.fromkeys(asks))}
    words, spent = llm.say(list(places))
    at = np.array([places[ask] for ask in asks])
    return [words[place] for place in at.tolist()], Completions(*(getattr(spent, f.name)[at] for f in fields(spent)))


def _earlier(
    scene: Scene, state: CohortState, serving: _Serving, ledger: Ledger, asked: Bool
) -> dict[int, list[tuple[str, str]]]:
    """Earlier messages in the prompts of users `asked`, by row, and what was said to them, in the order of the reply."""
    recalled = in_prompt(serving.reply, serving.answer)
    row, place = ((recalled >= 0) & (asked & (serving.how == PROMPTED))[:, None]).nonzero()
    handle = recalled[row, place]
    messages = scene.texts.read(state.heard.messages(row, state.given[row, handle]))
    by_row = dict[int, list[tuple[str, str]]]()
    for user, message, words in zip(row.tolist(), messages, _words_of(scene, ledger, row, handle), strict=True):
        by_row.setdefault(user, []).append((message, words))
    return by_row


def _skills(scene: Scene, serving: _Serving, rows: np.ndarray) -> Sequence[str]:
    """What the skills in the prompts of users `rows` say; empty: there is none, or it says nothing."""
    match serving.reply.case:
        case FromBook(says=says):
            prompted = serving.how[rows] == PROMPTED
            contents = scene.texts.contents.of(np.where(prompted, says[rows], 0).astype(np.uint64))
            return ["" if each is None else "\n".join(filter(None, (each.issue, each.insight))) for each in contents]
        case _:
            return [""] * len(rows)


def _words_of(scene: Scene, ledger: Ledger, row: np.ndarray, answer: I32) -> list[str]:
    """Words of answers `[n]` of the users of rows `[n]`; empty where nothing was said."""
    text = ledger.words[row, answer]
    known = iter(scene.texts.read(text[text >= 0]))
    return [next(known) if each >= 0 else "" for each in text.tolist()]


def _draws(event: U64) -> U64:
    """Numbers of samples, the same under all arms: above temperature 0 equal prompts at one event get one answer."""
    return fold(fold(event, int(Purpose.ANSWERED)), 0) >> np.uint64(1)


def _nothing(n: int) -> Completions:
    return Completions(np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n), np.zeros(n))
