"""Draws from a prior of the Guardian's world: the same shoppers under every arm, and what each arm did to them.

An experiment gives a function from the lives of a draw to figures; a draw is a row of a table. Draw d is a function of
(seed, d) and of nothing else, so that draws may be made in any order, by any number of processes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skg_bench.core.grid import F64, I32, I64, Bool
from skg_bench.simulator.advice.levels import ABANDONED, ACCEPTED, AUTO_APPROVED, WAIT

DRAW_USERS, DRAW_TRIGGERS = 200, 60  # of a draw: those of the issue's own figures


@dataclass(frozen=True)
class Draw:
    """One draw: its number, and the value of every parameter of the prior by its name."""

    number: int
    values: Mapping[str, float]


@dataclass(frozen=True)
class Life:
    """Life of a draw's users under one arm: what was done to them, and what they did. Columns are `[U, T]`, in order of
    users and turns.
    """

    there: Bool  # has the user such a turn? Where not, other columns hold -1, False or NaN
    time: I64  # seconds since Monday 00:00 of the first week
    context: I32  # index into the world's types
    tier: I32  # index into TIERS
    wanted: Bool  # truth: is the purchase really wanted?
    outcome: I32  # index into OUTCOMES
    satisfaction: I32  # what the user says of it some day: index into SATISFACTIONS, -1: nothing
    kind: I32  # truth: what the strategy is really about, -1: the generic question, or nothing said
    skill: I32  # number of the served skill in the user's book, -1: none
    utility: F64  # worth of what happened, less money and waiting
    expected: F64  # worth of what was said, on average, in the user's mood
    fresh: F64  # the same without a mood
    best: F64  # worth of the best that can be said, without a mood
    book_size: I32  # active skills after the turn
    books: Any  # the users' skillbooks in the end: SkillbookTable, rows in order of users
    book_kinds: I32  # [U, S] truth: what their active skills are really about; -1: no such skill, or about nothing

    @property
    def spoken(self) -> Bool:
        """Was something said?"""
        mask: Bool = self.there & (self.outcome != AUTO_APPROVED)
        return mask

    @property
    def listened(self) -> Bool:
        """Accepted, wait or abandoned, where something was said."""
        return self.spoken & np.isin(self.outcome, (ACCEPTED, WAIT, ABANDONED))


Lives = Mapping[str, Life]  # by name of the arm
Measure = Callable[[Draw, Lives], Mapping[str, float]]  # figures of a draw; a function of a module, so that it pickles


@dataclass(frozen=True)
class MeanDifference:
    """A mean over users of paired differences, with its standard error."""

    mean: float
    error: float

    @property
    def better(self) -> bool:
        """Is the whole 95 % interval above 0?"""
        return self.mean > 1.96 * self.error

    @property
    def worse(self) -> bool:
        """Is the whole 95 % interval below 0?"""
        return self.mean < -1.96 * self.error


def paired_lives(life: Life, other: Life, column: Callable[[Life], F64]) -> MeanDifference:
    """Mean over users of a user's mean of `column` under one arm, less that under the other."""
    return over_users(life_means(life, column(life)) - life_means(other, column(other)))


def over_users(values: F64) -> MeanDifference:
    """Mean and standard error of `values` `[U]`, a user's where it is not NaN; NaN for fewer than two users."""
    kept = values[~np.isnan(values)]
    if len(kept) < 2:
        return MeanDifference(np.nan, np.nan)
    return MeanDifference(float(kept.mean()), float(kept.std(ddof=1) / np.sqrt(len(kept))))


def mean(values: F64) -> float:
    """Mean over users who have one; NaN where nobody has. `[U]`"""
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def life_means(life: Life, column: F64 | I32 | Bool, among: Bool | None = None) -> F64:
    """A user's mean of `column` over the turns that are there, and in `among`; NaN for a user without one. `[U]`"""
    counted = life.there if among is None else life.there & among
    n = counted.sum(axis=1)
    total = np.where(counted, column, 0.0).sum(axis=1)
    return np.where(n > 0, total / np.maximum(n, 1), np.nan)
