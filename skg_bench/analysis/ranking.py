"""Quality of rankings, scores and probabilities, as functions of plain arrays.

Scores are better when higher. Equal scores are one group: no threshold can part them, so that the order of rows changes
nothing. What is undefined (no positives, no rows) is NaN. Held against scikit-learn in the tests.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, Bool

Flags = npt.NDArray[Any]  # [n] bool, or 0 and 1


def auroc(score: F64, positive: Flags) -> float:
    """Probability that a positive scores above a negative, ties counting half: area under the ROC curve."""
    at = _thresholds(score, positive)
    positives, negatives = at.positives[-1:], (at.above - at.positives)[-1:]
    if not (positives.any() and negatives.any()):
        return np.nan
    hit, alarm = np.append(0.0, at.positives / positives), np.append(0.0, (at.above - at.positives) / negatives)
    return float(np.trapezoid(hit, alarm))


def aupr(score: F64, positive: Flags) -> float:
    """Average precision: the sum over thresholds of (gain in recall) x precision, without interpolation."""
    at = _thresholds(score, positive)
    if not at.positives[-1:].any():
        return np.nan
    return float(np.sum(np.diff(at.positives, prepend=0.0) * at.positives / at.above) / at.positives[-1])


def risk_coverage(confidence: F64, wrong: Flags) -> tuple[F64, F64]:
    """Share of rows answered when only the most confident are, and the share of those that is wrong.

    By ascending coverage, one point a threshold (El-Yaniv and Wiener 2010).
    """
    at = _thresholds(confidence, wrong)
    return at.above / max(len(confidence), 1), at.positives / at.above


def aurc(confidence: F64, wrong: Flags) -> float:
    """Area under the risk-coverage curve: the mean risk over all coverages. Lower is better.

    Geifman and El-Yaniv (2017).
    """
    coverage, risk = risk_coverage(confidence, wrong)
    return float(np.sum(np.diff(coverage, prepend=0.0) * risk)) if coverage.size else np.nan


def pchr_auc(score: F64, hit_would_be_right: Flags) -> float:
    """Area under precision over cache-hit ratio: P-CHR AUC (Baral et al. 2026, arXiv:2606.19719).

    A threshold makes hits of all rows scoring at least that; the share of rows that are hits (CHR) is the axis, the
    share of hits whose stored answer is right the height. Rows without anything to serve have the score NaN: they are
    never hits, so that the area ends before CHR 1 and what is beyond counts as 0. Unlike recall, CHR counts what a
    cache saves: with a share p of rows that can be right, the best area is p (1 - ln p), not 1.
    """
    can = ~np.isnan(score)
    at = _thresholds(score[can], np.asarray(hit_would_be_right)[can])
    if not len(score):
        return np.nan
    return float(np.sum(np.diff(at.above, prepend=0.0) * at.positives / at.above) / len(score))


def ece(
    probability: F64,
    outcome: Flags,
    bins: int = 15,
    *,
    equal: Literal["width", "mass"] = "width",
    weight: F64 | None = None,
) -> float:
    """Expected calibration error: mean over rows of |mean probability - share of outcomes| of the row's bin.

    Bins of equal width (Naeini et al. 2015; Guo et al. 2017), or of equal numbers of rows, which do not leave most bins
    of skewed probabilities empty (Nguyen and O'Connor 2015). Equal probabilities share a bin. `weight` `[n]`: how much
    a row counts, for another mix of rows than there is.
    """
    p, y = _probabilities(probability, outcome)
    if bins < 1:
        raise UsageError(f"bins={bins}; at least 1")
    if not p.size:
        return np.nan
    if equal == "width":
        bin_of = np.searchsorted(np.linspace(0.0, 1.0, bins + 1)[1:-1], p)
    else:  # by the number of smaller ones, in whole numbers: a quantile would part rows by its last bit
        bin_of = np.searchsorted(np.sort(p), p) * bins // p.size
    w = np.ones_like(p) if weight is None else weight
    return float(np.abs(np.bincount(bin_of, w * p) - np.bincount(bin_of, w * y)).sum() / w.sum())


def brier(probability: F64, outcome: Flags) -> float:
    """Mean squared difference of probability and outcome (Brier 1950). Lower is better."""
    p, y = _probabilities(probability, outcome)
    return float(np.mean((p - y) ** 2)) if p.size else np.nan


def ndcg(gain: F64, k: int) -> float:
    """Mean over rows of DCG@k / best possible DCG@k, the gain at rank i divided by log2(i + 1).

    `gain` `[n, K]`: the gain of what stands at each rank, best first. A row without gain counts as 0. Jarvelin and
    Kekalainen (2002).
    """
    if k < 1:
        raise UsageError(f"k={k}; at least 1")
    discount = 1.0 / np.log2(np.arange(2, min(k, gain.shape[1]) + 2))
    dcg = gain[:, : len(discount)] @ discount
    best = -np.sort(-gain, axis=1)[:, : len(discount)] @ discount
    return float(np.mean(np.where(best > 0, dcg / np.where(best > 0, best, 1.0), 0.0))) if len(gain) else np.nan


def mrr(relevant: Bool) -> float:
    """Mean reciprocal rank of the first relevant item, 0 where there is none. `relevant` `[n, K]`, best first."""
    first = 1.0 / (np.argmax(relevant, axis=1) + 1)
    return float(np.mean(np.where(np.any(relevant, axis=1), first, 0.0))) if len(relevant) else np.nan


@dataclass(frozen=True, slots=True)
class _Thresholds:
    """Rows at or above each distinct score, highest score first, and the positives among them."""

    above: F64  # [m]
    positives: F64  # [m]


def _thresholds(score: F64, positive: Flags) -> _Thresholds:
    _same_length(score, positive)
    if np.isnan(score).any():
        raise UsageError(f"{int(np.isnan(score).sum())} of {len(score)} scores are missing; leave those rows out")
    _, group = np.unique(-np.asarray(score, np.float64), return_inverse=True)
    return _Thresholds(np.cumsum(np.bincount(group)).astype(np.float64), np.cumsum(np.bincount(group, positive)))


def _probabilities(probability: F64, outcome: Flags) -> tuple[F64, F64]:
    _same_length(probability, outcome)
    p, y = np.asarray(probability, np.float64), np.asarray(outcome, np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise UsageError("probabilities must lie between 0 and 1; calibrate the scores first")
    return p, y


def _same_length(a: Flags, b: Flags) -> None:
    if len(a) != len(b):
        raise UsageError(f"{len(a)} scores and {len(b)} outcomes; one outcome for each score is needed")
