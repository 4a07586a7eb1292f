"""The turn, in five rooms: perceive, decide, answer, learn, record. There is no other loop: answering one message
online is `decide` with B = 1.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from skg_bench.core.batch import ADD, UPDATE, Batch
from skg_bench.core.deciding import Candidates, Decision
from skg_bench.core.draws import Purpose, fold, uniform
from skg_bench.core.feedback import AGREES, RATING, KnownFeedback, feedback, joined
from skg_bench.core.grid import F64, I32, U64, Bool, sigmoid
from skg_bench.core.record import replay
from skg_bench.core.texts import Texts
from skg_bench.core.types import (
    Completions,
    Observation,
    Prompts,
    Query,
    Shortlist,
    Similarity,
    Skillbooks,
    TurnTruth,
)
from skg_bench.core.vocabulary import TermsOfBook
from skg_bench.core.world import FALLBACK, PROMPTED, RIGHT, STORED, Draws, Event, Reaction, Response, Served, World
from skg_bench.engine.cause import causes
from skg_bench.engine.logbook import Applied, TurnWriter
from skg_bench.engine.memory import Memory, State, refit
from skg_bench.engine.pending import DecisionContext
from skg_bench.engine.sample import sample
from skg_bench.engine.signals import Positions
from skg_bench.engine.skillbook_table import Stamp, Stored
from skg_bench.engine.stack import Stack
from skg_bench.engine.vectors import InBook

_TURN_PURPOSES = (
    Purpose.LLM_RIGHT, Purpose.SKILL_RIGHT, Purpose.LATENCY, Purpose.LENGTH, Purpose.RATING, Purpose.RATED,
    Purpose.LATE, Purpose.DELAY, Purpose.ACCEPT, Purpose.NAME,
)  # fmt: skip
_PURPOSES = np.array([int(p) for p in _TURN_PURPOSES], np.uint64)[:, None]
_NAMES = [purpose.name.lower() for purpose in _TURN_PURPOSES]
_FOREVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys of the users, `[B]` each."""

    world: U64  # for the world's draws
    arms: U64  # for the draws of arms, and for the event keys that they see


@dataclass(frozen=True, slots=True)
class Scene:
    """What the turns of a cohort are made of."""

    world: World[Any]
    similarity: Similarity
    keys: Keys
    texts: Texts
    type_names: I32  # text id of the name of each request type; -1 at the end, for one-offs


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the users who are still there, before it is decided; `[B]` each."""

    t: int
    event: Event  # the world's
    key: U64  # of the event, for the draws of arms
    draws: Draws  # the world's
    query: Query
    books: Skillbooks
    quality: I32 | None  # truth, for oracles: quality that each skill's stored answer would have, [B, S]


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

    choice: Choice
    cost: Completions
    serving: I32  # FALLBACK, STORED or PROMPTED
    source: I32  # turn whose answer was returned, -1: none
    cause: I32  # code in CAUSES, -1: not known
    response: Response


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a turn changed, `[B]` each."""

    rating: I32  # as known with the turn, -1: none
    offer: I32  # code in OFFERS, -1: none was made
    learned: Bool  # a skill was added or renewed


def draws_of(keys: U64, number: I32) -> Draws:
    """The world's draws at events `number` `[B]` of users with these keys."""
    event = fold(keys, number)
    u = uniform(fold(fold(fold(event[None], _PURPOSES), 0), 0))
    return Draws(event=event, **dict(zip(_NAMES, u, strict=True)))


def step(scene: Scene, state: State, t: int, n_rows: int, log: TurnWriter) -> None:
    """Turn `t` of the first `n_rows` rows: the message is answered, rated, learned from and logged."""
    state.trim(n_rows)
    turn = perceive(scene, state, t, n_rows)
    choice = decide(state.stack, turn.query, turn.books, state.memory(), turn.key)
    outcome = answer(scene, state, turn, choice)
    lesson = learn(scene, state, turn, outcome, log)
    record(state, turn, outcome, lesson, log)


# ---------------------------------------------------------------------------------------------------- perceive


def perceive(scene: Scene, state: State, t: int, n_rows: int) -> Turn:
    """What the world brings, and what the arms see of it."""
    world, table, shared = scene.world, state.table, state.stack.shared
    event = world.events(state.users, t)
    now, text = event.time, event.text
    state.time[:n_rows, t] = now
    table.as_of(now)
    quality = truth = None
    if shared.router.sees_truth or shared.curator.sees_truth:
        quality = world.judge(state.users, event, np.arange(n_rows)[:, None], table.answer[:n_rows])
        kind = scene.type_names[event.type]
        truth = TurnTruth(quality, kind, np.zeros(n_rows, np.bool_)) if shared.router.sees_truth else None
    gap = now - state.time[:n_rows, t - 1] if t else np.full(n_rows, _FOREVER)
    books = table.view(n_rows)
    vocabulary = scene.texts.vocabulary
    near, words = InBook(scene.similarity, text, books.example), TermsOfBook(vocabulary, text, books.example)
    query = Query(
        t, now, text, vocabulary.words[text], gap, state.last_skill[:n_rows].copy(), near, words, truth,
        event.local,
    )  # fmt: skip
    draws = draws_of(scene.keys.world[:n_rows], event.number)
    return Turn(t, event, fold(scene.keys.arms[:n_rows], event.number), draws, query, books, quality)


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
    """What is served, what it costs, and what comes of it."""
    world, table, arm, skill = scene.world, state.table, state.stack.shared, choice.skill
    hit, rows, at = skill >= 0, np.arange(len(skill)), np.maximum(skill, 0)
    prompted = arm.serving == "prompted"
    how = np.where(hit, PROMPTED if prompted else STORED, FALLBACK)
    cause = np.full(len(skill), -1, np.int32)
    if replay(world) is None:
        judge = partial(world.judge, state.users, turn.event)
        candidates = choice.decision.candidates
        cause = causes(judge, turn.event.answerable, table, candidates, skill=skill, prompted=prompted)
    served = Served(
        how, np.where(hit, table.answer[rows, at], -1), arm.llm.ability(how == PROMPTED), _compared(state, choice)
    )
    state.users, response = world.respond(state.users, turn.event, served, turn.draws)
    state.answer[: len(skill), turn.t] = response.answer
    prompts = Prompts(turn.query.words, how == PROMPTED, turn.draws.length, turn.draws.latency)
    cost = _cost(arm.llm.complete(prompts), how == STORED, arm.hit_latency_ms)
    return Answered(choice, cost, how, np.where(how == STORED, table.source[rows, at], -1), cause, response)


def _cost(called: Completions, stored: Bool, latency_ms: float) -> Completions:
    """What turns cost: the stored answers no tokens and no price."""
    if not stored.any():
        return called
    tokens_in, tokens_out = np.where(stored, 0, called.tokens_in), np.where(stored, 0, called.tokens_out)
    usd, latency = np.where(stored, 0.0, called.cost_usd), np.where(stored, latency_ms, called.latency_ms)
    return Completions(tokens_in, tokens_out, usd, latency)


def _compared(state: State, choice: Choice) -> I32:
    """The answer of the nearest candidate where the LLM answers and the arm reads whether the two agree; else -1."""
    reads, skill = state.stack.reads_agreement, choice.skill
    if not reads.any():
        return np.full(len(skill), -1, np.int32)
    nearest = choice.shortlist.skill[:, 0]
    asks = np.tile(reads, len(skill) // len(reads)) & (skill < 0) & (nearest >= 0)
    return np.where(asks, state.table.answer[np.arange(len(skill)), np.maximum(nearest, 0)], -1)


# ------------------------------------------------------------------------------------------------------- learn


def learn(scene: Scene, state: State, turn: Turn, outcome: Answered, log: TurnWriter) -> Lesson:
    """Feedback is heard, the skillbook changes, and policies and scorer learn."""
    rating, known = _heard(state, turn, outcome, log)
    choice = outcome.choice
    hit, a, event = choice.skill >= 0, len(choice.skill), turn.event
    state.past[:a, turn.t] = np.where(hit, -1, event.text)
    truth = None
    if turn.quality is not None and state.stack.shared.curator.sees_truth:
        rightly = ~hit & (outcome.response.quality == RIGHT)
        truth = TurnTruth(turn.quality, scene.type_names[event.type], rightly)
    best_similarity = choice.shortlist.similarity.max(axis=1)
    seen = Observation(
        event.time, turn.t, event.text, hit, choice.skill, best_similarity, rating, state.past[:a, : turn.t],
        turn.query.similarity, turn.key, np.ones(a, np.bool_), scene.texts, truth,
    )  # fmt: skip
    reaction = _offer(scene, state, seen, turn)
    state.curators, batch = state.stack.curate(seen, reaction, known, turn.books, state.curators)
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
    return Lesson(rating, reaction.code, learned)


def _heard(state: State, turn: Turn, outcome: Answered, log: TurnWriter) -> tuple[I32, KnownFeedback]:
    """Ratings `[B]` as known with the turn, and all feedback that becomes known at it; what is due later waits."""
    given, skill, now = outcome.response.feedback, outcome.choice.skill, turn.event.time
    context = _shown(state, turn, outcome.choice)
    late = state.pending.due(now, state.ratings)
    if not len(given.row):
        return np.full(len(skill), -1, np.int32), late
    log.feedback(turn.t, given, now, skill)
    rating = given.of_kind(RATING, len(skill))
    rated = np.flatnonzero((skill >= 0) & (rating >= 0))
    state.ratings.add(rated, rating[rated], None if context is None else context.rows(rated))
    if (waits := given.delay > 0).any():
        state.pending.add(given.rows(waits), turn.t, now, skill, context)
    at_once = given.rows(~waits)
    return rating, joined([late, feedback(at_once.row, turn.t, at_once.kind, at_once.value, skill[at_once.row])])


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


def _offer(scene: Scene, state: State, seen: Observation, turn: Turn) -> Reaction:
    """Offers to capture, and how users react: with text ids of names."""
    offers = state.stack.offers(seen, state.curators)
    if not offers.any():
        return Reaction(np.full(len(offers), -1, np.int32), np.full(len(offers), -1, np.int32))
    state.users, reaction = scene.world.offer(state.users, turn.event, offers, turn.draws)
    name = np.where(reaction.name >= 0, reaction.name + scene.texts.names.start, -1)
    return Reaction(reaction.code, name.astype(np.int32))


def _apply(scene: Scene, state: State, turn: Turn, batch: Batch, log: TurnWriter) -> Batch:
    """The operations of a turn carried out and logged; returns them with the skill of each."""
    table, event = state.table, turn.event
    nameless = (batch.op == ADD) & (batch.name < 0)
    if nameless.any():
        nobody = scene.texts.names[-1]
        batch = replace(batch, name=np.where(nameless, nobody, batch.name).astype(np.int32))
    source = batch.row, np.maximum(batch.source, 0)
    stored = Stored(state.time[source], np.where(batch.source >= 0, state.answer[source], -1))
    last = turn.query.last_skill
    batch = replace(batch, skill=table.apply(batch, Stamp(event.time, event.local, last, event.number), stored))
    if len(batch.op):
        log.update(turn.t, batch, Applied(event.time, last, stored.born, table.version, table.hash))
    return batch


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


def record(state: State, turn: Turn, outcome: Answered, lesson: Lesson, log: TurnWriter) -> None:
    """The rows of the turn log."""
    choice = outcome.choice
    table, skill, a = state.table, choice.skill, len(choice.skill)
    candidates, place, propensity = choice.decision.candidates, choice.decision.place, choice.decision.propensity
    rows, hit, quality, event, cost = np.arange(a), skill >= 0, outcome.response.quality, turn.event, outcome.cost
    satisfaction = lesson.rating
    if state.stack.shared.decline_is_miss:
        satisfaction = np.where(lesson.offer == 2, 2, satisfaction)
    ranked = candidates.combined[rows, np.maximum(place, 0)]
    log.turn(
        turn.t, message=event.text, event=event.number, time=event.time, intent=event.intent, request_type=event.type,
        answerable=event.answerable, used_up=event.used_up, max_sim=candidates.similarity.max(axis=1),
        matched_skill=np.where(hit, turn.books.name[rows, np.maximum(skill, 0)], -1),
        skill_score=np.maximum(np.where(hit, ranked, candidates.combined.max(axis=1)), 0.0),
        user_satisfaction=satisfaction,
        skill_learned=lesson.learned, skill=skill, source_turn=outcome.source, propensity=propensity,
        explored=propensity < 1.0, serving=outcome.serving, offer=lesson.offer, tokens_in=cost.tokens_in,
        tokens_out=cost.tokens_out, cost_usd=cost.cost_usd, latency_ms=cost.latency_ms,
        book_size=table.n_active[:a], book_version=table.version[:a], book_hash=table.hash[:a],
        agrees=outcome.response.feedback.of_kind(AGREES, a), cause=outcome.cause,
        answer_correct=np.where(quality < 0, -1, quality == RIGHT),
        shortlist=candidates.skill, similarity=candidates.similarity, preference=candidates.preference,
        combined=candidates.combined,
        score=np.full(candidates.combined.shape, np.nan) if candidates.score is None else candidates.score,
    )  # fmt: skip
