"""The skills that every user's skillbook starts with, as operations before the first turn: so that logs tell all of it.

Turn -2 adds the skills, turn -1 makes their counters: TAGs without uses. They stored no answer, and are as old as the
user's first event. They have no examples, but that of a folder, in a world that judges words, its description: there
messages are compared with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np

from skg_bench.assistant.pipeline.skillbook_table import SkillbookTable, Stamp, Stored
from skg_bench.core.assistant import Applied, Message
from skg_bench.core.batch import ADD, REMOVE, TAG, Batch, blank, joined
from skg_bench.core.grid import I32, U64
from skg_bench.core.types import RATINGS
from skg_bench.skillbook.skillbook import Skill

REASON = "seed"


@dataclass(frozen=True)
class SeedBook:
    """Skills of a skillbook; of each counts what it says, its name, its counters, and whether it is active."""

    skills: tuple[Skill, ...]
    described: bool = False  # as Agent Skills: the issue says when to use a skill, the insight what to do then

    @property
    def hash(self) -> str:
        """Hash of all that counts."""
        counted = [(s.name, s.content and s.content.canonical, s.ok, s.partial, s.miss, s.active) for s in self.skills]
        return sha256(repr(counted).encode()).hexdigest()


def seed(table: SkillbookTable, book: SeedBook, query: Message, reason: int) -> Sequence[tuple[int, Batch, Applied]]:
    """The books of all users start with these skills, before their first message: turn, operations and what came of
    them. `reason` is the index of REASON.
    """
    n = len(query.text)
    nobody, applied = np.full(n, -1, np.int32), list[tuple[int, Batch, Applied]]()
    contents = query.texts.contents
    names = query.texts.add([skill.name for skill in book.skills])
    says = np.array([0 if skill.content is None else contents.add(skill.content) for skill in book.skills], np.uint64)
    examples = np.full(len(book.skills), -1, np.int32)
    if book.described and query.domain.in_words:
        examples = query.texts.add(
            [skill.name if skill.content is None else skill.content.issue for skill in book.skills]
        )
    for turn, batch in ((-2, _adds(book, names, says, examples)), (-1, _tags(book))):
        if len(batch.op):
            many = _of_all(replace(batch, reason=np.full(len(batch.op), reason, np.int32)), n)
            stored = Stored(query.time[many.row], np.full(len(many.op), -1, np.int32))
            skill = table.apply(many, Stamp(query.time, query.local, nobody, nobody), stored)
            after = Applied(query.time, nobody, stored.born, table.version.copy(), table.hash.copy())
            applied.append((turn, replace(many, skill=skill), after))
    return applied


def _adds(book: SeedBook, names: I32, says: U64, examples: I32) -> Batch:
    batch, gone = blank(len(book.skills)), [i for i, skill in enumerate(book.skills) if not skill.active]
    batch.op[:], batch.name[:], batch.content[:], batch.text[:] = ADD, names, says, examples
    end = blank(len(gone))
    end.op[:], end.skill[:] = REMOVE, gone
    return joined(batch, end)


def _tags(book: SeedBook) -> Batch:
    counts = np.array([[skill.ok, skill.partial, skill.miss] for skill in book.skills], np.int64)
    skill, rating = (np.repeat(index, counts.reshape(-1)) for index in np.divmod(np.arange(counts.size), len(RATINGS)))
    batch = blank(len(skill))
    batch.op[:], batch.skill[:], batch.rating[:] = TAG, skill, rating
    return batch


def _of_all(batch: Batch, n: int) -> Batch:
    """The same operations of each of `n` users."""
    many = Batch(*(np.tile(getattr(batch, name), n) for name in Batch.__slots__))
    return replace(many, row=np.repeat(np.arange(n, dtype=np.int32), len(batch.op)))
