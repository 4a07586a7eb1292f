"""The three signals of the SKG paper (section 2.2), how they are combined, and the features of the third."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from skg_bench.core.calendar import DAY
from skg_bench.core.deciding import combine
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I32, I64, snap
from skg_bench.core.reach import NO_REACH, Reaches
from skg_bench.core.types import Query, Shortlist, Skillbooks

Width = TypeVar("Width", np.int32, np.int64, np.uint64)
GROUPS = {
    "signals": ("similarity", "preference", "margin", "lead"),
    "time": ("hour_fit", "weekday_fit"),
    "recency": ("freshness", "answer_age"),
    "conversation": ("in_conversation", "same_as_last", "length"),
    "co_occurrence": ("follows_last",),
    "counts": ("uses", "ratings", "examples"),
}
"""Named groups of features; an ablation leaves groups out."""


@dataclass(frozen=True)
class Signals:
    """Weights of the three signals, the prior of the learned preference, and the law of forgetting.

    Preference is the mean of a Beta posterior of rated uses (a partial counts half), times a retention that falls with
    the time since the last success: `2 ** (-days / half_life_days)`, the exponential form of Ebbinghaus' curve.
    """

    similarity: float
    preference: float
    score: float
    prior_ok: float
    prior_miss: float
    half_life_days: float | None
    features: tuple[str, ...]
    reaches: ClassVar[Reaches] = {"features": NO_REACH}

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        for name in ("similarity", "preference", "score"):
            if not getattr(self, name) >= 0:
                raise UsageError(f"signals.{name}={getattr(self, name)} must not be negative")
        if not self.similarity + self.preference + self.score > 0:
            raise UsageError("signals.similarity + signals.preference + signals.score must be above 0")
        for name in ("prior_ok", "prior_miss"):
            if not getattr(self, name) > 0:
                raise UsageError(f"signals.{name}={getattr(self, name)} must be above 0")
        if self.half_life_days is not None and not self.half_life_days > 0:
            raise UsageError(f"signals.half_life_days={self.half_life_days} must be above 0, or null to forget nothing")
        if unknown := [g for g in self.features if g not in GROUPS]:
            raise UsageError(f"signals.features: unknown groups {unknown}; valid are {', '.join(GROUPS)}")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features in order; the constant comes last."""
        return (*(name for group in self.features for name in GROUPS[group]), "constant")

    def prefer(self, books: Skillbooks, positions: "Positions", time: I64) -> F64:
        """Signal 2, `[B, K]` in [0, 1]."""
        mean = (self.prior_ok + positions.ok + 0.5 * positions.partial) / (
            self.prior_ok + self.prior_miss + positions.rated
        )
        if self.half_life_days is not None:
            days = (time[:, None] - positions.at(books.history.last_ok)) // DAY
            mean *= _retention(self.half_life_days).take(days, mode="clip")
        return snap(mean, out=mean)

    def combine(self, similarity: F64, preference: F64, score: F64 | None) -> F64:
        """Mean of the signals that are present, weights renormalised to sum to 1; `[B, K]` in [0, 1].

        Raises UsageError if those that are present have no weight.
        """
        return combine((self.similarity, self.preference, self.score), similarity, preference, score)

    def describe(
        self, query: Query, books: Skillbooks, positions: "Positions", similarity: F64, preference: F64
    ) -> F64:
        """Features of the shortlist, `[B, K, F]` in [0, 1] on the 2**-16 grid, columns as `names`."""
        clock = query.local
        bin_, weekend = clock // 10_800 % 8, clock // DAY % 7 >= 5
        uses, examples = positions.uses, np.maximum(positions.at(books.examples.of_skill), 1)
        moments = uses + examples  # uses and captures: each capture adds an example
        here = books.history.hours.reshape(-1)[positions.flat * 8 + bin_[:, None]]
        at_weekends = positions.at(books.history.weekend)
        best = similarity[:, :1]
        second = similarity[:, 1:2] if similarity.shape[1] > 1 else np.zeros_like(best)
        lead = similarity == best
        last = query.last_skill[:, None]
        columns: dict[str, Any] = {
            "similarity": similarity,
            "preference": preference,
            "margin": np.maximum(similarity - np.where(lead, second, best), 0.0),
            "lead": lead,
            "hour_fit": (here + 1.0) / (moments + 8.0),
            "weekday_fit": (np.where(weekend[:, None], at_weekends, moments - at_weekends) + 1.0) / (moments + 2.0),
            "freshness": 1.0 / (1.0 + (query.time[:, None] - positions.at(books.last_used)) / DAY),
            "answer_age": 1.0 / (1.0 + (query.time[:, None] - positions.at(books.born)) / DAY),
            "in_conversation": (query.gap < 1800)[:, None],
            "same_as_last": positions.skill == last,
            "length": (query.words / (query.words + 8.0))[:, None],
            "follows_last": (positions.at(books.history.after) == last) & (last >= 0),
            "uses": (uses + 1.0) / (uses + 5.0),
            "ratings": 1.0 - 2.0 / (2.0 + positions.rated),
            "examples": 1.0 - 1.0 / examples,
            "constant": 1.0,
        }
        names = self.names
        out = np.empty((len(names), *similarity.shape))  # one feature after the other: four times faster to fill
        for f, name in enumerate(names):
            out[f] = columns[name]
        out[:, positions.skill < 0] = 0.0
        return snap(out, out=out).transpose(1, 2, 0)


@lru_cache(maxsize=8)
def _retention(half_life_days: float) -> F64:
    return snap(np.array([2.0 ** (-d / half_life_days) for d in range(4000)]))


class Positions:
    """The skills of a shortlist as positions in the `[B, S]` arrays of a book."""

    def __init__(self, shortlist: Shortlist, books: Skillbooks) -> None:
        self.skill: I32 = shortlist.skill
        b, width = books.active.shape
        self.flat: I64 = np.maximum(shortlist.skill, 0) + np.arange(0, b * width, width)[:, None]
        self.uses, self.ok, self.partial = self.at(books.uses), self.at(books.ok), self.at(books.partial)
        self.miss = self.at(books.miss)
        self.rated = self.ok + self.partial + self.miss

    def at(self, column: npt.NDArray[Width]) -> npt.NDArray[Width]:
        """Values of a `[B, S]` column at the shortlisted skills, `[B, K]`."""
        return column.take(self.flat)
