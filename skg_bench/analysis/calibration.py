"""From scores to probabilities: fitted on validation scores, then applied to others, and held to another share of
out-of-scope messages than they were fitted on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression, minimize
from scipy.special import expit, xlog1py, xlogy

from skg_bench.analysis.ranking import Flags, ece
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64


@dataclass(frozen=True)
class Platt:
    """A logistic curve of the score (Platt, 1999)."""

    slope: float
    intercept: float

    def probability(self, score: F64) -> F64:
        """Probabilities `[n]` of scores `[n]`."""
        p: F64 = expit(self.slope * score + self.intercept)
        return p


@dataclass(frozen=True)
class Isotonic:
    """The best rising curve (Zadrozny and Elkan, KDD 2002): linear between the scores that it was fitted on, constant
    beyond them.
    """

    score: F64  # [m] ascending
    share: F64  # [m]

    def probability(self, score: F64) -> F64:
        """Probabilities `[n]` of scores `[n]`."""
        return np.interp(score, self.score, self.share)


def platt(score: F64, outcome: Flags) -> Platt:
    """Fit `Platt` by maximum likelihood; outcomes are drawn in by one of each kind, as Platt does, so that scores which
    part them perfectly give a finite slope.

    Raises UsageError without rows, and for scores that are not finite.
    """
    y = _checked(score, outcome)
    target = np.where(y > 0, (y.sum() + 1.0) / (y.sum() + 2.0), 1.0 / (len(y) - y.sum() + 2.0))
    middle, spread = float(score.mean()), float(score.std()) or 1.0
    x = (score - middle) / spread

    def loss(line: F64) -> tuple[float, F64]:
        p = expit(line[0] * x + line[1])
        slopes = np.array([((p - target) * x).mean(), (p - target).mean()])
        return -float((xlogy(target, p) + xlog1py(1.0 - target, -p)).mean()), slopes

    slope, intercept = minimize(loss, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-9}).x.tolist()
    return Platt(slope / spread, intercept - slope * middle / spread)


def isotonic(score: F64, outcome: Flags) -> Isotonic:
    """Fit `Isotonic` by least squares.

    Raises UsageError without rows, and for scores that are not finite.
    """
    y = _checked(score, outcome)
    distinct, group, count = np.unique(score, return_inverse=True, return_counts=True)
    return Isotonic(distinct, isotonic_regression(np.bincount(group, y) / count, weights=count.astype(np.float64)).x)


def shifted(probability: F64, rate: float, new_rate: float) -> F64:
    """Probabilities of an outcome with base rate `rate`, where it has `new_rate` and nothing else is different.

    What each outcome looks like is taken to stay, so odds change by the ratio of the base rates' odds (Saerens, Latinne
    and Decaestecker, Neural Computation 2002).
    """
    for name, value in (("rate", rate), ("new_rate", new_rate)):
        if not 0 < value < 1:
            raise UsageError(f"{name}={value} must lie between 0 and 1")
    yes, no = probability * (new_rate / rate), (1.0 - probability) * ((1.0 - new_rate) / (1.0 - rate))
    return yes / (yes + no)


def ece_at(
    probability: F64, outcome: Flags, out_of_scope: Flags, shares: Sequence[float], bins: int = 15
) -> list[float]:
    """Expected calibration error if the share of out-of-scope rows were each of `shares`.

    Rows in scope and out of it are weighed to make up that share; `ranking.ece` says what is computed.
    """
    out = np.asarray(out_of_scope, np.bool_)
    if not (out.any() and (~out).any()):
        raise UsageError("rows in scope and out of scope are both needed to weigh them to another share")
    errors = []
    for share in shares:
        if not 0 <= share <= 1:
            raise UsageError(f"share={share} must lie between 0 and 1")
        weight = np.where(out, share / out.mean(), (1.0 - share) / (~out).mean())
        errors.append(ece(probability, outcome, bins, weight=weight))
    return errors


def _checked(score: F64, outcome: Flags) -> Any:
    if len(score) != len(outcome) or not len(score):
        raise UsageError(
            f"{len(score)} scores and {len(outcome)} outcomes; one outcome for each of some scores is needed"
        )
    if not np.isfinite(score).all():
        raise UsageError(
            f"{int((~np.isfinite(score)).sum())} of {len(score)} scores are no numbers; leave those rows out"
        )
    return np.asarray(outcome, np.float64)
