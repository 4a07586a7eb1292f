"""Pipelines of arms that are stepped together, as one assistant: they decide, serve, and learn."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from skg_bench.assistant.pipeline.applying import apply_batch
from skg_bench.assistant.pipeline.cause import causes
from skg_bench.assistant.pipeline.components import components
from skg_bench.assistant.pipeline.decision import ServingChoice, choose_skills
from skg_bench.assistant.pipeline.in_book import InBook
from skg_bench.assistant.pipeline.in_time import InTime, jobs_left
from skg_bench.assistant.pipeline.own_rows import OwnRows
from skg_bench.assistant.pipeline.ratings import DecisionContext
from skg_bench.assistant.pipeline.seeding import REASON, seed
from skg_bench.assistant.pipeline.signals import Positions
from skg_bench.assistant.pipeline.stack import View, stacked
from skg_bench.assistant.pipeline.stack_memory import Decided, Learned, PipelineState, refit, relearns
from skg_bench.assistant.pipeline.under_way import TurnJobs
from skg_bench.core.arms import Arm
from skg_bench.core.assistant import (
    Applied,
    EnsembleColumns,
    Experience,
    FromBook,
    GroundTruth,
    Message,
    Reply,
    no_worth,
)
from skg_bench.core.batch import NO_OPERATIONS, Batch, stores
from skg_bench.core.batch import joined as merged
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING, KnownFeedback
from skg_bench.core.grid import F64, I32, I64, U64, Bool, read_only
from skg_bench.core.learning_jobs import NO_JOBS, Course, Jobs, joined_jobs
from skg_bench.core.spending_checks import reporter
from skg_bench.core.types import LearningContext, Observation, Query, TurnTruth
from skg_bench.core.world import FALLBACK, STORED, Reaction, Supposing
from skg_bench.skillbook.terms_of_book import TermsOfBook

_DECLINED = 2  # in OFFERS


class Pipelines:
    """The pipelines of these arms: core.assistant.Ensemble."""

    def __init__(self, arms: Sequence[Arm]) -> None:
        if pooled := [arm.name for arm in arms if components(arm).scope != "user"]:
            raise UsageError(f"arm {pooled[0]!r} shares a pool's scorer, which is not fitted here; run it as a whole")
        self._stacks = {cut: stacked(arms, cut) for cut in sorted({cut for arm in arms for cut in arm.cuts})}
        self._first = self._stacks[0]

    @cached_property
    def sees_truth(self) -> bool:
        """Is one of them an oracle?"""
        return any(stack.oracles for stack in self._stacks.values())

    @property
    def reasons(self) -> Sequence[str]:
        """Reasons of all curators."""
        return self._first.reasons

    def start(self, n: int) -> PipelineState:
        """Empty skillbooks of `n` rows."""
        return PipelineState(self._first, n, keep=relearns(self._first, list(self._stacks.values())))

    # ------------------------------------------------------------------------------------------------ answer

    def answer(self, query: Message, state: PipelineState) -> tuple[PipelineState, Reply]:
        """Route, describe, score, choose, and serve."""
        n = len(query.text)
        if query.turn in self._stacks and query.turn > 0 and not state.over:
            self._switch(state, query.turn, n)
        state.reach(query.turn, n)
        state.time[:n, query.turn], state.message[:n, query.turn] = query.time, query.text
        table, parts = state.table.open(query.store.texts, query.store.similarity), state.stack.shared
        state.seeded = ()
        state.turn_jobs = None if parts.jobs.at_once else TurnJobs.begin(state.last_skill[:n].copy())
        if query.turn == 0 and parts.seeds is not None and not state.over:
            state.seeded = seed(table, parts.seeds, query, self.reasons.index(REASON))
        if state.turn_jobs is not None:
            InTime(state, query, state.turn_jobs).end(query.time * 1000)
        table.as_of(query.time)
        books = table.view(n)
        truth = None if query.truth is None else _oracles_truth(state, query.truth, n)
        vocabulary = query.store.texts.vocabulary
        words, last_skill = vocabulary.words[query.text], state.last_skill[:n].copy()
        words.flags.writeable = last_skill.flags.writeable = False
        seen = Query(
            query.turn, query.time, query.text, words, query.gap, last_skill,
            InBook(query.store.similarity, query.text, books),
            TermsOfBook(vocabulary, query.text, books), truth, query.local, query.texts.contents,
        )  # fmt: skip
        choice = choose_skills(state.stack, seen, books, state.memory(), query.event, texts=query.texts)
        state.decided = Decided(seen, books, choice, truth)
        return state, self._served(state, choice, query)

    def _switch(self, state: PipelineState, turn: int, n_rows: int) -> None:
        later = [stack for cut, stack in self._stacks.items() if cut > turn]
        state.switch_arm(self._stacks[turn], later, n_rows)

    def _served(self, state: PipelineState, choice: ServingChoice, query: Message) -> Reply:
        table, skill = state.table, choice.skill
        hit, rows, at = skill >= 0, np.arange(len(skill)), np.maximum(skill, 0)
        how = np.where(hit, state.stack.how(len(skill)), FALLBACK)
        case = FromBook(
            skill, choice.decision.propensity, np.where(how == STORED, table.source[rows, at], -1),
            _compared(state, choice), np.where(hit, table.content[rows, at], 0), choice.cost,
        )  # fmt: skip
        return Reply(how, np.where(hit, table.answer[rows, at], -1), case, _context(state, query))

    # ------------------------------------------------------------------------------------------------- learn

    def learn(self, seen: Experience, feedback: KnownFeedback, state: PipelineState) -> PipelineState:
        """Ratings are recorded, the curators change the books, and policies and scorer learn."""
        seen, feedback, place = _rated(state, seen, feedback)
        if np.logical_or.reduce(seen.failed):
            state.decided = _without_failed(state.decided, seen.failed)
        decided, query = state.decided, seen.message
        choice, n, t = decided.choice, len(query.text), query.turn
        hit = choice.skill >= 0
        state.answer[:n, t] = seen.answer
        _record_ratings(state, seen, feedback, place)
        state.past[:n, t] = np.where(hit, -1, query.text)
        truth = decided.truth
        if truth is not None:
            oracles = state.stack.portion(state.stack.oracles, n)
            right = ~hit & seen.right
            truth = replace(truth, llm_right=right if oracles is None else right[oracles.index])
        turn_jobs = state.turn_jobs
        reported: list[Jobs] = [] if turn_jobs is None else turn_jobs.reported
        messages, past = state.message[:n, : t + 1], state.past[:n, :t]
        asks, tags_only = np.ones(n, np.bool_), np.zeros(n, np.bool_)
        best = np.maximum.reduce(choice.shortlist.similarity, axis=1)
        read_only(messages, past, asks, tags_only, best, seen.rating)
        context = LearningContext(
            query.event, decided.query.similarity, query.texts, messages, past, choice.shortlist.skill, asks, tags_only,
            reporter(reported.append), query.domain, truth, seen.words,
        )  # fmt: skip
        observed = Observation(query.time, t, query.text, choice.skill, best, seen.rating, context)
        views = state.stack.views(observed, decided.books)
        offers = state.stack.offers(observed, views, state.curators)
        reaction = seen.offer(offers) if np.logical_or.reduce(offers) else _nobody(n)
        if state.stack.by_intent is not None:
            by_intent = state.stack.each(state.stack.by_intent, n)
            reaction = replace(reaction, name=np.where(by_intent, reaction.general, reaction.name))
        if turn_jobs is None:
            updates, jobs = _learn_at_once(state, seen, views, reaction, feedback, reported=reported)
            ended: Sequence[tuple[Jobs, Course | None]] = () if jobs is None else [(jobs, None)]
        else:
            known_at = seen.known_at[place]
            InTime(state, query, turn_jobs).learn(observed, reaction, feedback, known_at)
            updates, ended = turn_jobs.applied, turn_jobs.ended
            jobs = joined_jobs([NO_JOBS, *turn_jobs.begun])
        batch = NO_OPERATIONS if not updates else merged(*(made for _, made, _ in updates))
        state.policies = state.stack.learned(state.policies, choice.decision, feedback, batch)

        captured = np.zeros(n, np.bool_)
        state.last_skill[:n] = choice.skill
        if updates:
            storing = stores(batch).nonzero()[0]
            answering = storing[state.table.active[batch.row[storing], batch.skill[storing]]]
            captured[batch.row[answering]] = True
            state.last_skill[batch.row[answering]] = batch.skill[answering]
        state.llm_turns[:n] += ~hit
        _fit(state, t, captured)
        declined = state.stack.shared.decline_is_miss & (reaction.code == _DECLINED)
        state.learned = Learned(np.where(declined, 2, seen.rating), captured, updates, jobs, ended)
        return state

    # ------------------------------------------------------------------------------------------ for the engine

    def explain(self, truth: GroundTruth, state: PipelineState) -> I32:
        """Causes why no right skill answered, `[B]`; see cause.py."""
        choice = state.decided.choice
        how, candidates = state.stack.how(len(choice.skill)), choice.decision.candidates
        return causes(truth, state.table, candidates, skill=choice.skill, how=how)

    def best(self, truth: GroundTruth, state: PipelineState) -> F64 | None:
        """Expected worth of the best active skill, or of the generic question if that is better."""
        table, n = state.table, len(truth.type)
        if truth.worth is no_worth:
            return None
        best: F64 = _worth(truth, np.where(table.active[:n], table.content[:n], 0)).max(axis=1)
        return best

    def columns(self, state: PipelineState) -> EnsembleColumns:
        """Columns of decisions and skillbooks."""
        decided, learned, table = state.decided, state.learned, state.table
        choice, books = decided.choice, decided.books
        candidates, skill, n = choice.decision.candidates, choice.skill, len(choice.skill)
        hit, rows = skill >= 0, np.arange(n)
        ranked = candidates.combined[rows, np.maximum(choice.decision.place, 0)]
        score = np.full(candidates.combined.shape, np.nan) if candidates.score is None else candidates.score
        listed: dict[str, np.ndarray] = {
            "shortlist": candidates.skill, "similarity": candidates.similarity, "preference": candidates.preference,
            "combined": candidates.combined, "score": score,
        }  # fmt: skip
        if choice.places is not None:
            beyond = np.arange(score.shape[1]) >= choice.places[:, None]
            listed = {
                name: np.where(beyond, -1 if name == "shortlist" else 0, values) for name, values in listed.items()
            }
        return {
            **listed,
            "max_sim": np.maximum.reduce(candidates.similarity, axis=1),
            "matched_skill": np.where(hit, books.name[rows, np.maximum(skill, 0)], -1),
            "skill_score": np.maximum(np.where(hit, ranked, np.maximum.reduce(candidates.combined, axis=1)), 0.0),
            "user_satisfaction": learned.satisfaction, "skill_learned": learned.captured,
            "book_size": table.n_active[:n], "book_version": table.version[:n], "book_hash": table.hash[:n],
        }  # fmt: skip

    def updates(self, state: PipelineState) -> Sequence[tuple[int, Batch, Applied]]:
        """The operations of the turn, after those that the books started with."""
        return [*state.seeded, *state.learned.updates]

    def jobs(self, state: PipelineState) -> Jobs | None:
        """The learning jobs that began at the turn."""
        return state.learned.jobs

    def ended(self, state: PipelineState) -> Sequence[tuple[Jobs, Course | None]]:
        """The learning jobs that ended since the turn before."""
        return state.learned.ended

    def left(self, state: PipelineState, n: int) -> tuple[Jobs, Course] | None:
        """The learning jobs that are under way for the rows from `n` on."""
        return jobs_left(state.under_way, n)

    def sizes(self, state: PipelineState) -> I32:
        """Active skills of each book."""
        return state.table.n_active

    def adopt(self, state: PipelineState, rows: I64, donors: PipelineState, theirs: I64, shift: int) -> PipelineState:
        """The books of users `rows` become those that users `theirs` have in `donors`."""
        state.table.adopt(rows, donors.table, theirs)
        state.under_way.drop(rows)
        state.table.answer[rows] += np.where(state.table.answer[rows] >= 0, np.int32(shift), 0)
        return state

    def rewind(self, state: PipelineState, shift: int) -> PipelineState:
        """Before turn 0, with the last components and the books as they are."""
        self._switch(state, max(self._stacks), 0)
        state.rewind(shift)
        return state


def _oracles_truth(state: PipelineState, truth: GroundTruth, n: int) -> TurnTruth | None:
    """Truth of the rows of oracles among the first `n`; None: there are none."""
    stack, table = state.stack, state.table
    if not stack.oracles:
        return None
    oracles = stack.portion(stack.oracles, n)
    rows, worth = np.arange(n) if oracles is None else oracles.rows, _worth(truth, table.content[:n])
    answer = table.answer[:n] if oracles is None else table.answer[rows, : int(table.n_skills[rows].max(initial=1))]
    quality = np.empty(answer.shape, np.int32)
    for serving, arms in stack.servings.items():
        supposing: Supposing = "run" if serving == "procedure" else "as given"
        places = tuple(stack.oracles.index(j) for j in arms if j in stack.oracles)
        if places:
            mine = OwnRows(places, len(stack.oracles), len(rows))
            quality[mine.index] = truth.judge(rows[mine.index, None], answer[mine.index], supposing)
    return TurnTruth(quality, truth.type[rows], np.zeros(len(rows), np.bool_), worth[rows])


def _worth(truth: GroundTruth, content: U64) -> F64:
    """Expected worth `[B, 1 + S]` of what is said without a skill, and of what skills say; `[B, 0]`: these keep
    answers. A skill that says nothing counts as none.
    """
    padded = content if truth.worth is no_worth else np.pad(content, ((0, 0), (1, 0)))
    return truth.worth(padded)


def _without_failed(decided: Decided, failed: Bool) -> Decided:
    """Decision without failed procedures: the LLM answered there, as if no skill had been chosen."""
    skill = np.where(failed, -1, decided.choice.skill).astype(np.int32)
    return replace(decided, choice=replace(decided.choice, skill=skill))


def _at_versions(jobs: Jobs, before: I32, after: I32) -> Jobs:
    """Jobs with the versions of the books that they read and wrote."""
    written = np.where(jobs.operations > 0, after[jobs.row], -1)
    return replace(jobs, version_read=before[jobs.row], version_written=written.astype(np.int32))


def _nobody(n: int) -> Reaction:
    nothing = np.full(n, -1, np.int32)
    return Reaction(nothing, nothing, nothing)


def _compared(state: PipelineState, choice: ServingChoice) -> I32:
    """The answer of the nearest candidate where the LLM answers and the arm reads whether the two agree; else -1."""
    reads, skill = state.stack.reads_agreement, choice.skill
    if not np.logical_or.reduce(reads):
        return np.full(len(skill), -1, np.int32)
    nearest = choice.shortlist.skill[:, 0]
    asks = np.tile(reads, len(skill) // len(reads)) & (skill < 0) & (nearest >= 0)
    return np.where(asks, state.table.answer[np.arange(len(skill)), np.maximum(nearest, 0)], -1)


def _context(state: PipelineState, query: Message) -> DecisionContext | None:
    """Candidates that the served skills were chosen from; None if no scorer learns from them, now or later."""
    decided = state.decided
    choice = decided.choice
    features, candidates = choice.features, choice.decision.candidates
    if features is None and state.ratings.keep:
        signals, books = state.stack.shared.signals, decided.books
        features = signals.describe(decided.query, books, Positions(choice.shortlist, books), candidates.similarity,
                                    candidates.preference)  # fmt: skip
    if features is None:
        return None
    listed = (choice.shortlist.skill >= 0).sum(axis=1, dtype=np.int32)
    return DecisionContext(features, listed, choice.decision.place, query.event)


def _rated(state: PipelineState, seen: Experience, given: KnownFeedback) -> tuple[Experience, KnownFeedback, I64]:
    """Feedback with the ratings that the arm's signs make of what users did and said: those of this turn,
    all feedback, and of each of its rows the place in `given`.
    """
    signs = state.stack.shared.signs
    if signs is None:
        return seen, given, np.arange(len(given.row))
    domain = seen.message.domain
    known, place = signs.rate(given, state.heard, domain)
    if known is not given:
        at_once = (known.kind == RATING) & (known.turn == seen.message.turn) & (given.kind[place] == domain.acted)
        rating = seen.rating.copy()
        rating[known.row[at_once]] = known.value[at_once]
        seen = replace(seen, rating=rating)
    return seen, known, place


def _record_ratings(state: PipelineState, seen: Experience, known: KnownFeedback, place: I64) -> None:
    """Ratings of served skills, with what these were chosen from: of earlier turns first, then of this one. Contexts
    are those of the first rows that the engine gave; `place` says which of these a row is, or was made of.
    """
    if seen.contexts is not None:
        n = len(seen.contexts.event)
        rated = ((known.kind == RATING) & (known.skill >= 0) & (place < n)).nonzero()[0]
        state.ratings.add_late(known.row[rated], known.value[rated], seen.contexts.rows(place[rated]))
    context, skill = seen.reply.context, state.decided.choice.skill
    if context is not None:
        rated = ((skill >= 0) & (seen.rating >= 0)).nonzero()[0]
        state.ratings.add(rated, seen.rating[rated], context.rows(rated))


def _learn_at_once(
    state: PipelineState, seen: Experience, views: Sequence[View | None], reaction: Reaction, known: KnownFeedback,
    *, reported: Sequence[Jobs],
) -> tuple[Sequence[tuple[int, Batch, Applied]], Jobs | None]:  # fmt: skip
    """Applies the changes of the curators; returns them, and their jobs, which they report meanwhile."""
    last = state.decided.query.last_skill
    state.curators, batch = state.stack.curate(views, reaction, known, state.curators)
    before = state.table.version[: len(last)].copy() if reported else None
    batch, applied = apply_batch(state, seen.message, batch, last, seen.merge)
    jobs = None if before is None else _at_versions(joined_jobs(reported), before, state.table.version)
    return ([(seen.message.turn, batch, applied)] if len(batch.op) else []), jobs


def _fit(state: PipelineState, t: int, captured: Bool) -> None:
    """The scorer learns from new ratings, where a refit is due and the arm may learn."""
    parts, n = state.stack.shared, len(captured)
    refits = state.stack.refits(t)
    if state.scorer is None or not np.logical_or.reduce(refits):
        return
    may = refits if len(refits) == 1 else np.tile(refits, n // len(refits))
    wants = state.wants_refit[:n]
    wants |= may & (((t + 1) % parts.refit_every == 0) | (captured & parts.refit_on_capture))
    due = wants & may & (t - state.refitted[:n] >= parts.refit_apart)
    wants[due] = False
    state.scorer, taught = refit(parts, state.scorer, state.ratings, due)
    state.refitted[taught] = t
