"""Update operations on skillbooks: made by a curator, applied by the skillbook table; parts and joins of batches."""

from dataclasses import dataclass, fields

import numpy as np

from skg_bench.core.feedback import FEEDBACK_KINDS
from skg_bench.core.grid import I32, I64, U64, Bool

ADD, UPDATE, TAG, REMOVE = 0, 1, 2, 3
OPERATIONS = ("ADD", "UPDATE", "TAG", "REMOVE")
_RATINGS = FEEDBACK_KINDS["rating"]
TAKEN_BACK = len(_RATINGS)  # what is added to the code of a rating that a TAG takes back
TAG_RATINGS = (*_RATINGS, *(f"{rating} taken back" for rating in _RATINGS))
"""What a TAG records: a rating, or that an earlier one of the skill no longer counts."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Update operations, flat over n, in order; several may concern one user. -1 where a field does not apply."""

    row: I32  # [n] row of the user in the cohort
    op: I32  # [n] ADD, UPDATE, TAG, REMOVE
    skill: I32  # [n] skill id; -1 for ADD
    name: I32  # [n] text id of the name (ADD; -1: nobody named it)
    text: I32  # [n] text id of the example to add (ADD, UPDATE)
    source: I32  # [n] turn of the user, this one or an earlier one, whose answer of the LLM is stored (ADD, UPDATE)
    rating: I32  # [n] index into TAG_RATINGS (TAG)
    uses: I32  # [n] 1: the operation records a use (TAG)
    reason: I32  # [n] index into the curator's `reasons`
    content: U64  # [n] key of what the skill says from now on (ADD, UPDATE; core/content.py); 0: nothing, or as before
    about: I32  # [n] turn of the user that the operation was learned from, this one or an earlier one; -1: from none


LINEAGE_BITS = 20  # of the ADD's number among those of its event, in the lineage of a skill

NO_ROWS = np.zeros(0, np.int32)
NO_ROWS.setflags(write=False)


_NAMES = tuple(f.name for f in fields(Batch))


def blank(n: int) -> Batch:
    """`n` operations in which no field applies yet, to be filled in."""
    row, op, skill, name, text, source, rating, reason, about = np.full((9, n), -1, np.int32)
    uses, content = np.zeros(n, np.int32), np.zeros(n, np.uint64)
    return Batch(row, op, skill, name, text, source, rating, uses, reason, content, about)


NO_OPERATIONS = blank(0)


def part(batch: Batch, which: Bool | I64) -> Batch:
    """Batch of these operations only, in this order."""
    b = batch
    return Batch(
        b.row[which], b.op[which], b.skill[which], b.name[which], b.text[which], b.source[which], b.rating[which],
        b.uses[which], b.reason[which], b.content[which], b.about[which],
    )  # fmt: skip


def joined(*batches: Batch) -> Batch:
    """The operations of one after the other; of at least one batch."""
    if len(batches) == 1:
        return batches[0]
    some = [batch for batch in batches if len(batch.op)]
    if len(some) <= 1:
        return some[0] if some else batches[0]
    return Batch(*(np.concatenate([getattr(batch, name) for batch in some]) for name in _NAMES))


def stores(batch: Batch) -> Bool:
    """Mask of operations that store an answer, `[n]`. Other UPDATEs add an example or change what a skill says."""
    storing: Bool = (batch.op == ADD) | ((batch.op == UPDATE) & (batch.source >= 0))
    return storing


@dataclass(frozen=True, slots=True)
class RenewedSkills:
    """Skills that were added, or that store another answer now, flat over n."""

    row: I32  # [n] row of the user
    skill: I32  # [n]


def renewed_skills(batch: Batch) -> RenewedSkills:
    """Skills of operations that were applied (`skill` filled in for ADD)."""
    which = stores(batch)
    return RenewedSkills(batch.row[which], batch.skill[which])


NONE_RENEWED = RenewedSkills(NO_ROWS, NO_ROWS)


def lineage(event: I32, add: I64) -> I64:
    """The lineage of skills: the number of the event that added each, and which ADD of that event it was."""
    both: I64 = (event.astype(np.int64) << LINEAGE_BITS) + add
    return both


def nth(rows: I32) -> I64:
    """How many earlier entries each entry of `rows` has that are equal to it."""
    order = np.argsort(rows, kind="stable")
    ranks = np.empty(len(rows), np.int64)
    ranks[order] = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])
    return ranks
