"""Values of arms that were replayed on a log: known answers, and the chances of the others under models of the log.

A replay gives each turn its reward where the log gave the same answer, else the reward's expectation. Several
imputations differ in the draws of unknown answers and ratings, and so in what is learned from them. Two intervals come
of it. *These users*, what would have happened to them: the luck of unknown answers, clustered as held-out residuals
are. *Other users*: the spread between users, with Student's t, of fewer degrees of freedom where few users carry it. To
both are added the spread between imputations (Rubin 1987), the error of the models' means, and a quarter of the
sensitivity.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, isfinite, nan, sqrt

import numpy as np

from skg_bench.analysis.policy_value.decision_sums import UserSums
from skg_bench.analysis.policy_value.estimates import (
    LOG,
    EstimateVerdict,
    ModelCalibration,
    PolicyEstimates,
    PolicyValue,
    ReplayedPolicy,
    StreamCheck,
)
from skg_bench.analysis.policy_value.step_values import MOST_ERRORS
from skg_bench.analysis.statistics.intervals import ALPHA, t_quantile
from skg_bench.core.grid import F64, I32

REPLAY_SUMS = (
    "turns", "value", "chance", "unsupported_chance", "scale", "unsupported_scale", "variance", "llm_variance",
    "llm_scale", "pair", "pair_square", "audit", "known", "modelled", "unsupported", "invented",
)  # fmt: skip
"""Sums of a replay. `turns`; `value`: expected rewards. Over unknown answers: `chance`: expected rewards for being
right, `scale`: these rewards if all are right, `variance` of these rewards; the same over unsupported answers, and over
the LLM's; `pair`: the logged reward and the target's together, `pair_square`: the expected square of that. Over known
answers: `audit`: the variance that rewards have as not all were judged. Then turns whose answers are known, modelled
and unsupported, and turns with an invented offer.
"""
_MILDER, _HARSHER = -2, -1  # places of the replays with other ratings, after the imputations
MOST_UNKNOWN = 0.10  # share of turns
MOST_INVENTED = 0.01  # share of turns
MOST_SENSITIVITY = 0.01  # width of the band, in the unit of the reward
MOST_Z = 3.5  # of the mean residual of a fifth of the held-out predictions
ROUNDED = 1e-9
"""Smallest difference that is not one of sums in another order."""
_PARTS = 5  # of the sorted predictions; each has its calibration checked
_NONE = (nan, nan)
LLM_ANSWERS = "answers of the LLM"
"""Name of the model of the LLM's answers."""


@dataclass(frozen=True, slots=True)
class LoggedRewards:
    """Sums of the log over each of G users."""

    turns: F64  # [G]
    value: F64  # [G]
    missing: int  # rewards
    audit: float = 0.0  # variance of the sum, as not all were judged
    judging: tuple[float, float] = (1.0, 0.0)  # mean weight of judged ones, and its standard error


@dataclass(frozen=True, slots=True)
class ReplayedSums:
    """Sums of a target over each of G users, in each of V replays: imputations, _MILDER, _HARSHER."""

    columns: F64  # [REPLAY_SUMS, G, V]

    def of(self, name: str) -> F64:
        """Sums `[G, V]` of a column."""
        sums: F64 = self.columns[REPLAY_SUMS.index(name)]
        return sums

    def share(self, name: str) -> float:
        """Mean of a column over turns and imputations."""
        return float(self.of(name)[:, :_MILDER].sum() / self.of("turns")[:, :_MILDER].sum())


@dataclass(frozen=True)
class _Mean:
    """A mean reward a turn, or a difference of two, with the parts of its error."""

    value: float
    by_user: F64  # [G] sums, mean over imputations
    by_imputation: F64  # [M] means
    milder: float  # change of the value if drawn ratings are milder
    harsher: float
    unsupported: tuple[float, float]  # change of the value if unsupported answers are all wrong, all right
    bounds: tuple[float, float]
    luck: tuple[float, float]  # variance of the mean for these users: of the LLM's answers, of others
    weights: tuple[float, float]  # of the models in the mean: of the LLM's answers, of others
    audit: tuple[float, float]  # variance by rewards that nobody judged: of the mean; of what it leaves of the log's

    def minus(self, other: "_Mean") -> "_Mean":
        """The difference; unknown outcomes of the two are treated as independent."""
        (down, up), (below, above) = self.unsupported, other.unsupported
        first, second = self.weights, other.weights
        return _Mean(
            self.value - other.value, self.by_user - other.by_user, self.by_imputation - other.by_imputation,
            self.milder - other.milder, self.harsher - other.harsher, (down - above, up - below),
            (self.bounds[0] - other.bounds[1], self.bounds[1] - other.bounds[0]),
            (self.luck[0] + other.luck[0], self.luck[1] + other.luck[1]),
            (max(first[0], second[0]), max(first[1], second[1])), (self.audit[1] + other.audit[1], 0.0),
        )  # fmt: skip

    @property
    def band(self) -> tuple[float, float]:
        """Range of the value over other ratings, and over unsupported answers all wrong or all right."""
        moves = (0.0, self.milder, self.harsher, *self.unsupported)
        return self.value + min(moves), self.value + max(moves)


def calibration(name: str, predicted: F64, observed: F64, user: I32, weight: F64 | None = None) -> ModelCalibration:
    """Calibration of held-out predictions `[n]`, with errors clustered by user, or of independent draws if larger.
    `weight`: of rows, 1 in the mean; None: of all 1.
    """
    w = np.ones(len(predicted)) if weight is None else weight
    order = np.argsort(predicted, kind="stable")
    size = ceil(len(order) / _PARTS)
    parts = [order[i : i + size] for i in range(0, len(order), size)]
    residual = w * (observed - predicted)
    errors = [_spread(predicted[part], residual[part], user[part], w[part])[1] for part in parts]
    z = [float(residual[part].sum()) / error for part, error in zip(parts, errors, strict=True)]
    worst = int(np.abs(z).argmax())
    part, (clustering, error) = parts[worst], _spread(predicted, residual, user, w)
    (mean, rate), (low, lowest) = (
        (float(np.average(predicted[rows], weights=w[rows])), float(np.average(observed[rows], weights=w[rows])))
        for rows in (order, part)
    )
    return ModelCalibration(
        name, len(predicted), mean, rate, error / float(w.sum()), clustering, (z[worst], low, lowest)
    )


def _spread(predicted: F64, residual: F64, user: I32, weight: F64) -> tuple[float, float]:
    """Clustering of residuals, at least 1, and the standard error of their sum.

    Where hardly an answer is right, residuals are alike and say little of their spread: what draws of the predicted
    chances would have is the least.
    """
    sums, chance = np.bincount(user, residual), float((weight**2 * predicted * (1.0 - predicted)).sum())
    square = max(float(sums @ sums), chance)
    return square / chance if chance else 1.0, sqrt(square) or 1.0


def loop_values(
    logged: LoggedRewards,
    targets: Mapping[str, ReplayedSums],
    calibrations: Sequence[ModelCalibration],
    *,
    estimand: str,
    reference: str,
    stream: StreamCheck | None = None,
) -> PolicyEstimates:
    """Values of targets, and their differences to the reference, paired by user. `stream`: all are withheld where users
    react to answers.
    """
    means = {LOG: _of_log(logged, targets), **{name: _of_target(sums, logged) for name, sums in targets.items()}}
    reactive = "" if stream is None else _reacting(stream)
    misjudged = _misjudged(logged)
    withheld = {LOG: misjudged} | {
        name: reactive or misjudged or _reason(sums, calibrations) for name, sums in targets.items()
    }
    values, replays = [], []
    for name, mean in means.items():
        gap = mean.minus(means[reference])
        other, these = _intervals(mean, logged, calibrations)
        other_gap, these_gap = _intervals(gap, logged, calibrations)
        reason = withheld[name] or (withheld[reference] and f"{reference}, which it is compared with, is withheld")
        if not reason and name != reference:
            reason = _too_sensitive(gap)
        low, high = min(other_gap[0], these_gap[0]), max(other_gap[1], these_gap[1])  # a few answers may be luck
        verdict: EstimateVerdict = "higher" if low > ROUNDED else "lower" if high < -ROUNDED else "inconclusive"
        difference = gap.value
        if name == reference:
            verdict, reason = "reference", withheld[name]
        elif reason:
            verdict, difference, other_gap, these_gap = "withheld", nan, _NONE, _NONE
        if withheld[name]:
            other, these = _NONE, _NONE
        value = nan if misjudged else mean.value
        values.append(PolicyValue(name, estimand, "replay", value, other, None, difference, other_gap, verdict))
        known, modelled, unsupported, invented = (
            (1.0, 0.0, 0.0, 0.0) if name == LOG else map(targets[name].share, REPLAY_SUMS[-4:])
        )
        band = _NONE if misjudged else gap.band if name != reference else mean.band
        replays.append(
            ReplayedPolicy(name, known, modelled, unsupported, invented, these, these_gap, band, mean.bounds, reason)
        )
    rows = round(float(logged.turns.sum()))
    return PolicyEstimates(
        reference, rows, len(logged.turns), logged.missing, tuple(values), (), tuple(replays[1:]), replays[0],
        tuple(calibrations), stream,
    )  # fmt: skip


def _of_log(logged: LoggedRewards, targets: Mapping[str, ReplayedSums]) -> _Mean:
    value = float(logged.value.sum() / logged.turns.sum())
    imputations = max(sums.columns.shape[2] + _MILDER for sums in targets.values())
    return _Mean(
        value, logged.value, np.full(imputations, value), 0.0, 0.0, (0.0, 0.0), (value, value), (0.0, 0.0), (0.0, 0.0),
        (logged.audit / float(logged.turns.sum()) ** 2, 0.0),
    )  # fmt: skip


def _of_target(sums: ReplayedSums, logged: LoggedRewards) -> _Mean:
    n = float(sums.of("turns")[:, 0].sum())
    values = sums.of("value").sum(axis=0) / n
    chance, scale, unsupported, their_scale, luck, llm_luck, llm = (
        sums.of(name).sum(axis=0) / n
        for name in (
            "chance",
            "scale",
            "unsupported_chance",
            "unsupported_scale",
            "variance",
            "llm_variance",
            "llm_scale",
        )
    )
    m = slice(None, _MILDER)
    audit = float(sums.of("audit")[:, m].sum(axis=0).mean()) / n**2
    down, up = -float(unsupported[m].mean()), float((their_scale - unsupported)[m].mean())
    low, high = _NONE if logged.missing else (float((values - chance).min()), float((values - chance + scale).max()))
    return _Mean(
        float(values[m].mean()), sums.of("value")[:, m].mean(axis=1), values[m], float(values[_MILDER] - values[0]),
        float(values[_HARSHER] - values[0]), (down, up), (low, high),
        (float(llm_luck[m].mean()) / n, float((luck - llm_luck)[m].mean()) / n),
        (float(llm[m].mean()), float((scale - llm)[m].mean())),
        (audit, max(logged.audit / n**2 - audit, 0.0)),
    )  # fmt: skip


def _intervals(
    mean: _Mean, logged: LoggedRewards, calibrations: Sequence[ModelCalibration]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """95 % intervals of a mean for other users, and for the users of the log."""
    n, imputations = float(logged.turns.sum()), len(mean.by_imputation)
    sums = UserSums(np.stack([logged.turns, mean.by_user]))
    sampling, df = sums.spread(np.array([-mean.value, 1.0]) / n, (0,))
    carried = min(df, _carried(mean.by_user - mean.value * logged.turns))
    between = float(mean.by_imputation.var(ddof=1)) * (1.0 + 1.0 / imputations) if imputations > 1 else 0.0
    model = luck = 0.0
    for of_llm, weight, variance in zip((True, False), mean.weights, mean.luck, strict=True):
        models = [each for each in calibrations if (each.name == LLM_ANSWERS) == of_llm]
        model += (weight * max((each.error for each in models), default=0.0)) ** 2
        luck += variance * max((each.clustering for each in models), default=1.0)
    low, high = mean.band
    shared = between + model + ((high - low) / 4.0) ** 2
    other = _half(shared + sampling**2, between, imputations, carried)
    these = _half(shared + luck + mean.audit[0], between, imputations, df)
    return (mean.value - other, mean.value + other), (mean.value - these, mean.value + these)


def _carried(parts: F64) -> float:
    """Degrees of freedom of the variance between users, by the kurtosis of their parts `[G]` of an estimate: where few
    users carry a difference, few tell how much it varies.
    """
    squares, fourths, users = float((parts**2).sum()), float((parts**4).sum()), len(parts)
    effective = squares**2 / fourths if fourths else float(users)
    return 2.0 * users * effective / (users - effective) if effective < users else inf


def _half(variance: float, between: float, imputations: int, df: float) -> float:
    """Half of a 95 % interval, with the degrees of freedom of users, and of imputations (Barnard and Rubin 1999)."""
    if between:
        df = 1.0 / (1.0 / df + (between / variance) ** 2 / (imputations - 1))
    return t_quantile(1 - ALPHA / 2, df) * sqrt(variance)


def _too_sensitive(gap: _Mean) -> str:
    low, high = gap.band
    if high - low <= MOST_SENSITIVITY:
        return ""
    return (
        f"its difference lies between {low:+.4f} and {high:+.4f}, by ratings and answers that are not logged; "
        f"a width of {MOST_SENSITIVITY:g} is allowed. Log an arm that takes its decisions by chance, such as "
        "policy=interleave, or log the laxer of the two"
    )


def _reacting(stream: StreamCheck) -> str:
    """Reason to withhold all verdicts; empty: none."""
    if not stream.reactive:
        return ""
    size = "larger" if stream.z > 0 else "smaller"
    return (
        f"users seem to react to answers: at {stream.decisions:,} turns chance decided whether a skill answered, and "
        f"where one did, the {stream.feature} is {size} (p {stream.p:.2g}). "
        "So the target would get other messages than the log has. Run the target, or take --estimand step"
    )


def _misjudged(logged: LoggedRewards) -> str:
    """Reason to withhold all, the log's own value too; empty: none."""
    mean, error = logged.judging
    if logged.missing and not isfinite(mean):
        return (
            f"{logged.missing:,} rewards of the log are missing, and nothing says by what chance. Draw turns to be "
            "judged: skg-bench data label RUN --arm ARM --n 500 --first hit --out judged.csv, then --judged judged.csv"
        )
    if abs(mean - 1.0) > MOST_ERRORS * max(error, ROUNDED):
        return (
            f"the mean weight of judged turns is {mean:.3g} +- {error:.2g} and not 1: reward_propensity is not the "
            "chance with which they were drawn. Draw them by skg-bench data label"
        )
    return ""


def _reason(sums: ReplayedSums, calibrations: Sequence[ModelCalibration]) -> str:
    """Reason to withhold verdicts on a target, and what to log instead; empty: none."""
    if (invented := sums.share("invented")) > MOST_INVENTED:
        return (
            f"on {100 * invented:.1f} % of turns it makes an offer after an answer after which the log made none: "
            f"the reaction is invented; {100 * MOST_INVENTED:g} % are allowed. Log an arm that makes these offers"
        )
    if (unknown := sums.share("modelled") + sums.share("unsupported")) > MOST_UNKNOWN:
        return (
            f"on {100 * unknown:.1f} % of turns its answer is not the logged one; {100 * MOST_UNKNOWN:g} % are "
            "allowed. Log an arm nearer to it, or both by policy=interleave"
        )
    for each in calibrations:
        z, predicted, observed = each.worst
        if abs(z) > MOST_Z and abs(observed - predicted) * unknown > MOST_SENSITIVITY / 10:
            return (
                f"the model of {each.name} is miscalibrated: in a fifth of the log it predicts {100 * predicted:.1f} % "
                f"right answers, and {100 * observed:.1f} % were right (z {z:+.1f}). Try --reward-model boosted"
            )
    return ""
