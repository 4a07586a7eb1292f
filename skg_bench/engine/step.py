"""The turn, in five rooms: perceive, decide, answer, learn, record. There is no other loop: answering one message
online is `decide` with B = 1.
"""

from dataclasses import dataclass, replace

import numpy as np

from skg_bench.core.batch import ADD, UPDATE, Batch
from skg_bench.core.deciding import Candidates, Decision
from skg_bench.core.draws import Purpose, fold, uniform
from skg_bench.core.feedback import AGREES, RATING, KnownFeedback, feedback, joined
from skg_bench.core.grid import F64, I32, I64, U64, Bool, sigmoid
from skg_bench.core.record import RecordedAnswers, replay
from skg_bench.core.types import (
    LOGGED,
    RIGHT,
    UNKNOWN,
    WRONG,
    Answer,
    Draws,
    Events,
    Observation,
    Query,
    Reaction,
    Shortlist,
    Similarity,
    Simulator,
    Skillbooks,
    TurnTruth,
)
from skg_bench.core.vocabulary import TermsOfBook, Vocabulary
from skg_bench.engine.cause import causes
from skg_bench.engine.logbook import TurnWriter
from skg_bench.engine.memory import Memory, State, refit
from skg_bench.engine.pending import DecisionContext
from skg_bench.engine.plan import Arm
from skg_bench.engine.sample import sample
from skg_bench.engine.signals import Positions
from skg_bench.engine.skillbook_table import SkillbookTable, Stamp, Stored
from skg_bench.engine.stack import Stack
from skg_bench.engine.vectors import InBook

_TURN_PURPOSES = (
    Purpose.LLM_RIGHT, Purpose.SKILL_RIGHT, Purpose.LATENCY, Purpose.LENGTH, Purpose.RATING, Purpose.RATED,
    Purpose.LATE, Purpose.DELAY, Purpose.ACCEPT, Purpose.NAME,
)  # fmt: skip
_PURPOSES = np.array([int(p) for p in _TURN_PURPOSES], np.uint64)
_FOREVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Scene:
    """What the turns of a cohort are made of."""

    simulator: Simulator
    similarity: Similarity
    events: Events
    vocabulary: Vocabulary
    type_names: I32  # id of the name of each request type; -1 at the end, for one-offs


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the users who are still there, before it is decided; `[B]` each."""

    t: int
    now: I64
    text: I32
    number: I32  # of the event
    key: U64  # of the event, for the draws of arms
    draws: Draws
    type_: I32  # truth: the request type
    kind: I32  # truth: the same, by the id of its name, -1: a one-off
    query: Query
    books: Skillbooks
    quality: I32 | None  # truth, for oracles: quality that each skill's stored answer would have, [B, S]
    logged: RecordedAnswers | None  # what a replayed log says of the event


@dataclass(frozen=True, slots=True)
class Choice:
    """What was decided for `[B]` messages, and on what."""

    shortlist: Shortlist
    features: F64 | None  # [B, K, F]
    decision: Decision
    skill: I32  # [B] -1: the LLM answers


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of the decisions, `[B]` each."""

    answer: Answer
    serving: I32  # 0 LLM, 1 stored, 2 prompted
    quality: I32
    source: I32  # turn whose answer was returned, -1: none
    cause: I32  # code in CAUSES, -1: not known
    reaction: Reaction
    agrees: I32  # the LLM's answer says what the nearest skill's would: 1 the same, 0 not, -1 not compared


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a turn changed, `[B]` each."""

    rating: I32  # as known with the turn, -1: none
    offer: I32  # code in OFFERS, -1: none was made
    learned: Bool  # a skill was added or renewed


def draws_by_turn(keys: U64, number: I32) -> list[Draws]:
    """The world's draws of successive turns; `keys` are of the users, `[B]`, `number` of the events, `[B, steps]`."""
    event = fold(keys[None, :], number.T)
    u = uniform(fold(fold(fold(event[None], _PURPOSES[:, None, None]), 0), 0))
    names = [purpose.name.lower() for purpose in _TURN_PURPOSES]
    return [Draws(event=event[s], **dict(zip(names, u[:, s], strict=True))) for s in range(len(event))]


def trim(draws: Draws, n_users: int) -> Draws:
    """The draws of the first users."""
    return Draws(*(getattr(draws, name)[:n_users] for name in Draws.__dataclass_fields__))


def step(scene: Scene, state: State, t: int, draws: Draws, event: U64, log: TurnWriter) -> None:
    """Turn `t` of the users for whom there are `draws`: the message is answered, rated, learned from and logged.

    `event` `[B]` is the key of the event that arms are handed.
    """
    state.trim(len(draws.event))
    turn = perceive(scene, state, t, draws, event)
    choice = decide(state.stack, turn.query, turn.books, state.memory(), turn.key)
    outcome = answer(scene, state, turn, choice)
    lesson = learn(scene, state, turn, choice, outcome, log)
    record(state, turn, choice, outcome, lesson, log)


# ---------------------------------------------------------------------------------------------------- perceive


def perceive(scene: Scene, state: State, t: int, draws: Draws, event: U64) -> Turn:
    """What the world brings, and what the arms see of it."""
    events, table, stack, a = scene.events, state.table, state.stack, len(draws.event)
    now, text, number = events.time[:a, t], events.text[:a, t], events.number[:a, t]
    type_ = events.truth.type[:a, t]
    kind = scene.type_names[type_]
    table.as_of(now)
    quality = truth = None
    if stack.shared.router.sees_truth or stack.shared.curator.sees_truth:
        every = np.arange(table.active.shape[1])[None]
        quality = _quality(scene.simulator, table, (type_, now), np.arange(a)[:, None], every)
        truth = TurnTruth(quality, kind, np.zeros(a, np.bool_)) if stack.shared.router.sees_truth else None
    gap = now - events.time[:a, t - 1] if t else np.full(a, _FOREVER)
    log_of = replay(scene.simulator)
    logged = None if log_of is None else log_of.logged(events.user[:a], number)
    books = table.view(a)
    near, words = InBook(scene.similarity, text, books.example), TermsOfBook(scene.vocabulary, text, books.example)
    query = Query(
        t, now, text, scene.vocabulary.words[text], gap, state.last_skill[:a].copy(), near, words, truth,
        None if logged is None else logged.local,
    )  # fmt: skip
    return Turn(t, now, text, number, event, draws, type_, kind, query, books, quality, logged)


# ------------------------------------------------------------------------------------------------------ decide


def decide(stack: Stack, query: Query, books: Skillbooks, memory: Memory, event: U64) -> Choice:
    """From messages to decisions: route, describe, score, choose; `event` `[B]` is the key of the draw."""
    arm = stack.shared
    shortlist = arm.router.route(query, books)
    positions = Positions(shortlist, books)
    preference = arm.signals.prefer(books, positions, query.time)
    features = score = None
    if memory.scorer is not None:
        features = arm.signals.describe(query, books, positions, shortlist.similarity, preference)
        score = sigmoid(memory.scorer.score(features))
    combined = arm.signals.combine(shortlist.similarity, preference, score)
    combined[shortlist.skill < 0] = -1.0
    ok = positions.ok + 0.5 * positions.partial
    candidates = Candidates(shortlist.skill, shortlist.similarity, preference, score, combined, positions.uses, ok,
                            positions.rated, memory.llm_turns)  # fmt: skip
    share = stack.propensities(candidates, memory.policies)
    place, propensity = sample(share, positions.at(books.lineage), event)
    skill = np.where(place >= 0, shortlist.skill[np.arange(len(place)), np.maximum(place, 0)], -1).astype(np.int32)
    return Choice(shortlist, features, Decision(query.turn, candidates, place, propensity), skill)


# ------------------------------------------------------------------------------------------------------ answer


def answer(scene: Scene, state: State, turn: Turn, choice: Choice) -> Answered:
    """The answer given, what it was worth, and how the user reacts."""
    simulator, table, arm = scene.simulator, state.table, state.stack.shared
    given, serving, quality, source = _served(arm, simulator, table, turn, choice.skill)
    cause = np.full(len(quality), -1, np.int32)
    if turn.logged is None:
        answerable = scene.events.truth.answerable[: len(quality), turn.t]
        cause = causes(
            simulator, table, turn.type_, turn.now, answerable, choice.shortlist.skill,
            choice.decision.candidates.combined, choice.skill, prompted=arm.serving == "prompted",
        )  # fmt: skip
    agrees = np.full(len(quality), -1, np.int32)
    reads = state.stack.reads_agreement
    if reads.any():
        calls = (choice.skill < 0) & np.tile(reads, len(quality) // len(reads))
        agrees = _compared(simulator, table, turn, choice.shortlist.skill[:, 0], calls, quality)
    reaction = simulator.react(quality, turn.draws)
    if turn.logged is not None:
        reaction = Reaction(np.where(quality == LOGGED, turn.logged.rating, -1), turn.logged.delay)
    return Answered(given, serving, quality, source, cause, reaction, agrees)


def _quality(simulator: Simulator, table: SkillbookTable, event: tuple[I32, I64], rows: I64, skill: I64 | I32) -> I32:
    """Quality of the stored answers of `skill` `[B, S]` for events of a type and time, `[B]` each."""
    type_, now = event
    source_type, right, born = table.source_type[rows, skill], table.source_right[rows, skill], table.born[rows, skill]
    return simulator.judge(type_[:, None], source_type, right, now[:, None] - born)


def _served(
    arm: Arm, simulator: Simulator, table: SkillbookTable, turn: Turn, skill: I32
) -> tuple[Answer, I32, I32, I32]:
    """The answer given: its cost, how it was served (0 LLM, 1 stored, 2 prompted), quality, and source turn."""
    type_, now, words, draws = turn.type_, turn.now, turn.query.words, turn.draws
    hit = skill >= 0
    at = np.maximum(skill, 0)[:, None]
    rows = np.arange(len(skill))[:, None]
    stored = _quality(simulator, table, (type_, now), rows, at)[:, 0]
    prompted = arm.serving == "prompted"
    called = arm.llm.answer(words, hit & prompted, draws)
    fresh = np.where(called.right, RIGHT, WRONG)
    if turn.logged is not None:
        fresh = np.where(hit | ~turn.logged.by_llm, UNKNOWN, LOGGED)
    if prompted:
        # a skill's prompt carries no answer: what counts is that it is about the same intent
        same_intent = simulator.judge(
            type_[:, None], table.source_type[rows, at], np.ones(at.shape, np.bool_), now[:, None] * 0
        )
        quality = np.where(hit & (same_intent[:, 0] == WRONG), WRONG, fresh)
        return called, np.where(hit, 2, 0), quality, np.full(len(skill), -1)
    served = arm.llm.serve(words, draws)
    given = type(called)(*(np.where(hit, getattr(served, f), getattr(called, f)) for f in called.__dataclass_fields__))
    source = np.where(hit, table.source[rows, at][:, 0], -1)
    return given, hit.astype(np.int8), np.where(hit, stored, fresh), source


def _compared(simulator: Simulator, table: SkillbookTable, turn: Turn, nearest: I32, calls: Bool, fresh: I32) -> I32:
    """What the LLM said at its `calls`, against the nearest candidate's answer: 1 the same, 0 not, -1 not compared,
    `[B]`.
    """
    at = np.maximum(nearest, 0)[:, None]
    stored = _quality(simulator, table, (turn.type_, turn.now), np.arange(len(at))[:, None], at)[:, 0]
    same = simulator.same_answer(stored, fresh, turn.draws)
    return np.where(calls & (nearest >= 0), same, -1).astype(np.int32)


# ------------------------------------------------------------------------------------------------------- learn


def learn(scene: Scene, state: State, turn: Turn, choice: Choice, outcome: Answered, log: TurnWriter) -> Lesson:
    """Feedback is heard, the skillbook changes, and policies and scorer learn."""
    rating, known = _heard(state, turn, choice, outcome, log)
    quality, hit, a = outcome.quality, choice.skill >= 0, len(choice.skill)
    state.past[:a, turn.t], state.right[:a, turn.t] = np.where(hit, -1, turn.text), quality == RIGHT
    truth = None
    if turn.quality is not None and state.stack.shared.curator.sees_truth:
        truth = TurnTruth(turn.quality, turn.kind, ~hit & (quality == RIGHT))
    best_similarity = choice.shortlist.similarity.max(axis=1)
    seen = Observation(
        turn.now, turn.t, turn.text, hit, choice.skill, best_similarity, rating, state.past[:a, : turn.t],
        turn.query.similarity, turn.key, np.ones(a, np.bool_), truth,
    )  # fmt: skip
    offer, name = _offer(scene.simulator, state, seen, turn)
    state.curators, batch = state.stack.curate(seen, offer, name, known, turn.books, state.curators)
    batch = _apply(scene, state, turn, batch, log)
    state.policies = state.stack.learned(state.policies, choice.decision, known, batch)

    stores = np.flatnonzero((batch.op == ADD) | (batch.op == UPDATE))
    answering = stores[state.table.active[batch.row[stores], batch.skill[stores]]]
    learned = np.zeros(a, np.bool_)
    learned[batch.row[answering]] = True
    state.last_skill[:a] = choice.skill
    state.last_skill[batch.row[answering]] = batch.skill[answering]
    state.llm_turns[:a] += ~hit
    _fit(state, turn.t, learned)
    return Lesson(rating, offer, learned)


def _heard(state: State, turn: Turn, choice: Choice, outcome: Answered, log: TurnWriter) -> tuple[I32, KnownFeedback]:
    """Ratings `[B]` as known with the turn, and all feedback that becomes known at it; what is due later waits."""
    reaction, skill, now = outcome.reaction, choice.skill, turn.now
    given = reaction.rating >= 0
    rating = np.where(given & (reaction.delay == 0), reaction.rating, -1).astype(np.int32)
    context = _shown(state, turn, choice)
    late = state.pending.due(now, state.ratings)
    rows = np.flatnonzero(given)
    if len(rows):
        log.feedback(turn.t, rows, now[rows], now[rows] + reaction.delay[rows], skill[rows], reaction.rating[rows])
    rated = np.flatnonzero((skill >= 0) & (rating >= 0))
    state.ratings.add(rated, rating[rated], None if context is None else context.rows(rated))
    state.pending.add(np.flatnonzero(given & (reaction.delay > 0)), turn.t, now, reaction, skill, context)
    known = [late]
    if len(rated):
        known.append(feedback(rated, turn.t, RATING, rating[rated], skill[rated]))
    compared = np.flatnonzero(outcome.agrees >= 0)
    if len(compared):
        known.append(feedback(compared, turn.t, AGREES, outcome.agrees[compared], skill[compared]))
    return rating, joined(known)


def _shown(state: State, turn: Turn, choice: Choice) -> DecisionContext | None:
    """What the served skills were chosen from; None if no scorer learns from it, now or later."""
    features, candidates = choice.features, choice.decision.candidates
    if features is None and state.ratings.keep:
        signals, books = state.stack.shared.signals, turn.books
        features = signals.describe(turn.query, books, Positions(choice.shortlist, books), candidates.similarity,
                                    candidates.preference)  # fmt: skip
    if features is None:
        return None
    listed = (choice.shortlist.skill >= 0).sum(axis=1, dtype=np.int32)
    return DecisionContext(features, listed, choice.decision.place, turn.key)


def _offer(simulator: Simulator, state: State, seen: Observation, turn: Turn) -> tuple[I32, I32]:
    """Offers to capture, and how users react: `[B]` codes and names, -1 where none was made."""
    offers = state.stack.offers(seen, state.curators)
    a = len(offers)
    offer, name = np.full(a, -1, np.int32), np.full(a, -1, np.int32)
    if offers.any():
        idle = seen.time - state.last_offer[:a]
        code, given, tired = simulator.offer(turn.type_, seen.text, state.fatigue[:a], idle, turn.draws)
        offer, name = np.where(offers, code, offer), np.where(offers, given, name)
        state.fatigue[:a] = np.where(offers, tired, state.fatigue[:a])
        state.last_offer[:a] = np.where(offers, seen.time, state.last_offer[:a])
    return offer, name


def _apply(scene: Scene, state: State, turn: Turn, batch: Batch, log: TurnWriter) -> Batch:
    """The operations of a turn carried out and logged; returns them with the skill of each."""
    table, events = state.table, scene.events
    nameless = (batch.op == ADD) & (batch.name < 0)
    if nameless.any():
        nobody = len(scene.simulator.names) - 1
        batch = replace(batch, name=np.where(nameless, nobody, batch.name).astype(np.int32))
    source = batch.row, np.maximum(batch.source, 0)
    stored = Stored(events.time[source], events.truth.type[source], state.right[source])
    last, local = turn.query.last_skill, turn.query.local
    operated = table.apply(batch, Stamp(turn.now, turn.now if local is None else local, last, turn.number), stored)
    if len(batch.op):
        log.update(turn.t, batch, operated, turn.now, last, stored.born, table.version, table.hash)
    return replace(batch, skill=operated)


def _fit(state: State, t: int, learned: Bool) -> None:
    """The scorer learns from new ratings, where a refit is due and the arm may learn."""
    arm, a = state.stack.shared, len(learned)
    refits = state.stack.refits(t)
    if state.scorer is None or not refits.any():
        return
    may = refits if len(refits) == 1 else np.tile(refits, a // len(refits))
    wants = state.wants_refit[:a]
    wants |= may & (((t + 1) % arm.refit_every == 0) | (learned & arm.refit_on_capture))
    due = wants & may & (t - state.refitted[:a] >= arm.refit_apart)
    wants[due] = False
    state.scorer, taught = refit(arm, state.scorer, state.ratings, due)
    state.refitted[taught] = t


# ------------------------------------------------------------------------------------------------------ record


def record(state: State, turn: Turn, choice: Choice, outcome: Answered, lesson: Lesson, log: TurnWriter) -> None:
    """The rows of the turn log."""
    table, skill, a = state.table, choice.skill, len(choice.skill)
    candidates, place, propensity = choice.decision.candidates, choice.decision.place, choice.decision.propensity
    rows, hit, quality = np.arange(a), skill >= 0, outcome.quality
    satisfaction = lesson.rating
    if state.stack.shared.decline_is_miss:
        satisfaction = np.where(lesson.offer == 2, 2, satisfaction)
    ranked = candidates.combined[rows, np.maximum(place, 0)]
    log.turn(
        turn.t, max_sim=candidates.similarity.max(axis=1),
        matched=np.where(hit, turn.books.name[rows, np.maximum(skill, 0)], -1),
        skill_score=np.maximum(np.where(hit, ranked, candidates.combined.max(axis=1)), 0.0), satisfaction=satisfaction,
        skill_learned=lesson.learned, skill=skill, source_turn=outcome.source, propensity=propensity,
        explored=propensity < 1.0, serving=outcome.serving, offer=lesson.offer, tokens_in=outcome.answer.tokens_in,
        tokens_out=outcome.answer.tokens_out, cost_usd=outcome.answer.cost_usd, latency_ms=outcome.answer.latency_ms,
        book_size=table.n_active[:a], book_version=table.version[:a], book_hash=table.hash[:a],
        agrees=outcome.agrees, correct=np.where(quality < 0, -1, quality == RIGHT), cause=outcome.cause,
        shortlist=candidates.skill, similarity=candidates.similarity, preference=candidates.preference,
        combined=candidates.combined,
        score=np.full(candidates.combined.shape, np.nan) if candidates.score is None else candidates.score,
    )  # fmt: skip
