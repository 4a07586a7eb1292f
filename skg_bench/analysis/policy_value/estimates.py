"""Estimates from a log of policies and arms that were not run, as frozen rows."""

from dataclasses import dataclass
from typing import Literal

MOST_ODDS = 6.0
"""Largest ratio of the odds of being rated, of good outcomes and of bad ones, that bounds allow for."""
LOG = "log"
"""Name of the policy that made the log."""
STEP, LOOP, SNAPSHOT = "step", "loop", "snapshot"
"""Estimands; the last is followed by a turn."""
STREAM_LEVEL = 0.01
"""Share of logs of users who do not react that are taken for logs of users who do."""
EstimateVerdict = Literal["higher", "lower", "inconclusive", "reference", "withheld", "biased"]


@dataclass(frozen=True, slots=True)
class RatedValue:
    """Value of a policy from the rewards that are known, where nothing says by what chance they are."""

    value: float  # if missing ones are as good as known ones
    low: float  # if the odds of being known are MOST_ODDS times as large for good rewards as for bad ones
    high: float  # if they are so much larger for bad ones


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
    rated: RatedValue | None  # None: as bounds
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
    """Shares of a replayed arm's turns that are logged, and whether the log suffices for a verdict."""

    policy: str
    known: float  # share of turns with the logged answer
    modelled: float  # share with another answer that the log's arm could have given
    unsupported: float  # share with an answer that the log's arm could not have given
    invented: float  # share with the logged answer and an offer that is not logged
    these_users: tuple[float, float]  # 95 % interval of the value for the users of the log
    these_users_difference: tuple[float, float]
    sensitivity: tuple[float, float]  # band of the difference: other ratings, unsupported answers all wrong or right
    bounds: tuple[float, float]  # of the value, if unknown answers are wrong, or right; NaN: not all are judged
    withheld: str  # reason, and what to log instead; "": none


@dataclass(frozen=True, slots=True)
class ModelCalibration:
    """Calibration of a model of right answers on users on whom it was not fitted."""

    name: str  # whose answers
    rows: int
    predicted: float  # mean
    observed: float
    error: float  # standard error of their difference, by user
    clustering: float  # variance of users' sums of residuals, in multiples of that of independent ones
    worst: tuple[float, float, float]  # z of the worst fifth of predictions, its predicted and observed mean


@dataclass(frozen=True, slots=True)
class StreamCheck:
    """Test whether users say something else after a skill answered than after the LLM did."""

    decisions: int  # that chance took between the two
    p: float  # of the feature that differs most, corrected for their number; NaN: too few decisions
    feature: str  # the one that differs most
    z: float  # above 0: larger where a skill answered

    @property
    def reactive(self) -> bool:
        """Do users react to answers?"""
        return self.p < STREAM_LEVEL


@dataclass(frozen=True)
class PolicyEstimates:
    """Estimates from a log: a row for each policy and estimator, and the weights of each policy."""

    reference: str
    rows: int
    users: int | None  # None: the log names none
    missing: int  # rewards
    values: tuple[PolicyValue, ...]
    weights: tuple[PolicyWeights, ...]
    replays: tuple[ReplayedPolicy, ...] = ()  # for the estimands loop and snapshot, in place of weights
    of_log: ReplayedPolicy | None = None  # the log itself, beside replays
    calibrations: tuple[ModelCalibration, ...] = ()  # of the models that these needed
    stream: StreamCheck | None = None  # do users react to answers? None: the log's policy decides by more than scores

    @property
    def reasons(self) -> tuple[tuple[str, str], ...]:
        """Policies that are withheld, and why."""
        rows: list[PolicyWeights | ReplayedPolicy] = [*self.weights, *self.replays]
        if self.of_log is not None:
            rows.insert(0, self.of_log)
        return tuple((each.policy, each.withheld) for each in rows if each.withheld)
