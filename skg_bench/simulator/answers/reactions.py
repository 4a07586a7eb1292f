"""How users react to answers and to offers. Each parameter is one for all, or one for each row of users.

Rows are those of a step, of which the last leave first: parameters of more rows than are still there are cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from skg_bench.core.calendar import DAY
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING, Feedback, feedback_rows
from skg_bench.core.grid import F64, I32, I64, Bool, snap
from skg_bench.core.world import OFFERS, Draws

_BADLY, _ACCEPTED, _DECLINED = (OFFERS.index(word) for word in ("badly_named", "accepted", "declined"))


def rating_probability(rated_share: float, partial_odds: float, miss_odds: float) -> F64:
    """Probability that a rating `[3]` is given, from odds relative to "ok"."""
    odds = np.array([1.0, partial_odds, miss_odds]) * rated_share
    return odds / (1.0 - rated_share + odds) if rated_share < 1 else np.ones(3)


def check_ratings(if_right: Sequence[float], if_near: Sequence[float], if_wrong: Sequence[float]) -> None:
    """Raises UsageError for rows of ratings that are no probabilities, or that rate a better answer worse."""
    for name, row in (("right", if_right), ("near", if_near), ("wrong", if_wrong)):
        if len(row) != 3 or not all(p >= 0 for p in row) or not abs(sum(row) - 1) < 1e-9:
            raise UsageError(
                f"simulator.rating_if_{name}={list(row)} must be three probabilities (ok, partial, miss) that sum to 1"
            )
    rows = np.array([if_wrong, if_near, if_right], np.float64)
    at_most_partial = rows[:, 1] + rows[:, 2]
    if (np.diff(rows[:, 2]) > 0).any() or (np.diff(at_most_partial) > 0).any():
        raise UsageError(
            "simulator.rating_if_*: a better answer must not be rated worse (miss, and miss + partial, fall)"
        )


@dataclass(frozen=True)
class Reactions:
    """Meaning and unit of the parameters stand in `conf/simulator/assistant.yaml`; `[B, ...]` for each row its own."""

    confusion: F64  # [3, 3] or [B, 3, 3] probability of a rating, by quality of the answer
    said: F64  # [3] or [B, 3] probability that a rating is given
    late_share: float | F64  # a number or [B], as all that follow
    late_hours: float | F64
    accept: float | F64
    accept_one_off: float | F64
    bad_name_share: float | F64
    fatigue: float | F64
    fatigue_half_life_days: float | F64

    def first(self, n_rows: int) -> "Reactions":
        """Reactions of the first rows, where each has its own."""
        if self.said.ndim == 1:
            return self
        return Reactions(*(np.asarray(getattr(self, f.name))[:n_rows] for f in fields(self)))

    def rate(self, quality: I32, draws: Draws) -> Feedback:
        """Ratings through the confusion matrix, missing not at random: bad answers are rated with higher odds. Those of
        unknown quality are not rated.
        """
        reactions = self.first(len(quality))
        row = () if reactions.said.ndim == 1 else (np.arange(len(quality)),)
        rows = reactions.confusion[(*row, quality)]
        miss = draws.rating < rows[:, 2]
        at_most_partial = draws.rating < rows[:, 2] + rows[:, 1]
        code = miss.astype(np.int32) + at_most_partial  # ok 0, partial 1, miss 2
        given = (draws.rated < reactions.said[(*row, code)]) & (quality >= 0)
        late = draws.late < reactions.late_share
        seconds = 1 + np.rint(np.minimum(-np.log(draws.delay) * reactions.late_hours * 3600, 2.0**39))
        return feedback_rows(RATING, np.where(given, code, -1), np.where(late, seconds, 0).astype(np.int64))

    def offer(self, recurring: Bool, fatigue: F64, idle: I64, draws: Draws) -> tuple[I32, F64, F64]:
        """Code in OFFERS, new fatigue, and where between 0 and 1 a bad name lies among all bad names, `[B]` each.

        `fatigue` counts earlier offers with a half-life; `idle` seconds have passed since the last one. `recurring`:
        the offer is about a request that may come again.
        """
        reactions = self.first(len(recurring))
        tired = snap(fatigue * 0.5 ** (np.floor(idle / DAY) / reactions.fatigue_half_life_days))
        willing = np.where(recurring, reactions.accept, reactions.accept_one_off) / (1.0 + reactions.fatigue * tired)
        badly = draws.name < reactions.bad_name_share
        code = np.where(draws.accept < willing, np.where(badly, _BADLY, _ACCEPTED), _DECLINED)
        return code.astype(np.int32), tired + 1.0, draws.name / np.maximum(reactions.bad_name_share, 1e-12)
