"""Counterfactual: one skill is left out when it would be captured, and everything else goes on.

Up to that capture a user's skillbook is that of the curator inside, so that the skill has the id that it has there. It
is added and archived in one breath: it is never shortlisted, other skills keep their ids, and the book remembers what
was left out. A skill is what the user calls by one name: without recapture, whatever comes under its name stays away.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from skg_bench.core.batch import ADD, REMOVE, UPDATE, Batch, blank, joined, nth, part, stores
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import I64, Bool
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.shortlist import alike_skills
from skg_bench.core.types import Curator, Observation, Skillbooks
from skg_bench.core.world import Reaction


@dataclass(frozen=True)
class Without:
    """`curator`, but the skill that would get the id `skill` (the first has 0) is never captured.

    `recapture`: the next request that would renew it adds it anew, like any other; else it stays away. `lineage`: from
    then on messages of at least this cosine to its example are captured under no other name either; None: they are.
    """

    curator: Curator[Any]
    skill: int
    recapture: bool
    lineage: float | None
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if self.skill < 0:
            raise UsageError(f"curator.skill={self.skill} must not be negative; a user's first skill has the id 0")
        if self.lineage is not None and not 0 <= self.lineage <= 1:
            raise UsageError(f"curator.lineage={self.lineage} must lie in [0, 1], or null for the skill alone")
        if self.recapture and self.lineage is not None:
            raise UsageError(
                f"curator.lineage={self.lineage} says what is not captured again, and curator.recapture=true that all "
                "is; set lineage to null or recapture to false"
            )
        if self.curator.sees_truth:
            raise UsageError("curator=without cannot wrap a curator that sees the truth")

    @cached_property
    def reasons(self) -> Sequence[str]:
        """Reasons of the curator inside, and one more."""
        return (*self.curator.reasons, "left out")

    def start(self, n: int) -> Any:
        """The memory of the curator inside."""
        return self.curator.start(n)

    def offers(self, seen: Observation, state: Any) -> Bool:
        """Whom the curator inside asks."""
        return self.curator.offers(seen, state)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: Any
    ) -> tuple[Any, Batch]:
        """Operations of the curator inside, without the skill."""
        state, batch = self.curator.curate(seen, reaction, known, books, state)
        captures = stores(batch).nonzero()[0]
        if not len(captures):
            return state, batch
        row, skill = batch.row[captures], np.full(len(books.n_skills), self.skill)
        added = books.n_skills[row] > self.skill
        again = _again(batch, captures, books, skill)
        if self.recapture:
            return state, _archived(self._anew(batch, captures[again], books), books, skill, len(self.reasons) - 1)
        mask = np.ones(len(batch.op), np.bool_)
        mask[captures[again]] = False
        if self.lineage is not None and added.any():
            near = alike_skills(seen.context.similarity.dots(), books, self.lineage)[row[added], self.skill]
            mask[captures[added][near]] = False
        return state, _archived(part(batch, mask), books, skill, len(self.reasons) - 1)

    def _anew(self, batch: Batch, again: I64, books: Skillbooks) -> Batch:
        """Operations `again` do not renew the skill: they renew the one that was added in its place, or add it."""
        if not len(again):
            return batch
        row = batch.row[again]
        name, here = books.name[row, self.skill], np.arange(books.name.shape[1])
        others = (books.name[row] == name[:, None]) & (here > self.skill) & (here < books.n_skills[row, None])
        added = others.any(axis=1)
        op, skill, names = batch.op.copy(), batch.skill.copy(), batch.name.copy()
        op[again] = np.where(added, UPDATE, ADD)
        skill[again] = np.where(added, others.argmax(axis=1), -1)
        names[again] = np.where(added, -1, name)
        renewed = np.full(len(books.n_skills), -1, np.int32)
        renewed[row] = skill[again]  # the curator inside did not know what it would renew, and may archive it as well
        faded = (op == REMOVE) & (skill == renewed[batch.row])
        return part(replace(batch, op=op, skill=skill, name=names), ~faded)


@dataclass(frozen=True)
class WithoutEach:
    """`Without` for rows that are played again side by side: each row leaves out a skill of its own, for good.

    It is of one cohort, whose rows it knows by their place; so no configuration can name it.
    """

    curator: Curator[Any]
    skills: tuple[int, ...]  # [B] id of the skill that each row leaves out
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        Without(self.curator, 0, recapture=False, lineage=None)  # raises UsageError for a curator that it cannot wrap

    @cached_property
    def reasons(self) -> Sequence[str]:
        """Reasons of the curator inside, and one more."""
        return (*self.curator.reasons, "left out")

    @cached_property
    def _skill(self) -> I64:
        return np.array(self.skills, np.int64)

    def start(self, n: int) -> Any:
        """The memory of the curator inside."""
        return self.curator.start(n)

    def offers(self, seen: Observation, state: Any) -> Bool:
        """Whom the curator inside asks."""
        return self.curator.offers(seen, state)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: Any
    ) -> tuple[Any, Batch]:
        """Operations of the curator inside, without each row's skill. Rows that are left are the first ones."""
        state, batch = self.curator.curate(seen, reaction, known, books, state)
        captures = stores(batch).nonzero()[0]
        if not len(captures):
            return state, batch
        skill, mask = self._skill[: len(books.n_skills)], np.ones(len(batch.op), np.bool_)
        mask[captures[_again(batch, captures, books, skill)]] = False
        return state, _archived(part(batch, mask), books, skill, len(self.reasons) - 1)


def _again(batch: Batch, captures: I64, books: Skillbooks, skill: I64) -> Bool:
    """Captures that would renew, by its name, the skill that their row leaves out (`skill`, `[B]`)."""
    row = batch.row[captures]
    again: Bool = (books.n_skills[row] > skill[row]) & (batch.skill[captures] == skill[row])
    return again


def _archived(batch: Batch, books: Skillbooks, skill: I64, reason: int) -> Batch:
    """The batch, which archives the skill that a row leaves out (`skill`, `[B]`) where it adds it."""
    add = (batch.op == ADD).nonzero()[0]
    row = batch.row[add]
    row = row[books.n_skills[row] + nth(row) == skill[row]]
    if not len(row):
        return batch
    end = blank(len(row))
    end.row[:], end.op[:], end.skill[:], end.reason[:] = row, REMOVE, skill[row], reason
    return joined(batch, end)
