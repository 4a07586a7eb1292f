"""Lift of the skills with which all users began. They are the same in all books, so that intervals are over users.

A user's lift is the mean over all turns of the user: 0 if the skill was never served to that user. Intervals hold for
all skills at once (Bonferroni), and so do verdicts (Holm).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from skg_bench.analysis.lift.first_order import Lifts
from skg_bench.analysis.statistics.inference import PairedT, holm, paired_t, tost
from skg_bench.analysis.statistics.intervals import ALPHA

SeedVerdict = Literal["helps", "hurts", "equivalent to nothing", "inconclusive", "never served"]


@dataclass(frozen=True)
class SeedLift:
    """Lift of a skill with which all users began."""

    name: str
    served: int
    right: int
    a_turn: PairedT  # lift a turn of the user
    low: float
    high: float
    verdict: SeedVerdict


def seed_lifts(lifts: Lifts, margin: float) -> Sequence[SeedLift]:
    """Lifts of skills with which users began, worst first; none if books began empty. `margin`: lift a turn, either
    way, that counts as nothing.
    """
    ids = np.unique(lifts.skill[lifts.born < 0])
    if not len(ids) or len(lifts.users) < 2:
        return ()
    turns = np.maximum(lifts.turns.sum(axis=1), 1)
    rows = [np.flatnonzero((lifts.skill == each) & (lifts.born < 0)) for each in ids]
    values = [np.bincount(lifts.user[at], lifts.total[at], len(turns)) / turns for at in rows]
    tests = [paired_t(each) for each in values]
    differs, same = holm([test.p for test in tests]), holm([tost(each, margin) for each in values])
    tail = ALPHA / 2 / len(ids)
    served = [int(lifts.served[at].sum()) for at in rows]
    made = [
        SeedLift(
            lifts.name[at[0]], many, int(lifts.right[at].sum()), test, test.limit(tail), test.limit(1 - tail),
            _verdict(test, p, equal) if many else "never served",
        )
        for at, many, test, p, equal in zip(rows, served, tests, differs, same, strict=True)
    ]  # fmt: skip
    return sorted(made, key=lambda seed: seed.a_turn.mean)


def _verdict(test: PairedT, differs: float, same: float) -> SeedVerdict:
    """Verdict by the p-values of "the lift is 0" (`differs`) and of "it is at least the margin away from 0" (`same`).
    Without spread between users it is inconclusive.
    """
    if test.se == 0:
        return "inconclusive"
    if same < ALPHA:
        return "equivalent to nothing"
    if differs < ALPHA:
        return "helps" if test.mean > 0 else "hurts"
    return "inconclusive"
