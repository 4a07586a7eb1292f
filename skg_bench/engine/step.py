"""The turn. There is no other loop: answering one message online is `decide` with B = 1."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from skg_bench.core.batch import ADD, UPDATE
from skg_bench.core.draws import Purpose, fold, uniform
from skg_bench.core.grid import F64, I32, I64, U64, Bool, sigmoid
from skg_bench.core.record import RecordedAnswers, replay
from skg_bench.core.trials import Trials
from skg_bench.core.types import (
    LOGGED,
    RIGHT,
    UNKNOWN,
    WRONG,
    Answer,
    Candidates,
    Decision,
    Draws,
    Events,
    Observation,
    Query,
    Reaction,
    Scorer,
    Shortlist,
    Similarity,
    Simulator,
    Skillbooks,
    TurnTruth,
)
from skg_bench.core.vocabulary import Vocabulary
from skg_bench.engine.cause import causes
from skg_bench.engine.comparisons import Comparisons, compares, comparing
from skg_bench.engine.logbook import TurnWriter
from skg_bench.engine.pending import DecisionContext, Pending, Ratings
from skg_bench.engine.plan import Arm
from skg_bench.engine.signals import Positions
from skg_bench.engine.skillbook_table import SkillbookTable
from skg_bench.engine.weighings import Weighings, weighs

_TURN_PURPOSES = (
    Purpose.LLM_RIGHT, Purpose.SKILL_RIGHT, Purpose.LATENCY, Purpose.LENGTH, Purpose.RATING, Purpose.RATED,
    Purpose.LATE, Purpose.DELAY, Purpose.ACCEPT, Purpose.NAME, Purpose.POLICY,
)  # fmt: skip
_PURPOSES = np.array([int(p) for p in _TURN_PURPOSES], np.uint64)
_FOREVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Choice:
    """What was decided for `[B]` messages, and on what."""

    shortlist: Shortlist
    preference: F64  # [B, K]
    score: F64 | None  # [B, K]
    combined: F64  # [B, K], -1 beyond the end
    features: F64 | None  # [B, K, F]
    decision: Decision
    trials: Trials | None  # of a policy that learns how to weigh the signals


def decide(
    arm: Arm,
    query: Query,
    books: Skillbooks,
    scorer: Scorer | None,
    llm_turns: I32,
    draws: Draws,
    comparisons: Comparisons | None = None,
    weighings: Weighings | None = None,
) -> Choice:
    """From messages to decisions: route, describe, score, choose."""
    shortlist = arm.router.route(query, books)
    positions = Positions(shortlist, books)
    preference = arm.signals.prefer(books, positions, query.time)
    features = score = None
    if scorer is not None:
        features = arm.signals.describe(query, books, positions, shortlist.similarity, preference)
        score = sigmoid(scorer.score(features))
    combined = arm.signals.combine(shortlist.similarity, preference, score)
    combined[shortlist.skill < 0] = -1.0
    compared = trials = None
    if comparisons is not None:
        compared = comparisons.of(shortlist.skill[:, 0], shortlist.similarity[:, 0], query.turn)
    if weighings is not None:
        trials = weighings.of(shortlist.skill, shortlist.similarity, preference, score)
    ok = positions.ok + 0.5 * positions.partial
    candidates = Candidates(
        shortlist.skill, combined, positions.uses, ok, positions.rated, llm_turns, compared, trials
    )  # fmt: skip
    decision = arm.policy.choose(candidates, draws)
    return Choice(shortlist, preference, score, combined, features, decision, trials)


class State:
    """All that one arm remembers of a cohort."""

    def __init__(
        self, arm: Arm, n_users: int, n_turns: int, name_hash: U64, text_hash: U64, similarity: Similarity
    ) -> None:
        self.table = SkillbookTable(n_users, name_hash, text_hash, similarity)
        self.past = np.full((n_users, n_turns), -1, np.int32)  # messages that the LLM answered
        self.right = np.zeros((n_users, n_turns), np.bool_)  # was the answer? (truth)
        self.reranker = arm.reranker
        self.scorer = arm.reranker.start(n_users, arm.signals.names)
        self.pending = Pending(n_users)
        self.ratings = Ratings(n_users, arm.reranker.window)
        self.wants_refit = np.zeros(n_users, np.bool_)
        self.refitted = np.full(n_users, -(2**40))  # turn of the last refit; before the first, long ago
        self.last_skill = np.full(n_users, -1, np.int32)
        self.llm_turns = np.zeros(n_users, np.int32)
        self.comparisons = Comparisons(n_users, n_turns) if compares(arm.policy) else None
        self.weighings = Weighings(arm.policy, arm.signals, n_users, n_turns) if weighs(arm.policy) else None
        self.fatigue = np.zeros(n_users)
        self.last_offer = np.zeros(n_users, np.int64)

    def switch_arm(self, arm: Arm, later: Sequence[Arm]) -> None:
        """From the next turn on the components of `arm` are in force, then those of `later`, if any.

        A recipe for reranking other than the one before learns from all ratings known so far.
        """
        n_users = len(self.last_skill)
        if self.comparisons is None and compares(arm.policy):
            self.comparisons = Comparisons(*self.past.shape)
        self._weigh(arm)
        if arm.reranker != self.reranker:
            self.reranker, self.scorer = arm.reranker, arm.reranker.start(n_users, arm.signals.names)
            self.ratings.restart(arm.reranker.window)
            if self.scorer is not None:
                self.scorer, _ = _refit(arm, self.scorer, self.ratings, np.ones(n_users, np.bool_))
        elif not self.ratings.keep and any(other.reranker != arm.reranker for other in later):
            self.ratings = Ratings(n_users, arm.reranker.window, keep=True)

    def _weigh(self, arm: Arm) -> None:
        """A policy other than the one before begins to learn how to weigh the signals."""
        now = self.weighings
        if now is None or (now.policy, now.signals) != (arm.policy, arm.signals):
            self.weighings = Weighings(arm.policy, arm.signals, *self.past.shape) if weighs(arm.policy) else None

    def rewind(self) -> None:
        """Back to the first turn, with the skillbook and the scorer from later on."""
        n_users = len(self.last_skill)
        if self.comparisons is not None:
            self.comparisons = Comparisons(*self.past.shape)
        if self.weighings is not None:
            self.weighings = Weighings(self.weighings.policy, self.weighings.signals, *self.past.shape)
        self.table.hindsight()
        self.pending = Pending(n_users)
        for column, empty in ((self.past, -1), (self.right, False), (self.last_skill, -1), (self.llm_turns, 0),
                              (self.fatigue, 0.0), (self.last_offer, 0)):  # fmt: skip
            column[...] = empty


def draws_by_turn(keys: U64, number: I32) -> list[Draws]:
    """The random draws of successive turns; `keys` are of the users, `[B]`, `number` of the events, `[B, steps]`."""
    event = fold(keys[None, :], number.T)
    u = uniform(fold(fold(fold(event[None], _PURPOSES[:, None, None]), 0), 0))
    names = [purpose.name.lower() for purpose in _TURN_PURPOSES]
    return [Draws(event=event[s], **dict(zip(names, u[:, s], strict=True))) for s in range(len(event))]


def trim(draws: Draws, n_users: int) -> Draws:
    """The draws of the first users."""
    return Draws(*(getattr(draws, name)[:n_users] for name in Draws.__dataclass_fields__))


def step(
    arm: Arm,
    simulator: Simulator,
    similarity: Similarity,
    events: Events,
    vocabulary: Vocabulary,
    state: State,
    t: int,
    a: int,
    draws: Draws,
    log: TurnWriter,
) -> None:
    """Turn `t` of the first `a` users: the message is answered, rated, learned from and logged."""
    table, now, text = state.table, events.time[:a, t], events.text[:a, t]
    type_ = events.truth.type[:a, t]
    table.as_of(now)
    books = table.view(a)
    last = state.last_skill[:a].copy()
    gap = now - events.time[:a, t - 1] if t else np.full(a, _FOREVER)
    log_of = replay(simulator)
    logged = None if log_of is None else log_of.logged(events.user[:a], events.number[:a, t])
    local = None if logged is None else logged.local
    truth = None
    if arm.router.sees_truth or arm.curator.sees_truth:
        quality = _quality(simulator, table, type_, now, np.arange(a)[:, None], np.arange(table.active.shape[1])[None])
        truth = TurnTruth(quality, type_, np.zeros(a, np.bool_))
    query = Query(events.user[:a], t, now, text, vocabulary.words[text], gap, last, similarity, vocabulary,
                  truth if arm.router.sees_truth else None, local)  # fmt: skip
    choice = decide(arm, query, books, state.scorer, state.llm_turns[:a], draws, state.comparisons, state.weighings)

    rows = np.arange(a)
    place = choice.decision.place
    skill = np.where(place >= 0, choice.shortlist.skill[rows, np.maximum(place, 0)], -1).astype(np.int32)
    hit = skill >= 0
    answer, serving, quality, source = _answer(arm, simulator, table, skill, type_, now, query.words, draws, logged)
    cause = np.full(a, -1)
    if logged is None:
        cause = causes(simulator, table, type_, now, events.truth.answerable[:a, t], choice.shortlist.skill,
                       choice.combined, skill, prompted=arm.serving == "prompted")  # fmt: skip

    agrees = np.full(a, -1)
    if state.comparisons is not None:
        asked = ~hit & comparing(arm.policy, a)
        agrees = _compare(simulator, table, state.comparisons, choice.shortlist, t, type_, now, asked, quality, draws)

    reaction = simulator.react(quality, draws)
    if logged is not None:
        reaction = Reaction(np.where(quality == LOGGED, logged.rating, -1), logged.delay)
    given = reaction.rating >= 0
    rating = np.where(given & (reaction.delay == 0), reaction.rating, -1).astype(np.int32)
    context, features = None, choice.features
    if features is None and state.ratings.keep:
        features = arm.signals.describe(query, books, Positions(choice.shortlist, books), choice.shortlist.similarity,
                                        choice.preference)  # fmt: skip
    if features is not None:
        context = DecisionContext(
            features, (choice.shortlist.skill >= 0).sum(axis=1, dtype=np.int32), place, draws.event
        )
    feedback = state.pending.due(now, state.ratings)
    told = np.flatnonzero(given)
    if len(told):
        log.feedback(t, told, now[told], now[told] + reaction.delay[told], skill[told], reaction.rating[told])
    known = np.flatnonzero(hit & (rating >= 0))
    if state.weighings is not None and choice.trials is not None:
        state.weighings.chosen(t, choice.trials, place, choice.decision.propensity)
        state.weighings.learn(feedback.row, feedback.turn, feedback.rating)
        state.weighings.learn(known, np.full(len(known), t), rating[known])
    state.ratings.add(known, rating[known], None if context is None else context.rows(known))
    wait = np.flatnonzero(given & (reaction.delay > 0))
    state.pending.add(wait, t, now, reaction, skill, context)

    best_similarity = choice.shortlist.similarity.max(axis=1)
    if truth is not None:
        truth = TurnTruth(truth.quality, type_, ~hit & (quality == RIGHT))
    state.past[:a, t], state.right[:a, t] = np.where(hit, -1, text), quality == RIGHT
    seen = Observation(now, t, text, hit, skill, best_similarity, rating, state.past[:a, :t], similarity, draws.event,
                       truth if arm.curator.sees_truth else None)  # fmt: skip
    offer, name = _offer(arm, simulator, state, seen, type_, draws)
    batch = arm.curator.curate(seen, offer, name, feedback, books)
    nameless = (batch.op == ADD) & (batch.name < 0)
    if nameless.any():
        batch = replace(batch, name=np.where(nameless, len(simulator.names) - 1, batch.name).astype(np.int32))
    source_of = batch.row, np.maximum(batch.source, 0)
    born = events.time[source_of]
    operated = table.apply(batch, now, last, born, events.truth.type[source_of], state.right[source_of], local)
    if len(batch.op):
        log.update(t, batch, operated, now, last, born, table.version, table.hash)
    stores = (batch.op == ADD) | (batch.op == UPDATE)
    answering = np.flatnonzero(stores & table.active[batch.row, operated])
    if state.comparisons is not None:
        state.comparisons.forget(batch.row[stores], operated[stores])
    learned = np.zeros(a, np.bool_)
    learned[batch.row[answering]] = True
    state.last_skill[:a] = skill
    state.last_skill[batch.row[answering]] = operated[answering]
    state.llm_turns[:a] += ~hit

    learns = np.atleast_1d(arm.curator.learns(t))
    if state.scorer is not None and learns.any():
        learns = np.tile(learns, a // len(learns))
        wants = state.wants_refit[:a]
        wants |= learns & (_nth(arm, t) | (learned & arm.refit_on_capture))
        due = wants & learns & (t - state.refitted[:a] >= arm.refit_apart)
        wants[due] = False
        state.scorer, taught = _refit(arm, state.scorer, state.ratings, due)
        state.refitted[taught] = t

    said = rating
    if arm.decline_is_miss:
        said = np.where(offer == 2, 2, rating)
    ranked = choice.combined[rows, np.maximum(place, 0)]
    log.turn(
        t, max_sim=best_similarity, matched=np.where(hit, books.name[rows, np.maximum(skill, 0)], -1),
        skill_score=np.maximum(np.where(hit, ranked, choice.combined.max(axis=1)), 0.0), satisfaction=said,
        skill_learned=learned, skill=skill, source_turn=source, propensity=choice.decision.propensity,
        explored=choice.decision.explored, serving=serving, offer=offer, tokens_in=answer.tokens_in,
        tokens_out=answer.tokens_out, cost_usd=answer.cost_usd, latency_ms=answer.latency_ms,
        book_size=table.n_active[:a], book_version=table.version[:a], book_hash=table.hash[:a],
        agrees=agrees, correct=np.where(quality < 0, -1, quality == RIGHT), cause=cause,
        shortlist=choice.shortlist.skill, similarity=choice.shortlist.similarity, preference=choice.preference,
        combined=choice.combined,
        score=np.full(choice.combined.shape, np.nan) if choice.score is None else choice.score,
    )  # fmt: skip


def _nth(arm: Arm, t: int) -> bool:
    return (t + 1) % arm.refit_every == 0


def _quality(simulator: Simulator, table: SkillbookTable, type_: I32, now: I64, rows: I64, skill: I64 | I32) -> I32:
    """Quality of the stored answers of `skill` `[B, S]` for this turn's events."""
    source_type, right, born = table.source_type[rows, skill], table.source_right[rows, skill], table.born[rows, skill]
    return simulator.judge(type_[:, None], source_type, right, now[:, None] - born)


def _answer(
    arm: Arm, simulator: Simulator, table: SkillbookTable, skill: I32, type_: I32, now: I64, words: I32, draws: Draws,
    logged: RecordedAnswers | None,
) -> tuple[Answer, I32, I32, I32]:  # fmt: skip
    """The answer given: its cost, how it was served (0 LLM, 1 stored, 2 prompted), quality, and source turn."""
    hit = skill >= 0
    at = np.maximum(skill, 0)[:, None]
    rows = np.arange(len(skill))[:, None]
    stored = _quality(simulator, table, type_, now, rows, at)[:, 0]
    prompted = arm.serving == "prompted"
    called = arm.llm.answer(words, hit & prompted, draws)
    fresh = np.where(called.right, RIGHT, WRONG)
    if logged is not None:
        fresh = np.where(hit | ~logged.by_llm, UNKNOWN, LOGGED)
    if prompted:
        # a skill's prompt carries no answer: what counts is that it is about the same intent
        same_intent = simulator.judge(
            type_[:, None], table.source_type[rows, at], np.ones(at.shape, np.bool_), now[:, None] * 0
        )
        quality = np.where(hit & (same_intent[:, 0] == WRONG), WRONG, fresh)
        return called, np.where(hit, 2, 0), quality, np.full(len(skill), -1)
    served = arm.llm.serve(words, draws)
    answer = type(called)(*(np.where(hit, getattr(served, f), getattr(called, f)) for f in called.__dataclass_fields__))
    source = np.where(hit, table.source[rows, at][:, 0], -1)
    return answer, hit.astype(np.int8), np.where(hit, stored, fresh), source


def _compare(
    simulator: Simulator, table: SkillbookTable, comparisons: Comparisons, shortlist: Shortlist, t: int, type_: I32,
    now: I64, asked: Bool, fresh: I32, draws: Draws,
) -> I32:  # fmt: skip
    """Compare what the LLM said, where it was `asked`, with the nearest candidate's answer: 1 the same, 0 not, -1 not
    compared, `[B]`.
    """
    nearest = shortlist.skill[:, 0]
    at = np.maximum(nearest, 0)[:, None]
    stored = _quality(simulator, table, type_, now, np.arange(len(at))[:, None], at)[:, 0]
    same = simulator.same_answer(stored, fresh, draws)
    rows = np.flatnonzero(asked & (nearest >= 0))
    comparisons.add(t, rows, nearest[rows], shortlist.similarity[rows, 0], same[rows])
    agrees = np.full(len(nearest), -1, np.int32)
    agrees[rows] = same[rows]
    return agrees


def _offer(
    arm: Arm, simulator: Simulator, state: State, seen: Observation, type_: I32, draws: Draws
) -> tuple[I32, I32]:
    """Offers to capture, and how users react: `[B]` codes and names, -1 where none was made."""
    asked = arm.curator.offers(seen)
    a = len(asked)
    offer, name = np.full(a, -1, np.int32), np.full(a, -1, np.int32)
    if asked.any():
        code, given, tired = simulator.offer(
            type_, seen.text, state.fatigue[:a], seen.time - state.last_offer[:a], draws
        )
        offer, name = np.where(asked, code, offer), np.where(asked, given, name)
        state.fatigue[:a] = np.where(asked, tired, state.fatigue[:a])
        state.last_offer[:a] = np.where(asked, seen.time, state.last_offer[:a])
    return offer, name


def _refit(arm: Arm, scorer: Scorer, ratings: Ratings, due: Bool) -> tuple[Scorer, I64]:
    """The scorer in which those who are due have learned, and who of them had something to learn from."""
    rows, training = ratings.take(np.flatnonzero(due))
    return arm.reranker.fit(scorer, rows, training) if len(rows) else scorer, rows
