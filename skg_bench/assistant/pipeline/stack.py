"""Arms stepped together: arms that differ in policy, curator and freezing only share one pass over their users.

A step costs about the same for one row as for a hundred. So arms of one stack lie side by side, row ``u * A + j`` being
user u under arm j of A. A policy is given the rows of its own arms, a curator all rows and a mask. Rows do not know one
another, so a stack changes no result. A fork lies beside the arm that it forks from, unless it changes more than that.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from skg_bench.assistant.pipeline.components import Components, components, refits
from skg_bench.assistant.pipeline.conflicts import OVERWRITTEN
from skg_bench.assistant.pipeline.seeding import REASON
from skg_bench.core import state
from skg_bench.core.arms import Arm
from skg_bench.core.batch import NO_OPERATIONS, TAG, Batch, joined, part
from skg_bench.core.deciding import Candidates, Decision
from skg_bench.core.errors import UsageError, naming
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import F64, I32, I64, Bool
from skg_bench.core.types import Observation, Skillbooks
from skg_bench.core.world import Reaction


def stackable(arm: Arm, other: Arm) -> bool:
    """Can both be stepped together, at all turns?"""
    twice = {arm.book == "hindsight", other.book == "hindsight"}  # an arm that goes through its turns twice
    turns = {*arm.cuts, *other.cuts}
    return len(twice) == 1 and all(_alike_now(arm.at(t), other.at(t)) for t in turns)


def _alike_now(arm: Arm, other: Arm) -> bool:
    parts, others = components(arm), components(other)
    shared = [f.name for f in fields(Components) if f.name not in ("policy", "curator")]
    same = all(getattr(parts, name) == getattr(others, name) for name in shared)
    same &= parts.curator.sees_truth == others.curator.sees_truth
    same &= arm.hit_latency_ms == other.hit_latency_ms and arm.mood == other.mood
    return same and arm.llm == other.llm


@dataclass(frozen=True)
class Part:
    """A component, the arms of the stack that have it, and the turn at which they began to: equal components that began
    at different turns remember different things.
    """

    component: Any
    arms: tuple[int, ...]
    since: int

    def rows(self, n_rows: int, n_arms: int) -> I64:
        """Rows of the part among the first `n_rows`."""
        at: I64 = (np.arange(0, n_rows, n_arms)[:, None] + np.array(self.arms)).reshape(-1)
        return at


@dataclass(frozen=True, slots=True)
class _Phase:
    """Rights to learn, for all turns between two at which an arm freezes; `[A]` each."""

    refits: Bool  # the scorer learns
    tags_only: Bool | None  # the book is frozen, but ratings count; None: of no arm
    offers: Sequence[Bool | None]  # for each curator, its arms that make offers; None: all arms of the stack
    curates: Sequence[Bool | None]  # for each curator, its arms that it curates, in the same way


@dataclass(frozen=True)
class Stack:
    """Arms side by side, with the components that are in force at one turn of their users."""

    arms: tuple[Arm, ...]  # as they are in force at the turn, in the order of the rows
    policies: tuple[Part, ...]
    curators: tuple[Part, ...]
    reasons: tuple[str, ...]  # of all curators at all turns

    @cached_property
    def shared(self) -> Components:
        """Components that all have in common, beside policies and curators."""
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
        return self._phase(turn).refits

    @cached_property
    def _freezes(self) -> list[int]:
        """Turns at which an arm freezes, ascending."""
        return sorted({arm.freeze_at for arm in self.arms if arm.freeze_at is not None})

    @cached_property
    def _phases(self) -> dict[int, "_Phase"]:
        return {}

    def _phase(self, turn: int) -> "_Phase":
        """Rights to learn between two turns at which an arm freezes."""
        nth = bisect_right(self._freezes, turn)
        if nth not in self._phases:
            frozen = [arm.frozen(turn) for arm in self.arms]
            learns = np.array([refits(arm, turn) for arm in self.arms])
            tags_only = np.array([f in ("book", "book+scorer") for f in frozen])
            has = [np.isin(np.arange(len(self.arms)), part.arms) for part in self.curators]
            learning = np.array([f is None for f in frozen])
            tagging = np.array([f != "all" for f in frozen])
            self._phases[nth] = _Phase(
                learns, tags_only if tags_only.any() else None,
                [_unless_all(h & learning) for h in has], [_unless_all(h & tagging) for h in has],
            )  # fmt: skip
        return self._phases[nth]

    # -------------------------------------------------------------------------------------------- policies

    def propensities(self, candidates: Candidates, states: Sequence[Any]) -> F64:
        """Each row by its own policy, `[B, 1 + K]`.

        Raises UsageError, which names the policy, if a row is no distribution.
        """
        if len(self.policies) == 1:
            return _distribution(self.policies[0].component, candidates, states[0])
        b, k = candidates.skill.shape
        out = np.empty((b, 1 + k))
        for policy, memory in zip(self.policies, states, strict=True):
            rows = policy.rows(b, len(self.arms))
            out[rows] = _distribution(policy.component, candidates.rows(rows), memory)
        return out

    def learned(self, states: Sequence[Any], decision: Decision, known: KnownFeedback, batch: Batch) -> tuple[Any, ...]:
        """The memories of the policies after a turn."""
        b, n_arms = len(decision.place), len(self.arms)
        out: list[Any] = []
        for policy, memory in zip(self.policies, states, strict=True):
            if memory is None:
                out.append(None)
            elif len(self.policies) == 1:
                out.append(policy.component.learn(memory, decision, known, batch))
            else:
                rows = policy.rows(b, n_arms)
                at = np.full(b, -1, np.int32)
                at[rows] = np.arange(len(rows), dtype=np.int32)
                membership, about = at[known.row] >= 0, at[batch.row] >= 0
                heard, applied = known.rows(membership), part(batch, about)
                heard, applied = replace(heard, row=at[heard.row]), replace(applied, row=at[applied.row])
                out.append(policy.component.learn(memory, decision.rows(rows), heard, applied))
        return tuple(out)

    # -------------------------------------------------------------------------------------------- curators

    def offers(self, seen: Observation, states: Sequence[Any]) -> Bool:
        """Whom to ask, each row by its own curator; where the book is frozen, nobody."""
        out = np.zeros(len(seen.text), np.bool_)
        for curator, memory, arms in zip(self.curators, states, self._phase(seen.turn).offers, strict=True):
            if arms is None or arms.any():
                view = seen if arms is None else replace(seen, asks=_rows(arms, len(out)))
                with naming(curator.component):
                    out |= curator.component.offers(view, memory) & view.asks
        return out

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, states: Sequence[Any]
    ) -> tuple[tuple[Any, ...], Batch]:
        """The operations of each curator for the rows of its own arms that are not frozen, and the new memories."""
        memories, kept, phase, n_arms = [], [], self._phase(seen.turn), len(self.arms)
        for curator, memory, arms, reason in zip(self.curators, states, phase.curates, self._reason, strict=True):
            if arms is None or arms.any():
                view = seen if arms is None else replace(seen, asks=_rows(arms, len(seen.text)))
                if phase.tags_only is not None:
                    view = replace(view, tags_only=_rows(phase.tags_only, len(seen.text)))
                with naming(curator.component):
                    memory, batch = curator.component.curate(view, reaction, known, books, memory)
                arm = batch.row % n_arms
                if arms is not None:
                    batch, arm = part(batch, arms[arm]), arm[arms[arm]]
                if phase.tags_only is not None:
                    batch = part(batch, (batch.op == TAG) | ~phase.tags_only[arm])
                if len(batch.op):
                    kept.append(batch if reason is None else replace(batch, reason=reason[batch.reason]))
            memories.append(memory)
        return tuple(memories), joined(*kept) if kept else NO_OPERATIONS

    # ---------------------------------------------------------------------------------------------- memory

    def start(self, n_rows: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """New memories of policies and curators.

        Raises UsageError, which names the component, for a memory that is no state (core/state.py).
        """
        users = n_rows // len(self.arms)
        policies = tuple(_started(p.component, users * len(p.arms)) for p in self.policies)
        return policies, tuple(_started(p.component, n_rows) for p in self.curators)

    def carried(
        self, before: "Stack", policies: Sequence[Any], curators: Sequence[Any], n_rows: int
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The memories with which this stack goes on from another one: equal components keep theirs, others start."""
        fresh_policies, fresh_curators = self.start(n_rows)
        users = n_rows // len(self.arms)

        def portion(new: Part, old: Part, memory: Any) -> Any:
            if memory is None or new.arms == old.arms:
                return memory
            at = np.arange(users)[:, None] * len(old.arms) + np.array([old.arms.index(j) for j in new.arms])
            return state.rows(memory, at.reshape(-1))

        return (
            _kept(self.policies, before.policies, fresh_policies, policies, portion),
            _kept(self.curators, before.curators, fresh_curators, curators, lambda _new, _old, memory: memory),
        )


def _kept(
    parts: Sequence[Part], before: Sequence[Part], fresh: Sequence[Any], memories: Sequence[Any],
    rows: Callable[[Part, Part, Any], Any],
) -> tuple[Any, ...]:  # fmt: skip
    """Memory that each part had before, if it had one, else the fresh one."""
    out = []
    for new, empty in zip(parts, fresh, strict=True):
        old = [i for i, p in enumerate(before) if p.since == new.since and p.component == new.component]
        out.append(rows(new, before[old[0]], memories[old[0]]) if old else empty)
    return tuple(out)


def _unless_all(arms: Bool) -> Bool | None:
    return None if arms.all() else arms


def _rows(arms: Bool, n_rows: int) -> Bool:
    """The rows of these arms."""
    rows: Bool = np.ones(n_rows, np.bool_) if len(arms) == 1 else np.tile(arms, n_rows // len(arms))
    return rows


def stacked(arms: Sequence[Arm], turn: int = 0) -> Stack:
    """The stack of these arms as they are at turn `turn`; reasons count in the same way at all turns."""
    now = [arm.at(turn) for arm in arms]
    ever = [components(phase).curator for arm in arms for phase in arm.phases]
    seeded = [REASON for arm in arms if components(arm.at(0)).seeds is not None]
    waits = [OVERWRITTEN for arm in arms for phase in arm.phases if not components(phase).jobs.at_once]
    reasons = tuple(dict.fromkeys([*(reason for curator in ever for reason in curator.reasons), *seeded, *waits]))
    policies = _parts([components(arm).policy for arm in now], [_since(arm, turn, "policy") for arm in arms])
    curators = _parts([components(arm).curator for arm in now], [_since(arm, turn, "curator") for arm in arms])
    return Stack(tuple(now), policies, curators, reasons)


def _since(arm: Arm, turn: int, seam: str) -> int:
    """The turn from which on an arm has had the component that it has at `turn`. A donor's book begins it anew for a
    policy, whose memory is about other skills.
    """
    component = getattr(components(arm.at(turn)), seam)
    since = max(cut for cut in arm.cuts if cut <= turn)
    if component.start(0) is None:
        return 0  # no memory: it makes no difference, and equal components are called once
    for cut in sorted((cut for cut in arm.cuts if cut < turn), reverse=True):
        before = arm.at(cut)
        if getattr(components(before), seam) != component or arm.at(since).book == "donor":
            break
        since = cut
    return since


def _parts(components: Sequence[Any], since: Sequence[int]) -> tuple[Part, ...]:
    """Equal components with equal beginnings together, by the first arm that has them."""
    groups: list[tuple[Any, int, list[int]]] = []
    for j, (component, begun) in enumerate(zip(components, since, strict=True)):
        for other, start, arms in groups:
            if other == component and start == begun:
                arms.append(j)
                break
        else:
            groups.append((component, begun, [j]))
    return tuple(Part(component, tuple(arms), begun) for component, begun, arms in groups)


def _started(component: Any, n: int) -> Any:
    memory = component.start(n)
    state.check_state(memory, n, component)
    return memory


def _distribution(policy: Any, candidates: Candidates, memory: Any) -> F64:
    with naming(policy):
        share: F64 = policy.propensities(candidates, memory)
    b, k = candidates.skill.shape
    where = f"{type(policy).__module__}.{type(policy).__qualname__}.propensities"
    if share.shape != (b, 1 + k):
        raise UsageError(f"{where} gave {share.shape}; valid is [{b}, {1 + k}], column 0 the fallback")
    total = np.add.reduce(share, axis=1)
    off = np.abs(total - 1.0)
    if b and not (np.maximum.reduce(off) < 1e-6 and np.minimum.reduce(share, axis=None) >= 0):  # nor NaN
        raise UsageError(
            f"{where} gave rows with sums from {total.min():g} to {total.max():g}; valid are rows without negative "
            "numbers that sum to 1"
        )
    return share
