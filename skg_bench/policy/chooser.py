"""A simulated reader of the prompt: which skill it uses depends on what the prompt says of each (P45)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.batch import RenewedSkills
from skg_bench.core.deciding import Candidates, Decision
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import AFTERWARDS, FEEDBACK_KINDS, KnownFeedback
from skg_bench.core.grid import F64, I32
from skg_bench.core.growing import wider
from skg_bench.core.reach import REACHES_NOTHING, Reaches

_LEVELS = FEEDBACK_KINDS["afterwards"]
_OK, _MISS = _LEVELS.index("ok"), _LEVELS.index("miss")
_MOST = 1e6  # of a weight: sums of these stay finite


@dataclass(frozen=True, slots=True)
class RatedAfterwards:
    """Later answers about B users' skills, where an arm's signs keep these apart."""

    count: I32  # [B, S, 3] ok, partial, miss


@dataclass(frozen=True)
class Chooser:
    """Chooses a skill in proportion to exp(score / temperature).

    The generic question is one whose score is `none`; of the others it is

        score = rating * what the prompt says of its success + similarity * MaxSim + position * 1 / (1 + place)

    with places from 0. What the prompt says is the mean of a Beta(1, 1) posterior of helpful and harmful uses; for a
    skill with ratings that were kept apart, the mean of that and of the same of these.
    """

    rating: float
    similarity: float
    position: float
    none: float
    temperature: float
    reads: ClassVar[Sequence[str]] = ("afterwards",)
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        for name in ("rating", "similarity", "position", "none"):
            if not abs(getattr(self, name)) <= _MOST:
                raise UsageError(f"policy.{name}={getattr(self, name)} must be finite, between -1e6 and 1e6")
        if not 0.001 <= self.temperature < float("inf"):
            raise UsageError(
                f"policy.temperature={self.temperature} must be finite and at least 0.001; the lower it is, the "
                "less is left to chance"
            )

    def start(self, n: int) -> RatedAfterwards:
        """Memory without later answers."""
        return RatedAfterwards(np.zeros((n, 8, len(_LEVELS)), np.int32))

    def propensities(self, candidates: Candidates, state: RatedAfterwards) -> F64:
        """Shares of exp(score / temperature)."""
        b, k = candidates.skill.shape
        score = np.full((b, 1 + k), float(self.none))
        score[:, 1:] = self.rating * _displayed(candidates, state)
        score[:, 1:] += self.similarity * candidates.similarity
        score[:, 1:] += self.position / (1.0 + np.arange(k))
        score[:, 1:][candidates.skill < 0] = -np.inf
        weight = np.exp((score - score.max(axis=1, keepdims=True)) / self.temperature)
        share: F64 = weight / weight.cumsum(axis=1)[:, -1:]  # from left to right: the same bits for any number of users
        return share

    def learn(
        self, state: RatedAfterwards, decision: Decision, known: KnownFeedback, renewed: RenewedSkills
    ) -> RatedAfterwards:
        """Counts later answers; where a stored answer was replaced, they are forgotten, as its ratings are."""
        later = known.rows((known.kind == AFTERWARDS) & (known.skill >= 0))
        count = wider(state.count, int(later.skill.max(initial=-1)) + 1, 0)
        np.add.at(count, (later.row, later.skill, later.value), 1)
        known_of = renewed.skill < count.shape[1]
        count[renewed.row[known_of], renewed.skill[known_of]] = 0
        return RatedAfterwards(count)


def _displayed(candidates: Candidates, state: RatedAfterwards) -> F64:
    """The rating that the prompt shows, `[B, K]` in (0, 1)."""
    skill, width = candidates.skill, state.count.shape[1]
    helpful = 2.0 * candidates.ok - candidates.rated + candidates.miss  # `ok` counts partial ones half
    at_once = _mean(helpful, candidates.miss)
    rows = np.arange(len(skill))[:, None]
    later = state.count[rows, np.clip(skill, 0, width - 1)] * ((skill >= 0) & (skill < width))[:, :, None]
    judged = later.sum(axis=2) > 0
    return np.where(judged, 0.5 * (at_once + _mean(later[:, :, _OK], later[:, :, _MISS])), at_once)


def _mean(helpful: F64 | I32, harmful: F64 | I32) -> F64:
    """Mean of a Beta(1, 1) posterior."""
    mean: F64 = (helpful + 1.0) / (helpful + harmful + 2.0)
    return mean
