"""Shares of wrong answers among all hits of an arm, from labels of some of them, with an interval for this log.

In stratum g of N_g hits, m_g are judged: a simple random sample (`hit_pairs`). A hit has a value of a few (wrong or
not; wrong beyond the log's own answer: -1, 0, 1). With a Dirichlet prior the values of the other R_g = N_g - m_g hits
are Dirichlet-multinomial (Ericson 1969, the Polya posterior of a finite population). With A = m_g + k_g pseudo-counts,
mean p and variance s2 of a value, their sum has
    E = R_g p,        V = R_g s2 (R_g + A) / (A + 1).
The prior of all strata together is worth PRIOR_HITS hits, dealt in proportion to m_g: of a share it is that of Laplace,
of a difference that of two coins. Sum and variance over strata give, by matched moments, a beta
distribution between the smallest and the largest sum that is possible; the variance is widened by (t / z)^2 with
sum_g m_g - G degrees of freedom. In a stratum of which nothing is judged, every value stays possible.

A judged hit about which nobody could tell counts both ways, and the interval covers both.

A machine that judged all hits makes the interval narrower and never moves it: its share among all hits is known, and
labels estimate the difference, label minus machine, in the same way (difference estimator, Cochran 1977, section 7.2;
prediction-powered inference, Angelopoulos and others, Science 2023, is this one for infinite populations).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import nan

import numpy as np

from skg_bench.analysis.labels.hit_pairs import SAME_TEXT, STRATA, ArmHits
from skg_bench.analysis.statistics.intervals import ALPHA
from skg_bench.core.grid import F64, I64, Bool

PRIOR_HITS = 2.0  # judged hits that the prior of an arm is worth


class PairLabel(IntEnum):
    """Label of a pair of message and answer. `NEAR`: not what was asked for, but of use. `UNKNOWN`: cannot tell."""

    WRONG = 0
    NEAR = 1
    RIGHT = 2
    UNKNOWN = 3
    UNJUDGED = 4


@dataclass(frozen=True, slots=True)
class LabelShare:
    """A share of hits: the mean of its readings and a 95 % interval of this log; NaN and all that is possible without
    labels.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ArmShares:
    """Shares of an arm's hits, with how many of them are judged."""

    hits: int
    judged: int
    strata: I64  # [4] hits by stratum
    wrong: LabelShare
    wrong_or_near: LabelShare
    logged_wrong: LabelShare  # of the log's own answers to the same turns
    excess: LabelShare  # wrong ones beyond those of the log: the price of answering from memory


def judged_prefix(hits: ArmHits, stored: I64, logged: I64) -> Bool:
    """Hits `[H]` that count as judged: of each stratum, all before the first one that lacks a label."""
    lacking = (stored == PairLabel.UNJUDGED) | (logged == PairLabel.UNJUDGED)
    prefix = np.zeros(len(lacking), np.bool_)
    for stratum in range(len(STRATA)):
        rows = np.flatnonzero(hits.stratum == stratum)
        gaps = np.flatnonzero(lacking[rows])
        prefix[rows[: gaps[0]] if len(gaps) else rows] = True
    return prefix


def arm_shares(hits: ArmHits, stored: I64, logged: I64, machine: tuple[I64, I64] | None = None) -> ArmShares:
    """Shares of an arm from labels `[H]` of its stored answers and of the log's own to the same turns. `machine`: what
    a machine says of both, whose errors the labels take out; where it says nothing, it counts as saying not wrong.
    """
    judged = judged_prefix(hits, stored, logged)
    wrong, logged_wrong = _counted(stored, PairLabel.WRONG), _counted(logged, PairLabel.WRONG)
    bad = _counted(stored, PairLabel.WRONG, PairLabel.NEAR)
    more = [np.where(hits.stratum == SAME_TEXT, 0, a - b) for a, b in zip(wrong, logged_wrong[::-1], strict=True)]
    guess = logged_guess = bad_guess = np.zeros(len(stored), np.int64)
    if machine is not None:
        guess, logged_guess = (_counted(labels, PairLabel.WRONG)[0] for labels in machine)
        bad_guess = _counted(machine[0], PairLabel.WRONG, PairLabel.NEAR)[0]

    def share(ends: Sequence[I64], predicted: I64, values: range, known: tuple[int, ...] = ()) -> LabelShare:
        span = values.stop - values.start - 1
        differences = values if machine is None else range(-span, span + 1)
        offset = float(predicted.mean()) if len(predicted) else 0.0
        shares = [
            _share(hits.sizes, hits.stratum[judged], (end - predicted)[judged], differences, known) for end in ends
        ]
        low, high = min(each.low for each in shares) + offset, max(each.high for each in shares) + offset
        mean = float(np.mean([each.mean for each in shares])) + offset
        return LabelShare(mean, max(low, float(values[0])), min(high, float(values[-1])))

    return ArmShares(
        hits=len(hits.turn),
        judged=int(judged.sum()),
        strata=hits.sizes,
        wrong=share(wrong, guess, range(2)),
        wrong_or_near=share(bad, bad_guess, range(2)),
        logged_wrong=share(logged_wrong, logged_guess, range(2)),
        excess=share(more, guess - logged_guess, range(-1, 2), (SAME_TEXT,)),
    )


def _counted(labels: I64, *some: int) -> tuple[I64, I64]:
    """Flags of labels that are some of these, and of those that could be."""
    certain = np.isin(labels, some).astype(np.int64)
    return certain, certain | (labels == PairLabel.UNKNOWN)


def unit_variance(counts: F64, values: range) -> float:
    """Variance of a hit's value under the posterior of its stratum alone, from the counts `[K]` of each value."""
    weights, worth = counts + _prior(values), np.array(values, np.float64)
    weights /= weights.sum()
    return float(weights @ worth**2 - (weights @ worth) ** 2)


def _prior(values: range) -> F64:
    """Pseudo-counts of each value: of 0 and 1 the same, of a difference those of two coins. Differences of two wrong
    answers, which a machine alone can bring, have none.
    """
    worth = np.abs(np.array(values, np.float64))
    counts = np.ones(2) if len(values) == 2 else np.maximum(2.0 - worth, 0.0)
    prior: F64 = PRIOR_HITS * counts / counts.sum()
    return prior


def _share(sizes: I64, stratum: I64, drawn: I64, values: range, known: tuple[int, ...]) -> LabelShare:
    """Share from the values drawn in each stratum; in the strata `known` all values are 0."""
    total = int(sizes.sum())
    worth = np.array(values, np.float64)
    prior = _prior(values)
    judged = np.bincount(stratum, minlength=len(sizes))
    open_strata = [g for g in range(len(sizes)) if sizes[g] and g not in known]
    m = int(sum(judged[g] for g in open_strata))
    mean = variance = least = most = free_least = free_most = 0.0
    for g in open_strata:
        sample, rest = drawn[stratum == g], int(sizes[g] - judged[g])
        least, most = least + sample.sum() + rest * worth.min(), most + sample.sum() + rest * worth.max()
        if not judged[g]:
            free_least, free_most = free_least + rest * worth.min(), free_most + rest * worth.max()
            continue
        counts = np.array([(sample == value).sum() for value in values], np.float64)
        weights = counts + prior * judged[g] / m
        mass = weights.sum()
        p = float(weights @ worth / mass)
        unit = float(weights @ worth**2 / mass) - p**2
        mean += sample.sum() + rest * p
        variance += rest * unit * (rest + mass) / (mass + 1.0)
    if not total:
        return LabelShare(nan, nan, nan)
    if not m:
        return LabelShare(nan if open_strata else 0.0, least / total, most / total)
    from scipy import special  # costs 0.1 s: not at import

    df = max(m - sum(bool(judged[g]) for g in open_strata), 1)
    widened = variance * (special.stdtrit(df, 1 - ALPHA / 2) / special.ndtri(1 - ALPHA / 2)) ** 2
    low, high = _beta_ends(mean, widened, least - free_least, most - free_most)
    middle = mean + (free_least + free_most) / 2
    return LabelShare(middle / total, (low + free_least) / total, (high + free_most) / total)


def _beta_ends(mean: float, variance: float, least: float, most: float) -> tuple[float, float]:
    """Ends of the 95 % interval of a beta distribution of these moments between `least` and `most`."""
    width = most - least
    if width <= 0 or variance <= 0:
        return mean, mean
    p = (mean - least) / width
    concentration = p * (1 - p) * width**2 / variance - 1.0
    if concentration <= 0:
        return least, most
    from scipy import special

    ends = special.betaincinv(p * concentration, (1 - p) * concentration, (ALPHA / 2, 1 - ALPHA / 2))
    return least + width * float(ends[0]), least + width * float(ends[1])
