"""Answers of a log about policies and arms that were not run, as frozen rows."""

from dataclasses import dataclass
from typing import Literal

LOG = "log"
"""Name of the policy that made the log."""
EstimateVerdict = Literal["higher", "lower", "inconclusive", "reference", "withheld", "biased"]


@dataclass(frozen=True, slots=True)
class PolicyWeights:
    """Weights of a policy on a log, and whether they carry a verdict."""

    policy: str
    mean: float
    error: float  # of the mean, by user
    effective: float  # (sum of w)^2 / (sum of w^2)
    largest: float
    share: float  # of all weight, of the row with the largest
    bounds: tuple[float, float] | None  # of the value; None: no reward is missing without a known chance
    withheld: str  # reason, and what to log instead; "": none


@dataclass(frozen=True, slots=True)
class PolicyValue:
    """Estimated value of a policy, and its difference to the reference on the same log; NaN: withheld."""

    policy: str
    estimand: str  # step, loop, or snapshot@S
    estimator: str  # replay: of the estimands loop and snapshot
    value: float
    interval: tuple[float, float]  # 95 %, other users
    row_interval: tuple[float, float] | None  # as if rows were independent; None: not asked for
    difference: float
    difference_interval: tuple[float, float]
    verdict: EstimateVerdict  # on the difference


@dataclass(frozen=True, slots=True)
class ReplayedPolicy:
    """Knowledge of a log about an arm that was replayed on it, and whether it carries a verdict."""

    policy: str
    known: float  # share of turns at which the log gave the same answer
    modelled: float  # at which it might have given this one, or has many like it
    unsupported: float  # at which it could not have given it
    invented: float  # at which it gave the log's answer and made an offer, and the log made none
    these_users: tuple[float, float]  # 95 % interval of the value for the users of the log
    these_users_difference: tuple[float, float]
    sensitivity: tuple[
        float, float
    ]  # ends of the difference under other ratings, and unsupported answers wrong or right
    bounds: tuple[float, float]  # of the value, if every unknown answer is wrong, or right, at a mean price
    withheld: str  # reason, and what to log instead; "": none


@dataclass(frozen=True, slots=True)
class ModelCalibration:
    """Held-out predictions of a model of right answers, beside what was."""

    name: str  # whose answers
    rows: int
    predicted: float  # mean
    observed: float
    error: float  # standard error of their difference, by user
    clustering: float  # variance of users' sums of residuals, in multiples of that of independent ones
    worst: tuple[float, float, float]  # z of the fifth of predictions that misses most, its predicted and observed mean


@dataclass(frozen=True)
class PolicyEstimates:
    """Answers of a log: a row for each policy and estimator, and the weights of each policy."""

    reference: str
    rows: int
    users: int | None  # None: the log names none
    missing: int  # rewards
    values: tuple[PolicyValue, ...]
    weights: tuple[PolicyWeights, ...]
    replays: tuple[ReplayedPolicy, ...] = ()  # in the place of weights, of the estimands loop and snapshot
    calibrations: tuple[ModelCalibration, ...] = ()  # of the models that these needed
