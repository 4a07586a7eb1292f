"""One skillbook for many: the same examples for every user, none of them used or rated yet."""

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16, I32
from skg_bench.core.types import NO_STARTS, BookExamples, Skillbooks, UseHistory


def shared_book(vectors: I16, example: I32, skill: I32, rows: int) -> Skillbooks:
    """A view of one book for `rows` users, which takes no room of its own.

    `example` and `skill` `[E]`: text ids, and the skills 0..S-1 that they belong to, in order of skills; `vectors`
    `[N, D]` of all texts. Raises UsageError for a skill without examples, and for examples that are not in order.
    """
    starts = np.flatnonzero(np.diff(skill, prepend=-1))
    if not np.array_equal(skill[starts], np.arange(len(starts))):
        raise UsageError("examples of a shared skillbook must be in order of their skills 0, 1, ..., none without any")
    e, s = len(example), len(starts)
    total = np.add.reduceat(vectors[example], starts, axis=0, dtype=np.int64)

    def each(row: np.ndarray) -> np.ndarray:
        return np.broadcast_to(row, (rows, *row.shape))

    none, when = each(np.zeros(s, np.int32)), each(np.zeros(s, np.int64))
    examples = BookExamples(
        np.full(rows, e, np.int32), each(example), each(skill),
        of_skill=each(np.bincount(skill, minlength=s).astype(np.int32)), square=each(np.square(total).sum(axis=1)),
        starts=starts if rows == 1 else NO_STARTS,
    )  # fmt: skip
    history = UseHistory(when, each(np.zeros((s, 8), np.int16)), none, each(np.full(s, -1, np.int32)))
    return Skillbooks(
        n_skills=np.full(rows, s, np.int32), active=each(np.ones(s, np.bool_)), name=each(np.arange(s, dtype=np.int32)),
        source=none, uses=none, ok=none, partial=none, miss=none, born=when, last_used=when,
        content=each(np.zeros(s, np.uint64)), lineage=each(np.arange(s, dtype=np.int64)),
        examples=examples, history=history,
    )  # fmt: skip
