"""The same triggers again, with books that are given: of a turn, of another user."""

from collections.abc import Mapping

import numpy as np

from skg_bench.assistant.pipeline.skillbook_table import SkillbookTable
from skg_bench.core.grid import F64, I64, Bool
from skg_bench.study.guardian.lives import Life


def books_of_others(life: Life, least: int) -> SkillbookTable:
    """Book of another user for each one, the next user in order who has at least `least` triggers."""
    n = len(life.there)
    donors = np.flatnonzero(life.there.sum(axis=1) >= least)
    if len(donors) < 2:
        donors = np.arange(n)
    following: I64 = np.searchsorted(donors, np.arange(n), side="right") % len(donors)
    books = SkillbookTable(n)
    books.adopt(np.arange(n), life.books, donors[following])
    return books


def later(life: Life, first: int) -> Bool:
    """The triggers from number `first` on, `[U, T]`."""
    return life.there & (np.arange(life.there.shape[1]) >= first)


def life_with(parts: Mapping[int, Life], column: str) -> F64:
    """A column of a life whose book changes at some turns: from turn k on that of `parts[k]`, `[U, T]`."""
    turns = sorted(parts)
    together: F64 = getattr(parts[turns[0]], column).copy()
    for turn in turns:
        together[:, turn:] = getattr(parts[turn], column)[:, turn:]
    return together
