"""Verdicts that turn as a number is changed that nobody knows: by how small a change, and what it costs to know it."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, sqrt

from scipy import special

from skg_bench.analysis.statistics.intervals import LEVEL


@dataclass(frozen=True)
class JudgedDifference:
    """A difference of two arms with its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def word(self) -> str:
        """The verdict: better, worse, or open."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "open"


@dataclass(frozen=True)
class TurningPoint:
    """Smallest change of a number that turns a verdict, where the end of the interval passes 0 on a straight line."""

    change: float
    value: float
    word: str

    def __str__(self) -> str:
        return f"{self.word} from {self.value:.2f} ({self.change:+.2f})"


def turn(values: Mapping[float, JudgedDifference], usual: float) -> TurningPoint | None:
    """The smallest change from the usual value that turns the verdict; None: no value that was tried does."""
    sides = [sorted(x for x in values if x >= usual), sorted((x for x in values if x <= usual), reverse=True)]
    turns = []
    for side in sides:
        for a, b in pairwise(side):
            before, after = values[a], values[b]
            if after.word != before.word:
                leaves = before.word != "open"  # for the other sign: on the way it is open
                better = (before if leaves else after).word == "better"
                ends = (before.low, after.low) if better else (before.high, after.high)
                at = a + (b - a) * ends[0] / (ends[0] - ends[1])
                turns.append(TurningPoint(at - usual, at, "open" if leaves else after.word))
                break
    return min(turns, key=lambda each: abs(each.change), default=None)


@dataclass(frozen=True)
class StudySize:
    """Size of a study that tells a mean over users to so much either way, at the level of intervals here."""

    users: int
    days: int
    labels: int  # occasions that a person reads


def study_size(within: float, between: float, *, precision: float, per_day: float, labelled: bool) -> StudySize:
    """The study in which a user's own occasions add as much variance as users differ.

    `within`, `between`: standard deviations of one occasion within a user, and between users, in the number's unit;
    `precision`: half the width of the interval of the mean; `per_day`: occasions of a user. Of d days with m occasions
    a user's mean has the variance between^2 + within^2 / (d m), and the mean of n users the n-th part of that.
    """
    days = max(1, ceil((within / between) ** 2 / per_day))
    variance = between**2 + within**2 / (days * per_day)
    users = max(2, ceil((float(special.ndtri((1 + LEVEL) / 2)) / precision) ** 2 * variance))
    while special.stdtrit(users - 1, (1 + LEVEL) / 2) * sqrt(variance / users) > precision:  # few users: Student's
        users += 1
    return StudySize(users, days, ceil(users * days * per_day) if labelled else 0)
