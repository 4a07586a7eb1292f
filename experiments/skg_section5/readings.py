"""Statements of section 5, as conditions on figures of a draw; verdicts, as shares of the prior in which they hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from experiments.skg_section5.prior import KIND, kinds
from skg_bench.analysis.comparison.assay import ClaimVerdict
from skg_bench.analysis.summary.saturation import LIMIT
from skg_bench.core.grid import Bool
from skg_bench.study.masses import verdict_at, verdict_of, wilson

Frame = pd.DataFrame


@dataclass(frozen=True)
class Reading:
    """One way to read a claim. It holds in a draw if every figure lies between its limits, these included."""

    id: str
    claimed: str
    limits: Mapping[str, tuple[float, float]]
    unit: str = "share"  # of the first figure
    curve: bool = True  # is it about growth over time? Such claims need a corpus that lasts

    @property
    def figure(self) -> str:
        """The one whose values are told."""
        return next(iter(self.limits))


_HITS = {"hits_month_6": (0.25, 0.35), "hits_week_1": (0.025, 0.075), "slows": (1e-9, inf)}
READINGS = (
    Reading("K23", "2 to 5 new skills a week", {"added_per_week": (2, 5)}, "a week"),
    Reading("K23", "200 to 500 skills after 3 to 6 months", {"skills": (200, 500)}, "skills"),
    Reading("K24", "about 5 % of requests answered in week 1", {"hits_week_1": (0.025, 0.075)}),
    Reading("K24", "25-35 % of requests answered in month 6", {"hits_month_6": (0.25, 0.35)}),
    Reading("K24", "the rise slows after month 3", {"slows": (1e-9, inf)}),
    Reading("K24", "5 % in week 1, 25-35 % in month 6, slowing", _HITS),
    Reading("K25", "80-90 % of rated hits are ok", {"ok_of_hits": (0.8, 0.9)}, curve=False),
    Reading("K25", "80 % or more of rated hits are ok", {"ok_of_hits": (0.8, 1.0)}, curve=False),
    Reading("K25", "80-90 % of all rated turns are ok", {"ok_of_all": (0.8, 0.9)}, curve=False),
    Reading(
        "K32", "25 % or more answered in month 6, 80 % or more of rated hits ok",
        {"hits_month_6": (0.25, 1.0), "ok_of_hits_month_6": (0.8, 1.0)},
    ),
    Reading(
        "K32", "section 5 as a whole: skills a week, hit rates and ok as claimed",
        _HITS | {"added_per_week": (2, 5), "ok_of_hits": (0.8, 0.9)},
    ),
    Reading(
        "K01", "10 % or more of requests in month 6 have an earlier answer that still holds",
        {"could_be_hits_month_6": (0.1, 1.0)}, curve=False,
    ),
)  # fmt: skip
PICTURED = (0, 1, 3, 6, 9, 10)  # places in READINGS


def derived(draws: Frame) -> Frame:
    """Draws with the figures that follow from others: `skills`, the larger of the sizes after 3 and 6 months, `slows`,
    by how much the hit rate rose less in the second three months than before, and 0 or 1 for each kind of skill.
    """
    early, late = draws.hits_month_3 - draws.hits_week_1, draws.hits_month_6 - draws.hits_month_3
    skills = draws[["skills_month_3", "skills_month_6"]].max(axis=1)
    chosen = {kind: (draws[KIND] == kind).astype(float) for kind in kinds().options}
    return draws.assign(skills=skills, slows=early - late, **chosen)


def known(reading: Reading, draws: Frame) -> Bool:
    """Draws in which each figure has a denominator."""
    mask: Bool = draws[list(reading.limits)].notna().all(axis=1).to_numpy()
    return mask


def lasted(draws: Frame) -> Bool:
    """Draws in which the corpus was not used up: what the curves of others say, the corpus says."""
    mask: Bool = (draws.used_up <= LIMIT).to_numpy()
    return mask


def holds(reading: Reading, draws: Frame) -> Bool:
    """Mask of draws in which it does, as simulated."""
    return _reaches(reading, draws) & ~_exceeds(reading, draws)


def _reaches(reading: Reading, draws: Frame) -> Bool:
    met = np.ones(len(draws), np.bool_)
    for figure, (low, _) in reading.limits.items():
        met &= (draws[figure] >= low).to_numpy()
    return met


def _exceeds(reading: Reading, draws: Frame) -> Bool:
    over = np.zeros(len(draws), np.bool_)
    for figure, (_, high) in reading.limits.items():
        over |= (draws[figure] > high).to_numpy()
    return over


@dataclass(frozen=True)
class Mass:
    """The share of draws in which a reading holds, of those whose figures have denominators."""

    reading: Reading
    draws: int
    held: int  # as simulated
    surely: int  # of these, draws whose corpus lasted, or all if that does not matter
    at_most: int  # with draws whose corpus did not, and that reach what is claimed or more with its help
    spread: tuple[float, float, float]  # 5th, 50th and 95th percentile of the reading's figure

    @property
    def share(self) -> float:
        """As simulated."""
        return self.held / self.draws

    @property
    def limits(self) -> tuple[float, float]:
        """Limits of what the draws leave open at 95 % (Wilson), below what holds surely and above what may hold."""
        return wilson(self.surely, self.draws)[0], wilson(self.at_most, self.draws)[1]

    @property
    def verdict(self) -> ClaimVerdict:
        """Verdict by prior mass; none where the limits hold a cut between two verdicts."""
        return verdict_of(self.surely, self.at_most, self.draws)

    @property
    def used_up(self) -> bool:
        """Does the verdict depend on draws whose corpus was used up, and not on the number of draws alone?"""
        return verdict_at(self.surely / self.draws) != verdict_at(self.at_most / self.draws)


def mass(reading: Reading, draws: Frame) -> Mass:
    """Mass over the draws whose figures have denominators."""
    kept = draws[known(reading, draws)]
    met, mask = holds(reading, kept), lasted(kept) | (not reading.curve)
    may = np.where(mask, met, _reaches(reading, kept))
    spread = np.quantile(kept[reading.figure], (0.05, 0.5, 0.95)).tolist()
    return Mass(reading, len(kept), int(met.sum()), int((met & mask).sum()), int(may.sum()), tuple(spread))


def separating(reading: Reading, draws: Frame, parameters: Sequence[str], most: int = 3) -> list[tuple[str, float]]:
    """Parameters that tell best where it holds: the probability that a draw in which it does has the larger value."""
    kept = draws[known(reading, draws)]
    met = holds(reading, kept)
    k, n = int(met.sum()), len(met)
    if k == 0 or k == n:
        return []
    scores = []
    for name in parameters:
        ranks = rankdata(kept[name])
        scores.append((name, float((ranks[met].mean() - (k + 1) / 2) / (n - k))))
    return sorted(scores, key=lambda score: -abs(score[1] - 0.5))[:most]
