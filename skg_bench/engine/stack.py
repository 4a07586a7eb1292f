"""Batches arms that differ only in policy and curator, so that they share one pass over the users.

A step costs about the same for one row as for a hundred. So arms of one stack lie side by side, row ``u * A + j`` being
user u under arm j of A, and policy and curator are wrapped to treat each row as its arm does. Rows do not know one
another, so a stack changes no result. A fork lies beside the arm that it forks from, unless it changes more than that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from skg_bench.core.batch import NOTHING, Batch
from skg_bench.core.grid import I32, Bool
from skg_bench.core.types import (
    Candidates,
    Curator,
    Decision,
    Draws,
    Events,
    KnownFeedback,
    Observation,
    Policy,
    Skillbooks,
)
from skg_bench.engine.comparisons import compares
from skg_bench.engine.plan import Arm
from skg_bench.engine.weighings import weighs


def stacks(arms: Sequence[Arm]) -> list[list[int]]:
    """Indices of arms that can be stepped together."""
    found: list[list[int]] = []
    for i, arm in enumerate(arms):
        for stack in found:
            if _alike(arms[stack[0]], arm):
                stack.append(i)
                break
        else:
            found.append([i])
    return found


def _alike(one: Arm, other: Arm) -> bool:
    twice = (one.book == "hindsight", other.book == "hindsight")  # who goes through the same turns twice
    turns = {*one.cuts, *other.cuts}
    return len(set(twice)) == 1 and all(_alike_now(one.at(t), other.at(t)) for t in turns)


def _alike_now(one: Arm, other: Arm) -> bool:
    shared = replace(one, fork=None, book="own")
    same = replace(other, name=one.name, policy=one.policy, curator=one.curator, fork=None, book="own") == shared
    alone = weighs(one.policy) or weighs(other.policy)  # each with weightings of its own
    return same and not alone and one.curator.sees_truth == other.curator.sees_truth


def stacked(arms: Sequence[Arm], turn: int = 0) -> Arm:
    """One arm that treats row `u * A + j` as `arms[j]` does at turn `turn`, and counts its reasons in the same way at
    all turns.
    """
    if len(arms) == 1 and arms[0].fork is None:
        return arms[0]
    now = [arm.at(turn) for arm in arms]
    ever = [arm.at(t).curator for arm in arms for t in arm.cuts]
    reasons = tuple(dict.fromkeys(reason for curator in ever for reason in curator.reasons))
    policies = now[0].policy if len(now) == 1 else _Policies(tuple(a.policy for a in now))
    curators = _Curators(tuple(a.curator for a in now), reasons)
    return replace(
        now[0], name="+".join(a.name for a in arms), policy=policies, curator=curators, fork=None, book="own"
    )


def repeated(events: Events, n_arms: int) -> Events:
    """Each user's row `n_arms` times."""
    return events.rows(np.repeat(np.arange(len(events.user)), n_arms))


def _distinct(components: Sequence[object]) -> list[tuple[int, list[int]]]:
    """First arm of each distinct component, and the arms that have it."""
    found: list[tuple[int, list[int]]] = []
    for j, component in enumerate(components):
        for first, arms in found:
            if components[first] == component:
                arms.append(j)
                break
        else:
            found.append((j, [j]))
    return found


@dataclass(frozen=True)
class _Policies:
    """The policies of A arms, by row."""

    policies: tuple[Policy, ...]

    @cached_property
    def _parts(self) -> list[tuple[Policy, list[int]]]:
        return [(self.policies[first], arms) for first, arms in _distinct(self.policies)]

    @property
    def compares(self) -> Bool:
        """Does each arm's, `[A]`."""
        return np.array([compares(policy) for policy in self.policies])

    def choose(self, candidates: Candidates, draws: Draws) -> Decision:
        """Each row by its own policy."""
        if len(self._parts) == 1:
            return self.policies[0].choose(candidates, draws)
        n, b = len(self.policies), len(candidates.skill)
        out = Decision(np.empty(b, np.int32), np.empty(b), np.empty(b, np.bool_))
        for policy, arms in self._parts:
            rows = (np.arange(0, b, n)[:, None] + np.array(arms)).reshape(-1)
            part = policy.choose(
                (candidates if compares(policy) else replace(candidates, compared=None)).rows(rows),
                Draws(*(getattr(draws, f.name)[rows] for f in fields(Draws))),
            )
            out.place[rows], out.propensity[rows], out.explored[rows] = part.place, part.propensity, part.explored
        return out


@dataclass(frozen=True)
class _Curators:
    """The curators of A arms, by row."""

    curators: tuple[Curator, ...]
    reasons: Sequence[str]  # those of all curators, and maybe more

    @cached_property
    def _parts(self) -> list[tuple[Curator, Bool, I32]]:
        """Distinct curators, whether an arm has them `[A]`, and where their reasons stand in `reasons`."""
        parts = []
        for first, arms in _distinct(self.curators):
            curator = self.curators[first]
            reason = np.array([self.reasons.index(r) for r in curator.reasons], np.int32)
            parts.append((curator, np.isin(np.arange(len(self.curators)), arms), reason))
        return parts

    @property
    def sees_truth(self) -> bool:
        """The same for all arms of a stack."""
        return self.curators[0].sees_truth

    def offers(self, seen: Observation) -> Bool:
        """Each row by its own curator."""
        n, b = len(self.curators), len(seen.text)
        out = np.zeros(b, np.bool_)
        for curator, has, _ in self._parts:
            out |= curator.offers(seen) & np.tile(has, b // n)
        return out

    def curate(self, seen: Observation, offer: I32, name: I32, feedback: KnownFeedback, books: Skillbooks) -> Batch:
        """Operations of each distinct curator for all rows, of which those of its own arms are kept."""
        n, kept = len(self.curators), []
        for curator, has, reason in self._parts:
            batch = curator.curate(seen, offer, name, feedback, books)
            own = has[batch.row % n]
            if own.any():
                columns = {f.name: getattr(batch, f.name)[own] for f in fields(Batch)}
                kept.append(columns | {"reason": reason[columns["reason"]]})
        return Batch(**{k: np.concatenate([c[k] for c in kept]) for k in kept[0]}) if kept else NOTHING

    def learns(self, turn: int) -> Bool:
        """Of each arm, `[A]`."""
        out = np.zeros(len(self.curators), np.bool_)
        for curator, has, _ in self._parts:
            out |= has & curator.learns(turn)
        return out
