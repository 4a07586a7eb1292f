"""Arms stepped together: arms that have the same model, scorer, features and time to learn share one pass over users.

A step costs about the same for one row as for a hundred. So arms of one stack lie side by side, row ``u * A + j`` being
user u under arm j of A. Routers, policies and curators are given the rows of their own arms, and truth the oracles
among them alone. Where all arms have the same component, nothing is sliced. Rows do not know one another, so a stack
changes no result. A fork lies beside the arm that it forks from, unless it changes more than that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from skg_bench.assistant.pipeline.batch_checks import curated_by, offers_by
from skg_bench.assistant.pipeline.components import Components, components
from skg_bench.assistant.pipeline.conflicts import OVERWRITTEN
from skg_bench.assistant.pipeline.own_rows import OwnRows
from skg_bench.assistant.pipeline.part_calls import distribution_by, shortlist_by
from skg_bench.assistant.pipeline.parts import Part, carried_memories, parted, parts_of
from skg_bench.assistant.pipeline.rights import Rights
from skg_bench.assistant.pipeline.seeding import REASON
from skg_bench.core.arms import Arm
from skg_bench.core.batch import NO_OPERATIONS, NONE_RENEWED, TAG, Batch, joined, part, renewed_skills
from skg_bench.core.deciding import Candidates, Decision
from skg_bench.core.errors import naming
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import F64, I32, Bool
from skg_bench.core.types import Observation, Query, Serving, Shortlist, Skillbooks, TurnTruth
from skg_bench.core.world import PROCEDURE, PROMPTED, STORED, Reaction

Value = TypeVar("Value", np.bool_, np.int32)
_EVERY = 64  # turns after which it is looked up again which books are wide
_PARTS = ("router", "policy", "curator", "serving", "named_by")  # with rows of their own
HOW: dict[Serving, int] = {"stored": STORED, "prompted": PROMPTED, "procedure": PROCEDURE}


def stackable(arm: Arm, other: Arm) -> bool:
    """Can both be stepped together, at all turns?"""
    twice = {arm.book == "hindsight", other.book == "hindsight"}  # an arm that goes through its turns twice
    turns = {*arm.cuts, *other.cuts}
    return len(twice) == 1 and all(_alike_now(arm.at(t), other.at(t)) for t in turns)


def _alike_now(arm: Arm, other: Arm) -> bool:
    parts, others = components(arm), components(other)
    shared = [f.name for f in fields(Components) if f.name not in _PARTS]
    same = all(getattr(parts, name) == getattr(others, name) for name in shared)
    same &= arm.hit_latency_ms == other.hit_latency_ms and arm.mood == other.mood
    return same and arm.llm == other.llm


@dataclass(frozen=True, slots=True)
class View:
    """View of a curator on the turn and the books."""

    portion: OwnRows | None  # None: all rows
    seen: Observation
    books: Skillbooks


@dataclass(frozen=True)
class Stack:
    """Arms side by side, with the components that are in force at one turn of their users."""

    arms: tuple[Arm, ...]  # as they are in force at the turn, in the order of the rows
    routers: tuple[Part, ...]
    policies: tuple[Part, ...]
    curators: tuple[Part, ...]
    reasons: tuple[str, ...]  # of all curators at all turns

    @cached_property
    def shared(self) -> Components:
        """Components that all have in common, beside those that are parts."""
        return components(self.arms[0])

    @cached_property
    def _reason(self) -> list[I32 | None]:
        """Places of each curator's reasons in `reasons`; None: those in its reasons_of_each."""
        reasons_of_each = [tuple(p.component.reasons) for p in self.curators]
        return [
            None if self.reasons[: len(r)] == r else np.array([self.reasons.index(word) for word in r], np.int32)
            for r in reasons_of_each
        ]

    @cached_property
    def reads_agreement(self) -> Bool:
        """Arms with a policy that learns whether the LLM agrees with a stored answer, `[A]`."""
        return np.array(["agrees" in components(arm).policy.reads for arm in self.arms])

    def refits(self, turn: int) -> Bool:
        """Whose scorer may learn at this turn, `[A]`."""
        return self._rights.at(turn).refits

    @cached_property
    def _rights(self) -> Rights:
        return Rights(self.arms, self.curators)

    # ---------------------------------------------------------------------------------------------- rows

    @cached_property
    def _rows(self) -> dict[tuple[int, ...], OwnRows]:
        return {}

    def portion(self, arms: tuple[int, ...], n_rows: int) -> OwnRows | None:
        """The rows of some arms among the first `n_rows`; None: all."""
        if len(arms) == len(self.arms):
            return None
        rows = self._rows.get(arms)
        if rows is None or rows.n_rows != n_rows:
            rows = self._rows[arms] = OwnRows(arms, len(self.arms), n_rows)
        return rows

    def each(self, values: npt.NDArray[Value], n_rows: int) -> npt.NDArray[Value]:
        """Values of the arms `[A]` for each of the first `n_rows`."""
        return values if n_rows == len(values) else np.tile(values, n_rows // len(values))

    def how(self, n_rows: int) -> I32:
        """How skills are served in each of the first `n_rows`: STORED, PROMPTED or PROCEDURE."""
        if len(known := self._how.get("rows", self.hits)) != n_rows:
            known = self._how["rows"] = self.each(self.hits, n_rows)
        return known

    @cached_property
    def _how(self) -> dict[str, I32]:
        """Rows as they were at the turn before, as few users leave."""
        return {}

    @cached_property
    def servings(self) -> dict[Serving, tuple[int, ...]]:
        """The arms that serve skills in each way."""
        ways = [components(arm).serving for arm in self.arms]
        return {way: tuple(j for j, other in enumerate(ways) if other == way) for way in HOW if way in ways}

    @cached_property
    def hits(self) -> I32:
        """How each arm serves skills, `[A]`: STORED, PROMPTED or PROCEDURE."""
        return np.array([HOW[components(arm).serving] for arm in self.arms], np.int32)

    @cached_property
    def by_intent(self) -> Bool | None:
        """Arms whose users are asked to name all requests of an intent, `[A]`; None: none."""
        named = np.array([components(arm).named_by == "intent" for arm in self.arms])
        return named if named.any() else None

    @cached_property
    def oracles(self) -> tuple[int, ...]:
        """Arms with a router or a curator that sees the truth."""
        return tuple(j for j, arm in enumerate(self.arms) if components(arm).sees_truth)

    def truth_for(self, part: Part, truth: TurnTruth | None, books: Skillbooks) -> TurnTruth | None:
        """Truth of a part's rows, whose books these are, from that of the rows of all oracles; None: it is none."""
        if truth is None or not part.component.sees_truth:
            return None
        if len(part.arms) == len(self.arms):
            return truth
        places = tuple(self.oracles.index(j) for j in part.arms)
        return OwnRows(places, len(self.oracles), len(truth.type)).truth(truth, books.active.shape[1])

    # -------------------------------------------------------------------------------------------- routers

    def route(self, query: Query, books: Skillbooks) -> tuple[Shortlist, I32 | None]:
        """The shortlist of each row by its own router, and how many places it has in each row; None: in all the same.
        `query.truth`: of the rows of oracles.
        """
        b, shortlists, routers = len(query.text), [], self._routed(query.turn, books)
        if len(routers) == 1:
            truth = self.truth_for(routers[0], query.truth, books)
            whole = query if truth is query.truth else replace(query, truth=truth)
            return shortlist_by(routers[0].component, whole, books), None
        for router in routers:
            portion = cast("OwnRows", self.portion(router.arms, b))
            theirs = portion.books(books)
            messages = portion.query(query, theirs, self.truth_for(router, query.truth, theirs))
            shortlists.append((portion, shortlist_by(router.component, messages, theirs, portion.rows)))
        k = max(made.skill.shape[1] for _, made in shortlists)
        skill, similarity, places = np.full((b, k), -1, np.int32), np.zeros((b, k)), np.full(b, k, np.int32)
        for portion, made in shortlists:
            width = made.skill.shape[1]
            skill[portion.index, :width], similarity[portion.index, :width] = made.skill, made.similarity
            places[portion.index] = width
        return Shortlist(skill, similarity), places if (places < k).any() else None

    @cached_property
    def _by_width(self) -> list[Part]:
        return []

    def _routed(self, turn: int, books: Skillbooks) -> list[Part]:
        """Routers with the arms that they are called for; where some have far wider books, these are called for apart.
        What is wide is looked up now and then, as it changes no result.
        """
        if turn % _EVERY == 0 or not self._by_width:
            n_arms = len(self.arms)
            self._by_width[:] = [part for router in self.routers for part in parted(router, books, n_arms)]
        return self._by_width

    # -------------------------------------------------------------------------------------------- policies

    def propensities(self, candidates: Candidates, states: Sequence[Any]) -> F64:
        """Each row by its own policy, `[B, 1 + K]`.

        Raises UsageError, which names the policy, if a row is no distribution.
        """
        if len(self.policies) == 1:
            return distribution_by(self.policies[0].component, candidates, states[0])
        b, k = candidates.skill.shape
        out = np.empty((b, 1 + k))
        for policy, memory in zip(self.policies, states, strict=True):
            portion = cast("OwnRows", self.portion(policy.arms, b))
            theirs = candidates.rows(portion.index)
            out[portion.index] = distribution_by(policy.component, theirs, memory, portion.rows)
        return out

    def learned(self, states: Sequence[Any], decision: Decision, known: KnownFeedback, batch: Batch) -> tuple[Any, ...]:
        """The memories of the policies after a turn."""
        b, out, renewed = len(decision.place), list[Any](), NONE_RENEWED
        for policy, memory in zip(self.policies, states, strict=True):
            if memory is None:
                out.append(None)
                continue
            renewed = renewed_skills(batch) if renewed is NONE_RENEWED and len(batch.op) else renewed
            portion = self.portion(policy.arms, b)
            mine = (decision, known, renewed) if portion is None else (
                decision.rows(portion.index), portion.feedback(known), portion.renewed(renewed)
            )  # fmt: skip
            with naming(policy.component):
                out.append(policy.component.learn(memory, *mine))
        return tuple(out)

    # -------------------------------------------------------------------------------------------- curators

    def views(self, seen: Observation, books: Skillbooks) -> list[View | None]:
        """Views of each curator on the turn and the books; None: no arm of it learns any more. `seen.context.truth`:
        of the rows of oracles.
        """
        phase = self._rights.at(seen.turn)
        rights = zip(self.curators, phase.curates, phase.tags_only, strict=True)
        return [
            self._view(curator, seen, books, asks=arms, tags_only=tags_only) if arms is None or arms.any() else None
            for curator, arms, tags_only in rights
        ]

    def _view(self, curator: Part, seen: Observation, books: Skillbooks, **arms: Bool | None) -> View:
        """View of one curator; `arms`: columns by name, alike for all rows of an arm."""
        portion = self.portion(curator.arms, len(seen.text))
        theirs, n = (books, len(seen.text)) if portion is None else (portion.books(books), len(portion.rows))
        columns: dict[str, Any] = {name: self.each(values, n) for name, values in arms.items() if values is not None}
        if "asks" in columns:
            asks = seen.context.asks
            columns["asks"] = columns["asks"] & (asks if portion is None else asks[portion.index])
        truth = self.truth_for(curator, seen.context.truth, theirs)
        if portion is not None:
            return View(portion, portion.observation(seen, theirs, truth, columns), theirs)
        if columns or truth is not seen.context.truth:
            seen = replace(seen, context=replace(seen.context, truth=truth, **columns))
        return View(None, seen, theirs)

    def offers(self, seen: Observation, views: Sequence[View | None], states: Sequence[Any]) -> Bool:
        """Whom to ask, each row by its own curator; where the book is frozen, nobody."""
        out = np.zeros(len(seen.text), np.bool_)
        rights = zip(self.curators, views, states, self._rights.at(seen.turn).offers, strict=True)
        for curator, view, memory, arms in rights:
            if view is None or not (arms is None or arms.any()):
                continue
            offering: Bool = offers_by(curator.component, view.seen, memory) & view.seen.context.asks
            if arms is not None:
                offering &= self.each(arms, len(offering))
            if view.portion is None:
                return offering
            out[view.portion.index] = offering
        return out

    def curate(
        self, views: Sequence[View | None], reaction: Reaction, known: KnownFeedback, states: Sequence[Any]
    ) -> tuple[tuple[Any, ...], Batch]:
        """The operations of each curator for the rows of its own arms that are not frozen, and the new memories."""
        memories, kept = [], []
        for curator, view, memory, reason in zip(self.curators, views, states, self._reason, strict=True):
            if view is not None:
                rows, seen = view.portion, view.seen
                heard = (reaction, known) if rows is None else (rows.reaction(reaction), rows.feedback(known))
                memory, batch = curated_by(
                    curator.component, seen, view.books, heard, memory=memory, rows=None if rows is None else rows.rows
                )
                if len((batch := self._admitted(curator, seen.turn, batch)).op):
                    if rows is not None:
                        batch = replace(batch, row=rows.rows[batch.row].astype(np.int32))
                    kept.append(batch if reason is None else replace(batch, reason=reason[batch.reason]))
            memories.append(memory)
        return tuple(memories), joined(*kept) if kept else NO_OPERATIONS

    def _admitted(self, curator: Part, turn: int, batch: Batch) -> Batch:
        """Operations without those that frozen arms do not learn by."""
        phase, at, n_arms = self._rights.at(turn), self.curators.index(curator), len(curator.arms)
        if (arms := phase.curates[at]) is not None:
            batch = part(batch, arms[batch.row % n_arms])
        if (tags_only := phase.tags_only[at]) is not None:
            batch = part(batch, (batch.op == TAG) | ~tags_only[batch.row % n_arms])
        return batch

    # ---------------------------------------------------------------------------------------------- memory

    def start(self, n_rows: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """New memories of policies and curators.

        Raises UsageError, which names the component, for a memory that is no state (core/state.py).
        """
        users = n_rows // len(self.arms)
        return tuple(p.start(users) for p in self.policies), tuple(p.start(users) for p in self.curators)

    def first(self, parts: Sequence[Part], memories: Sequence[Any], n_rows: int) -> tuple[Any, ...]:
        """Memories of parts for the first `n_rows` rows."""
        users = n_rows // len(self.arms)
        return tuple(p.first(memory, users) for p, memory in zip(parts, memories, strict=True))

    def carried(
        self, before: "Stack", policies: Sequence[Any], curators: Sequence[Any], n_rows: int
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The memories with which this stack goes on from another one: equal components keep theirs, others start."""
        users = n_rows // len(self.arms)
        return (
            carried_memories(self.policies, before.policies, policies, users),
            carried_memories(self.curators, before.curators, curators, users),
        )


def stacked(arms: Sequence[Arm], turn: int = 0) -> Stack:
    """The stack of these arms as they are at turn `turn`; reasons count in the same way at all turns."""
    now = [arm.at(turn) for arm in arms]
    ever = [components(phase).curator for arm in arms for phase in arm.phases]
    seeded = [REASON for arm in arms if components(arm.at(0)).seeds is not None]
    waits = [OVERWRITTEN for arm in arms for phase in arm.phases if not components(phase).jobs.at_once]
    reasons = tuple(dict.fromkeys([*(reason for curator in ever for reason in curator.reasons), *seeded, *waits]))
    routers, policies, curators = (parts_of(arms, turn, seam) for seam in ("router", "policy", "curator"))
    return Stack(tuple(now), routers, policies, curators, reasons)
