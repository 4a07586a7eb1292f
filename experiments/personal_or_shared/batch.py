"""A learner that is usual elsewhere: one book for all users, made over again from what all their books hold.

It invents nothing. A kind of strategy that somebody's book holds is in the shared book once: in the words that were
rated best, with the ratings of all users added up, and with an example of each context in which it was rated best of
all kinds.
"""

from dataclasses import dataclass

import numpy as np

from skg_bench.assistant.pipeline.skillbook_table import SkillbookTable, Stamp, Stored
from skg_bench.core.batch import ADD, TAG, UPDATE, Batch, blank, joined
from skg_bench.core.grid import F64, I32, I64
from skg_bench.core.types import RATINGS
from skg_bench.curator.shared.shelf import shelf_of
from skg_bench.engine.cohort import Setting
from skg_bench.engine.vectors import WithWritten
from skg_bench.skillbook.library.strategies import strategies

_DOUBT = 5.0  # ratings by which a context, or a text, is drawn to the mean of its kind; our choice
_OK, _MISS = RATINGS.index("ok"), RATINGS.index("miss")


@dataclass(frozen=True)
class Rated:
    """Skills of all users, flat over n: those that were removed count, as their ratings do."""

    kind: I32  # [n] what a skill is about
    content: np.ndarray  # [n] key of what it says
    example: I32  # [n] text id of the trigger at which it was learned, -1: none
    context: I64  # [n] of that trigger, -1: none
    ok: F64  # [n] ratings; a partial one is half of each
    miss: F64  # [n]


def rated(setting: Setting, books: SkillbookTable) -> Rated:
    """Strategies of these books whose kind is known."""
    reading = setting.reading
    if reading is None:
        raise ValueError("skills of this world are no advice")
    row, skill = np.nonzero(books.content != 0)
    kind = reading.about(books.content[row, skill])[0]
    row, skill, kind = row[kind >= 0], skill[kind >= 0], kind[kind >= 0]
    example = _first_examples(books)[row, skill]
    context = np.full(len(row), -1, np.int64)
    named = np.flatnonzero(example >= 0)
    context[named] = shelf_of(strategies(None)).contexts(example[named], setting.texts)
    half = 0.5 * books.partial[row, skill]
    return Rated(
        kind, books.content[row, skill], example, context, books.ok[row, skill] + half, books.miss[row, skill] + half
    )


def _first_examples(books: SkillbookTable) -> I32:
    """Text id of each skill's oldest example, `[U, S]`; -1: it has none."""
    row, place = np.nonzero(np.arange(books.example.shape[1]) < books.n_examples[:, None])
    first = np.full(books.active.shape, -1, np.int32)
    newest = slice(None, None, -1)  # so that the oldest is written last
    first[row[newest], books.example_skill[row, place][newest]] = books.example[row, place][newest]
    return first


def shared(setting: Setting, books: SkillbookTable, users: int) -> SkillbookTable:
    """The shared book that is made of `books`, for each of so many users."""
    pool = rated(setting, books)
    table = SkillbookTable(1).open(setting.texts, WithWritten(setting.similarity(), setting.texts))
    if len(pool.kind):
        nothing, never = np.full(1, -1, np.int32), np.zeros(1, np.int64)
        batch = _book(setting, pool)
        stored = Stored(np.zeros(len(batch.op), np.int64), np.full(len(batch.op), -1, np.int32))
        for ops in ((ADD,), (TAG, UPDATE)):  # a skill is there before it is rated
            some = np.isin(batch.op, ops)
            part = Batch(*(getattr(batch, name)[some] for name in Batch.__slots__))
            table.apply(part, Stamp(never, never, nothing, nothing), Stored(stored.born[some], stored.answer[some]))
    everyone = SkillbookTable(users)
    everyone.adopt(np.arange(users), table, np.zeros(users, np.int64))
    return everyone


def _book(setting: Setting, pool: Rated) -> Batch:
    kinds = np.unique(pool.kind)
    every = len(setting.world.types)
    at = np.searchsorted(kinds, pool.kind)
    ok, miss = (np.bincount(at, column, len(kinds)) for column in (pool.ok, pool.miss))
    mean = (ok + 1.0) / (ok + miss + 2.0)
    in_context = at * every + pool.context
    named = pool.context >= 0

    def cells(column: F64) -> F64:
        flat: F64 = np.bincount(in_context[named], column[named], len(kinds) * every).astype(np.float64)
        return flat.reshape(len(kinds), every)

    here, n_here = cells(pool.ok), cells(pool.ok + pool.miss)
    best = ((here + _DOUBT * mean[:, None]) / (n_here + _DOUBT)).argmax(axis=0)  # kind of each context
    examples = np.full((len(kinds), every), -1, np.int64)
    examples[at[named], pool.context[named]] = pool.example[named]
    won = np.where(best[None] == np.arange(len(kinds))[:, None], examples, -1)
    adds = blank(len(kinds))
    adds.op[:], adds.content[:] = ADD, [_words(pool, at == k, mean[k]) for k in range(len(kinds))]
    adds.name[:] = setting.texts.names[-1]
    skill, context = np.nonzero(won >= 0)
    learned = blank(len(skill))
    learned.op[:], learned.skill[:], learned.text[:] = UPDATE, skill, won[skill, context]
    counts = np.round(np.stack([ok, miss], axis=1)).astype(np.int64)
    tags = blank(int(counts.sum()))
    tags.op[:], tags.skill[:] = TAG, np.repeat(np.arange(len(kinds)), counts.sum(axis=1))
    tags.rating[:] = np.repeat(np.tile([_OK, _MISS], len(kinds)), counts.reshape(-1))
    batch = joined(joined(adds, learned), tags)
    batch.row[:] = 0
    return batch


def _words(pool: Rated, mine: np.ndarray, mean: float) -> int:
    """Key of the text of a kind that was rated best; of several the one that comes first by key."""
    keys, index = np.unique(pool.content[mine], return_inverse=True)
    ok, miss = (np.bincount(index, column[mine]) for column in (pool.ok, pool.miss))
    return int(keys[((ok + _DOUBT * mean) / (ok + miss + _DOUBT)).argmax()])
