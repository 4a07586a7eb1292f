"""Conflicts: batches of a job where other jobs of the same user wrote between its reading and its writing.

`rebase` is ours, with the fates of skillbook/rebase.py, which does the same for documents: an ADD of what was added
meanwhile becomes a TAG of that skill, an UPDATE of what was updated otherwise is kept aside, what was removed is left
alone, and TAGs are sums. `replay` is the article's: the same batch again (P26). `blind` writes the skillbook as it was
read, with the batch: what others did is undone (P42).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from skg_bench.assistant.pipeline.learning_time import Conflict
from skg_bench.assistant.pipeline.skillbook_table import SkillbookTable
from skg_bench.core.batch import ADD, NO_OPERATIONS, REMOVE, TAG, TAKEN_BACK, UPDATE, Batch, blank, joined, part
from skg_bench.core.grid import U64
from skg_bench.core.types import RATINGS

OVERWRITTEN = "overwritten"  # reason of operations that undo others
_OK = RATINGS.index("ok")
Alike = Callable[[int, int], bool]  # do contents with these keys say the same, or nearly so?


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """Operations on a user's skillbook that were applied after a job read it, in order."""

    batch: Batch
    was: U64  # [n] what the skill said before

    @property
    def added(self) -> list[int]:
        """Places of the ADDs."""
        return np.flatnonzero(self.batch.op == ADD).tolist()


class Settled(NamedTuple):
    """Batches to apply, one after the other, and the outcome of the operations."""

    undo: Batch
    batch: Batch
    merged: int = 0
    aside: int = 0
    misdirected: int = 0
    duplicated: int = 0


@dataclass(frozen=True, slots=True)
class Conflicting:
    """A job's operations on the skillbook of row `row`, which had `skills` skills when the job read it."""

    ops: Batch
    row: int
    skills: int
    meanwhile: Meanwhile
    table: SkillbookTable
    alike: Alike
    reason: int  # index of OVERWRITTEN

    def settled(self, rule: Conflict) -> Settled:
        """As the rule has it."""
        if rule == "blind":
            return self._blind()
        if (self.meanwhile.batch.op == TAG).all():  # ratings beside ratings
            return Settled(NO_OPERATIONS, self.ops)
        return self._rebased() if rule == "rebase" else self._replayed()

    def _rebased(self) -> Settled:
        now = _Own(self.ops, self.skills, int(self.table.n_skills[self.row]))
        aside = misdirected = 0
        twins: dict[int, int] = {}
        for i, op, skill in now.operations():
            if op == ADD:
                if (twin := self._twin(i)) is not None:
                    twins[i] = twin
            elif self._removed(skill):
                now.drop(i)
                misdirected += 1
            elif op == UPDATE and self._updated(skill, int(self.ops.content[i])):
                now.drop(i)
                aside += 1
        for i, twin in twins.items():
            now.merge(i, twin)
        misdirected += now.orphans()
        return Settled(NO_OPERATIONS, now.batch({}), merged=len(twins), aside=aside, misdirected=misdirected)

    def _replayed(self) -> Settled:
        now = _Own(self.ops, self.skills, int(self.table.n_skills[self.row]))
        gone = [i for i, op, skill in now.operations() if op != ADD and self._removed(skill)]
        twice = [i for i, op, _ in now.operations() if op == ADD and self._twin(i) is not None]
        return Settled(NO_OPERATIONS, now.batch({}), misdirected=len(gone), duplicated=len(twice))

    def _blind(self) -> Settled:
        made, table, row = self.meanwhile.batch, self.table, self.row
        undo, moved, again = blank(len(made.op)), dict[int, int](), list[tuple[int, int]]()
        n, kept = int(table.n_skills[row]), []
        for place, i in enumerate(reversed(range(len(made.op)))):
            op, skill, rating = (int(column[i]) for column in (made.op, made.skill, made.rating))
            if op == TAG and rating >= 0:
                undo.op[place], undo.skill[place] = TAG, skill
                undo.rating[place] = rating - TAKEN_BACK if rating >= TAKEN_BACK else rating + TAKEN_BACK
            elif op == ADD and table.active[row, skill]:
                undo.op[place], undo.skill[place] = REMOVE, skill
            elif op == UPDATE and self.meanwhile.was[i] != 0:
                undo.op[place], undo.skill[place], undo.content[place] = UPDATE, skill, self.meanwhile.was[i]
            elif op == REMOVE and skill < self.skills and skill not in moved:
                moved[skill] = n + len(moved)
                undo.op[place], undo.name[place] = ADD, table.name[row, skill]
                undo.content[place] = self._said(skill)
                again += [
                    (moved[skill], code) for code, n_rated in enumerate(self._rated(skill)) for _ in range(n_rated)
                ]
            else:
                continue
            kept.append(place)
        undo.row[:], undo.reason[:] = row, self.reason
        ratings = blank(len(again))
        ratings.row[:], ratings.op[:], ratings.reason[:] = row, TAG, self.reason
        ratings.skill[:], ratings.rating[:] = [s for s, _ in again], [code for _, code in again]
        batch = _Own(self.ops, self.skills, n + len(moved)).batch(moved)
        return Settled(part(undo, np.array(kept, np.int64)), joined(ratings, batch))

    def _rated(self, skill: int) -> list[int]:
        """Ratings of a skill when the job read, by code."""
        table, made = self.table, self.meanwhile.batch
        counts = [int(column[self.row, skill]) for column in (table.ok, table.partial, table.miss)]
        for rating in made.rating[(made.op == TAG) & (made.skill == skill) & (made.rating >= 0)].tolist():
            counts[rating % TAKEN_BACK] += 1 if rating >= TAKEN_BACK else -1
        return counts

    def _said(self, skill: int) -> int:
        """Content of a skill when the job read."""
        made = self.meanwhile.batch
        before = self.meanwhile.was[(made.op == UPDATE) & (made.skill == skill)]
        return int(before[0] if len(before) else self.table.content[self.row, skill])

    def _removed(self, skill: int) -> bool:
        made = self.meanwhile.batch
        return bool(((made.op == REMOVE) & (made.skill == skill)).any()) and not self.table.active[self.row, skill]

    def _updated(self, skill: int, content: int) -> bool:
        """Did another job have the skill say something else meanwhile?"""
        made = self.meanwhile.batch
        words = made.content[(made.op == UPDATE) & (made.skill == skill) & (made.content != 0)]
        return bool(len(words)) and int(words[-1]) != content

    def _twin(self, i: int) -> int | None:
        """The active skill, added meanwhile, that says what ADD `i` says; where both say nothing, by their examples."""
        made, content = self.meanwhile.batch, int(self.ops.content[i])
        for j in self.meanwhile.added:
            skill, other = int(made.skill[j]), int(made.content[j])
            same = made.text[j] == self.ops.text[i] if content == 0 == other else content and other
            if same and self.table.active[self.row, skill] and (content == other or self.alike(content, other)):
                return skill
        return None


@dataclass(slots=True)
class _Own:
    """A job's operations with the ids that skills have now. A batch numbers the skills that it adds itself from the
    first id that was free when the job read the skillbook, which is taken now.
    """

    ops: Batch
    read: int  # skills when the job read
    now: int  # skills when it writes
    dropped: set[int] = field(default_factory=set)
    merged: dict[int, int] = field(default_factory=dict)  # skill that each merged ADD is a TAG of

    def operations(self) -> Iterator[tuple[int, int, int]]:
        """Place, code, and skill of each: -1 of an ADD, and of skills that the batch itself adds the id as read."""
        for i, (op, skill) in enumerate(zip(self.ops.op.tolist(), self.ops.skill.tolist(), strict=True)):
            yield i, op, skill

    def drop(self, i: int) -> None:
        """Operation `i` is not applied."""
        self.dropped.add(i)

    def merge(self, i: int, twin: int) -> None:
        """ADD `i` becomes a rating of skill `twin`."""
        self.merged[i] = twin

    def orphans(self) -> int:
        """Drops operations on skills that are not added after all; how many?"""
        adds = np.flatnonzero(self.ops.op == ADD).tolist()
        gone = {self.read + nth for nth, i in enumerate(adds) if i in self.merged}
        orphans = [i for i, op, skill in self.operations() if op != ADD and skill in gone and i not in self.dropped]
        self.dropped.update(orphans)
        return len(orphans)

    def batch(self, moved: Mapping[int, int]) -> Batch:
        """Operations that are left; `moved`: ids of skills that others have now."""
        ops, kept = self.ops, [i for i in range(len(self.ops.op)) if i not in self.dropped]
        adds = [i for i in np.flatnonzero(ops.op == ADD).tolist() if i not in self.merged]
        places = {self.read + nth: i for nth, i in enumerate(np.flatnonzero(ops.op == ADD).tolist())}
        ids = {skill: self.now + adds.index(i) for skill, i in places.items() if i in adds}
        skill = ops.skill.copy()
        for i, op, s in self.operations():
            if op != ADD:
                skill[i] = ids.get(s, moved.get(s, s))
        out = part(replace(ops, skill=skill), np.array(kept, np.int64))
        for at, i in enumerate(kept):
            if i in self.merged:
                out.op[at], out.skill[at], out.rating[at] = TAG, self.merged[i], _OK
                out.name[at], out.text[at], out.source[at], out.content[at] = -1, -1, -1, 0
        return out
