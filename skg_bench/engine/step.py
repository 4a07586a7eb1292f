"""The turn, in five steps: perceive, decide, answer, learn, record. There is no other loop."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from skg_bench.core.assistant import Experience, GroundTruth, InWords, Keeping, Message, Reply, no_worth
from skg_bench.core.draws import fold
from skg_bench.core.errors import RowError, UsageError, naming
from skg_bench.core.feedback import AGREES, RATING, KnownFeedback, feedback, joined_rows
from skg_bench.core.grid import I32, I64, U64, Bool, read_only
from skg_bench.core.learning_jobs import LearningCost, cost_of
from skg_bench.core.record import replay_of
from skg_bench.core.spending_checks import check_spent
from skg_bench.core.spoken import answer_words
from skg_bench.core.state import first
from skg_bench.core.texts import Texts
from skg_bench.core.types import FREE, LLM, Prompts
from skg_bench.core.world import (
    PROMPTED,
    RIGHT,
    UNREAD,
    AsServed,
    Execution,
    Metered,
    Reaction,
    Response,
    Served,
    Silence,
    SkillsSaid,
)
from skg_bench.engine.costs import as_served, total
from skg_bench.engine.logbook import TurnWriter
from skg_bench.engine.reading import Reading
from skg_bench.engine.references import Spoken, cosines, said_words, spoken
from skg_bench.engine.replies import (
    Earlier,
    answer_of,
    check_reply,
    chosen_by,
    in_prompt,
    recalled_words,
    reply_parts,
    skills_of,
    with_execution,
)
from skg_bench.engine.scene import Answered, CohortState, Lesson, Scene, Turn, draws_of
from skg_bench.engine.text_view import HeardSimilarity, HeardTexts
from skg_bench.engine.worded import own_asks, worded_answer
from skg_bench.engine.world_checks import check_world_response

_FOREVER = np.iinfo(np.int64).max


def step(scene: Scene, state: CohortState, t: int, n_rows: int, log: TurnWriter) -> None:
    """Turn `t` of the first `n_rows` rows: the message is answered, rated, learned from and logged.

    Raises UsageError, which names component, arm, user and turn, for what a component may not do.
    """
    try:
        _step(scene, state, t, n_rows, log)
    except RowError as error:
        arm = scene.arms[error.row % len(scene.arms)]
        user = "" if scene.users is None else f" user {scene.users[error.row]},"
        raise UsageError(f"{error.component or 'a component'} of arm {arm!r},{user} turn {t}: {error.what}") from error


def _step(scene: Scene, state: CohortState, t: int, n_rows: int, log: TurnWriter) -> None:
    turn = perceive(scene, state, t, n_rows)
    reply = decide(scene, state, turn)
    cause, best = _cause(scene, state, turn), scene.assistant.best(turn.truth, state.memory)
    outcome = (worded_answer if scene.world.domain.in_words else answer)(scene, state, turn, reply)
    if outcome.spoken is not None and _causes_known(scene):
        cause = np.where(outcome.spoken.worded, outcome.spoken.causes(turn.truth, outcome.response), cause)
    lesson = learn(scene, state, turn, outcome, log)
    cause = with_execution(cause, outcome.response)
    jobs = scene.assistant.jobs(state.memory)
    values = {**record(turn, outcome, lesson, cost_of(jobs, len(cause))), "cause": cause}
    values |= outcome.columns
    if outcome.said is not None:
        values["said"] = outcome.said.text
    if outcome.spoken is not None:
        near = cosines(turn.message, *outcome.spoken.served(outcome.reply), state.given, state.heard)
        values["skill_score"] = near
    if best is not None:
        values[scene.world.domain.book] = best
    log.turn(t, **{**values, **scene.assistant.columns(state.memory)})
    for ended, course in scene.assistant.ended(state.memory):
        log.learning(t, ended, turn.event.time, course)
    for at, batch, applied in scene.assistant.updates(state.memory):
        log.update(at, batch, applied)


# ---------------------------------------------------------------------------------------------------- perceive


def perceive(scene: Scene, state: CohortState, t: int, n_rows: int) -> Turn:
    """The turn that the world brings, with what the assistant sees of it."""
    if n_rows < len(state.time):
        state.users = first(state.users, n_rows)
    event, texts = scene.world.events(state.users, t), scene.texts
    gap = event.time - state.time[:n_rows] if t else np.full(n_rows, _FOREVER)
    if t and np.minimum.reduce(gap, initial=0) < 0:
        row = int(gap.argmin())
        back = f"brings an event {-gap[row]} s before the one of the turn before; valid are events in order of time"
        raise RowError(row, back, f"the world of domain {scene.world.domain.name!r}")
    state.time = event.time
    intent = np.arange(n_rows), event.intent
    truth = GroundTruth(
        partial(scene.world.judge, state.users, event), scene.type_names[event.type], event.answerable,
        np.where(event.intent >= 0, state.asked[intent], event.answerable > 0),
        no_worth if scene.reading is None else scene.reading.worth(state.users, event),
    )  # fmt: skip
    state.asked[intent] = True
    heard = state.heard
    heard.said(t, event.text)
    key = fold(scene.keys.arms[:n_rows], event.number)
    asks = own_asks(scene, state, key)
    # copies: what an arm writes into its message must not move the world's clock, or any other part of the event
    number, time, local, text = event.number.copy(), event.time.copy(), event.local.copy(), event.text.copy()
    users = scene.keys.users[:n_rows]
    read_only(number, time, local, text, gap, key, users)
    message = Message(
        t, number, time, local, text, gap, key, users,
        HeardTexts(texts, heard, n_rows), HeardSimilarity(scene.similarity, heard),
        truth if scene.assistant.sees_truth else None, scene.library, scene.world.domain,
        ask=asks or _referring(texts, event.text, key),
    )  # fmt: skip
    return Turn(t, event, draws_of(scene.keys.world[:n_rows], event.number), message, truth, asks)


def _referring(texts: Texts, text: I32, key: U64) -> Callable[[int, str], str]:
    """A simulated model: its words are a reference, whatever the prompt is."""
    return lambda row, _prompt: answer_words(texts.read(text[row : row + 1])[0], int(key[row]))


# ------------------------------------------------------------------------------------------------------ decide


def decide(scene: Scene, state: CohortState, turn: Turn) -> Reply:
    """The reply of the assistant."""
    state.memory, reply = scene.assistant.answer(turn.message, state.memory)
    return reply


def _cause(scene: Scene, state: CohortState, turn: Turn) -> I32:
    """Causes why no right skill answers; -1 where a log is replayed (nobody knows) and where skills are no answers."""
    if _causes_known(scene):
        return scene.assistant.explain(turn.truth, state.memory)
    return np.full(len(turn.event.text), -1, np.int32)


def _causes_known(scene: Scene) -> bool:
    return scene.reading is None and replay_of(scene.world) is None


# ------------------------------------------------------------------------------------------------------ answer


def answer(scene: Scene, state: CohortState, turn: Turn, reply: Reply) -> Answered:
    """Serve the replies; returns what they cost and what comes of them."""
    parts = words, compared, says, own_cost = reply_parts(reply)
    with naming(state.arm.assistant):
        check_reply(reply, parts, state.given, answers=scene.reading is None)
    llm: LLM = state.arm.llm
    spoken_words = None if words is None else _spoken(scene, state, turn, words)
    how, known = reply.how, answer_of(reply, turn.truth, state.given)
    if spoken_words is not None:
        how, known = spoken_words.served(reply)
    compared = np.full(len(how), -1, np.int32) if compared is None else compared
    sayings = UNREAD if scene.reading is None else _sayings(scene.reading, state, how, says)

    def served(how: I32, answer: I32) -> Served:
        ability, if_misled = (llm.ability(how == PROMPTED, fitting=fitting) for fitting in (True, False))
        recalled = in_prompt(reply, answer) if spoken_words is None else spoken_words.in_prompt(answer)
        return Served(how, answer, ability, if_misled, compared, sayings, recalled)

    if spoken_words is not None and (beside := spoken_words.beside(reply)) is not None:
        state.users, minted = scene.world.respond(state.users, turn.event, served(*beside), turn.draws)
        state.mint(turn.t, np.where(spoken_words.unsaid, minted.answer, -1))
    now = served(how, known)
    now = now if spoken_words is None else spoken_words.to_world(now, reads=scene.reading is not None)
    state.users, response = scene.world.respond(state.users, turn.event, now, turn.draws)
    check_world_response(scene.world.domain, response, state.given.shape[1], len(now.how))
    columns = scene.world.domain.columns(response.outcome)
    scene.world.domain.check_feedback(response.feedback)
    if spoken_words is not None:
        response = spoken_words.judged(response)
    feedback, paid = scene.comparison.judged(response.feedback, turn.draws.event)
    if paid is not None:
        response = replace(response, feedback=feedback)
    earlier = _earlier(scene, state)
    length = earlier.words_of[turn.event.text] + (recalled_words(reply, earlier) if scene.reading is None else 0)
    called = llm.complete(Prompts(length, how == PROMPTED, turn.draws.length, turn.draws.latency))
    with naming(llm):
        check_spent(called, turn.rows)
    response, reply, how, cost = as_served(reply, how, called, response, state.arm.hit_latency_ms)
    if spoken_words is not None:
        cost = spoken_words.cost(cost, llm, turn.draws, state.arm.hit_latency_ms)
    if paid is not None:
        cost = replace(cost, cost_usd=cost.cost_usd + paid)
    state.mint(turn.t, response.answer)
    return Answered(reply, spoken_words, how, cost if own_cost is FREE else total(cost, own_cost), response, columns)


def _spoken(scene: Scene, state: CohortState, turn: Turn, words: InWords) -> Spoken:
    """Meaning of the words. Where skills keep no answers, nobody can judge any."""
    assistant = state.arm.assistant
    with naming(assistant.name if isinstance(assistant, Keeping) else assistant):
        judged = scene.reading is None
        return spoken(turn.message, words, scene.keys.arms, turn.truth, _earlier(scene, state), answers=judged)


def _earlier(scene: Scene, state: CohortState) -> Earlier:
    return Earlier(state.given, state.heard, scene.texts.vocabulary.words)


def _sayings(reading: Reading, state: CohortState, how: I32, says: U64 | None) -> SkillsSaid:
    """Kinds of what the served skills say."""
    keys = np.where(how == PROMPTED, 0 if says is None else says, 0).astype(np.uint64)
    return SkillsSaid(*reading.about(keys), state.arm.mood == "fresh")


# ------------------------------------------------------------------------------------------------------- learn


def learn(scene: Scene, state: CohortState, turn: Turn, outcome: Answered, log: TurnWriter) -> Lesson:
    """Feedback is heard, and the assistant learns."""
    rating, (known, known_at), contexts = _heard(state, turn, outcome, log)
    codes = np.full(len(rating), -1, np.int32)

    def offer(users: Bool) -> Reaction:
        state.users, reaction = scene.world.offer(state.users, turn.event, users, turn.draws)
        codes[:] = np.where(reaction.code >= 0, reaction.code, codes)  # a second call takes nothing back
        names = (reaction.name,) if reaction.general is reaction.name else (reaction.name, reaction.general)
        ids = [np.where(name >= 0, name + scene.texts.names.start, -1).astype(np.int32) for name in names]
        for shown in ids:
            state.heard.met(shown)
        return Reaction(reaction.code, ids[0], ids[-1])

    def merge(row: I64, earlier: I32) -> None:
        minted = outcome.response.answer[row] == turn.event.number[row]
        state.users = scene.world.merge(state.users, turn.event, row[minted], earlier[minted], turn.draws)

    heard, answer = rating.copy(), outcome.response.answer.copy()
    read_only(heard, answer, known.row, known.turn, known.kind, known.value, known.skill, known_at)
    seen = Experience(
        turn.message, outcome.reply, answer, heard, contexts, offer, merge,
        partial(_words, scene, turn, outcome),
        (outcome.response.quality == RIGHT) & scene.assistant.sees_truth, _unserved(outcome.response), known_at,
    )  # fmt: skip
    state.memory = scene.assistant.learn(seen, known, state.memory)
    return Lesson(rating, codes)


def _words(scene: Scene, turn: Turn, outcome: Answered) -> list[str]:
    """Words that users were told."""
    if outcome.said is not None:
        return list(outcome.said.words)
    return said_words(turn.message, scene.keys.arms, outcome.response.answer, outcome.reply)


def _unserved(response: Response) -> Bool:
    """Mask of turns at which no skill served after all."""
    match response.case:
        case AsServed() | Metered():
            return np.zeros(len(response.quality), np.bool_)
        case Execution(failed=none) | Silence(unspoken=none):
            return none


def _heard(
    state: CohortState, turn: Turn, outcome: Answered, log: TurnWriter
) -> tuple[I32, tuple[KnownFeedback, I64], Any]:
    """Ratings `[B]` as known with the turn; all feedback that becomes known at it, and since when it was; contexts of
    that about earlier turns, which comes first. What is due later waits.
    """
    given, now, n = outcome.response.feedback, turn.event.time, len(turn.event.text)
    late, since, contexts = state.pending.due(now)
    if not len(given.row):
        return np.full(n, -1, np.int32), (late, since), contexts
    skill = skills_of(outcome.reply, n)
    log.feedback(turn.t, given, now, skill)
    if (waits := given.delay > 0).any():
        state.pending.add(given.rows(waits), turn.t, now, skill, outcome.reply.context)
    at_once = given.rows(~waits)
    known = feedback(at_once.row, turn.t, at_once.kind, at_once.value, skill[at_once.row])
    return given.of_kind(RATING, n), (joined_rows([late, known]), np.concatenate([since, now[known.row]])), contexts


# ------------------------------------------------------------------------------------------------------ record


def record(turn: Turn, outcome: Answered, lesson: Lesson, learning: LearningCost) -> dict[str, np.ndarray]:
    """The columns of the turn log that every assistant has."""
    event, reply, cost, n = turn.event, outcome.reply, outcome.cost, len(turn.event.text)
    quality = outcome.response.quality
    skill, source, propensity = chosen_by(reply, n)
    if outcome.spoken is not None:
        source = outcome.spoken.source
    return {
        "message": event.text, "event": event.number, "time": event.time, "intent": event.intent,
        "request_type": event.type, "answerable": event.answerable, "used_up": event.used_up,
        "user_satisfaction": lesson.rating, "skill": skill,
        "source_turn": source,
        "propensity": propensity, "explored": propensity < 1.0, "serving": outcome.how, "offer": lesson.offer,
        "agrees": outcome.response.feedback.of_kind(AGREES, n), "tokens_in": cost.tokens_in,
        "tokens_out": cost.tokens_out, "cost_usd": cost.cost_usd, "latency_ms": cost.latency_ms,
        "learning_tokens_in": learning.tokens_in, "learning_tokens_out": learning.tokens_out,
        "learning_cost_usd": learning.cost_usd, "answer_correct": np.where(quality < 0, -1, quality == RIGHT),
    }  # fmt: skip
