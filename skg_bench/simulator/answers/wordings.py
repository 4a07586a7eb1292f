"""The words in which users ask: each has usual ones for every request, and says others at times."""

import numpy as np

from skg_bench.core.draws import Purpose, draw
from skg_bench.core.grid import F64, I32, I64, U64, Bool
from skg_bench.simulator.answers.corpus import Corpus


def worded(corpus: Corpus, habit: float | F64, keys: U64, type_: I32, number: I32) -> tuple[I32, Bool]:
    """Text ids for the requests, and where a text comes again for want of another one, `[B, T]` each.

    `habit`: a number, or one of each user; `type_`: request types, -1: none; `number`: which one-off, -1: none.
    Of a type, and of the one-offs, each user has a keyed permutation. The first wording is the usual one: with
    probability `habit` who asks again says it again, and otherwise takes the next wording.
    """
    text, used_up = np.zeros(type_.shape, np.int32), np.zeros(type_.shape, np.bool_)
    row, col = np.nonzero(number >= 0)
    singles = _permutations(keys, np.zeros(1, np.int64), Purpose.ONE_OFF_ORDER, len(corpus.one_offs))
    nth = number[row, col]
    text[row, col] = corpus.one_offs[singles[row, nth % len(corpus.one_offs)]]
    used_up[row, col] = nth >= len(corpus.one_offs)

    row, col, kind, group, uses = _uses(type_, len(corpus.types))
    start = np.flatnonzero(uses == 0)
    usual = (uses > 0) & (draw(keys[row], kind, Purpose.HABIT, uses) < np.broadcast_to(habit, len(keys))[row])
    count: I64 = np.cumsum(~usual)
    others: I64 = count - count[start][group]  # wordings before this one that were not count by habit
    first, wordings = kind[start], corpus.n_wordings[kind]
    permutations = _permutations(
        keys[row[start]], first, Purpose.WORDING, corpus.wordings.shape[1], corpus.n_wordings[first]
    )
    text[row, col] = corpus.wordings[kind, permutations[group, np.where(usual, 0, others % wordings)]]
    used_up[row, col] = ~usual & (others >= wordings)
    return text, used_up


def _uses(type_: I32, types: int) -> tuple[I64, I64, I32, I64, I64]:
    """Requests in order of user, type and time: row, column, type, number of the user and type, earlier uses of it."""
    row, col = np.nonzero(type_ >= 0)
    pair = row * np.int64(types) + type_[row, col]
    order = np.lexsort((col, pair))
    row, col, pair = row[order], col[order], pair[order]
    new = np.ones(len(pair), np.bool_)
    new[1:] = pair[1:] != pair[:-1]
    group = np.cumsum(new) - 1
    return row, col, type_[row, col], group, np.arange(len(pair)) - np.flatnonzero(new)[group]


def _permutations(keys: U64, event: I32 | I64, purpose: Purpose, width: int, sizes: I32 | None = None) -> I64:
    """Permutation, for each key, of the first `sizes` (None: all) of `width` numbers; what is beyond comes last."""
    number = np.arange(width)[None]
    u = draw(keys[:, None], event[:, None], purpose, number)
    if sizes is not None:
        u = np.where(number < sizes[:, None], u, 2.0)
    permutation: I64 = np.argsort(u, axis=1, kind="stable")
    return permutation
