"""Models of outcomes that a log lacks: whether an answer is right, how it is rated, whether an offer is accepted.

They are fitted on the log. Models that predict for a user are fitted on other users.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol, get_args

import numpy as np

from skg_bench.core.errors import UsageError, install_hint, nearest
from skg_bench.core.grid import F64, I16, I32, I64, SCALE
from skg_bench.core.types import RATINGS
from skg_bench.core.world import FALLBACK, OFFERS, PROMPTED, STORED
from skg_bench.simulator.logs.arm_log import ArmLog

ModelKind = Literal["logistic", "boosted", "constant"]
HOWS = {FALLBACK: "answers of the LLM", PROMPTED: "answers to a skill's prompt", STORED: "stored answers"}
"""Ways to serve, each after those whose answers it repeats."""
FOLDS = 5
FIT_ROWS = 30  # least rows of a fit; with fewer, all get the mean rate
_PENALTIES = (1.0, 100.0, 10_000.0)  # strengths; that with the best predictions for held-out users is taken
_LEAST_SPREAD = 1e-9
_COMPONENTS = 16  # of the vectors of messages


@dataclass(frozen=True)
class HeldOut:
    """Predicted probabilities of right answers, from models fitted without these users, and outcomes, `[n]` each.
    `weight`: 1 / chance of having been judged, with a mean of 1.
    """

    how: int  # a key of HOWS
    predicted: F64
    observed: F64
    user: I32
    weight: F64


class MessageFeatures:
    """Features of messages, and of pairs of a message and an earlier one whose answer is stored."""

    def __init__(self, messages: Sequence[str], vectors: I16) -> None:
        self._words = [frozenset(text.lower().split()) for text in messages]
        self._size = np.array([[len(text.split()), len(text)] for text in messages], np.float64)
        self._unit = vectors.astype(np.float64) / SCALE
        centred = self._unit - self._unit.mean(axis=0)
        self._components: F64 = centred @ np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :_COMPONENTS]

    def alone(self, text: I32, time: I64) -> F64:
        """Length, hour and meaning of messages `[n, F]`."""
        size, hour = self._size[text], 2 * np.pi * (time % 86_400) / 86_400
        return np.column_stack([size, np.log1p(size[:, 0]), np.sin(hour), np.cos(hour), self._components[text]])

    def pairs(self, text: I32, other: I32, age: I64, right: F64) -> F64:
        """Likeness of messages to those whose answer is stored, the answer's age, and whether it was right `[n, F]`."""
        cosine = np.einsum("nd,nd->n", self._unit[text], self._unit[other])
        a, b = ([self._words[i] for i in which.tolist()] for which in (text, other))
        shared = np.array([len(x & y) for x, y in zip(a, b, strict=True)], np.float64)
        either = np.array([len(x | y) for x, y in zip(a, b, strict=True)], np.float64)
        return np.column_stack([
            cosine, shared, either - shared, shared / np.maximum(either, 1.0), text == other,
            self._size[text][:, 0], np.log1p(age / 3600.0), right, right * cosine, right * (text == other),
        ])  # fmt: skip


class Classifier(Protocol):
    """A model of one fold, with scikit-learn's method."""

    def predict_proba(self, features: F64) -> F64:
        """Probabilities `[n, C]`."""
        ...


@dataclass(frozen=True)
class Rates:
    """The same probabilities for all."""

    rates: F64  # [C]

    def predict_proba(self, features: F64) -> F64:
        """Probabilities `[n, C]`."""
        return np.tile(self.rates, (len(features), 1))


@dataclass(frozen=True)
class LogisticModel:
    """Logistic regression, whose predictions of a few rows take microseconds."""

    weights: F64  # [F, C]
    intercept: F64  # [C] minus infinity: a class without rows

    def predict_proba(self, features: F64) -> F64:
        """Probabilities `[n, C]`."""
        logits = features @ self.weights + self.intercept
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        share: F64 = odds / odds.sum(axis=1, keepdims=True)
        return share


@dataclass(frozen=True)
class AllClasses:
    """A classifier of scikit-learn, with columns for classes without rows."""

    classes: int
    model: Any

    def predict_proba(self, features: F64) -> F64:
        """Probabilities `[n, C]`."""
        values = np.zeros((len(features), self.classes))
        values[:, self.model.classes_] = self.model.predict_proba(features)
        return values


@dataclass(frozen=True)
class CrossFitted:
    """A classifier for each fold of users, fitted on the other folds."""

    classes: int
    folds: tuple[Classifier, ...]

    def probabilities(self, fold: I64, features: F64) -> F64:
        """Probabilities `[n, C]`."""
        values = np.zeros((len(fold), self.classes))
        for i in np.unique(fold).tolist():
            rows = np.flatnonzero(fold == i)
            values[rows] = self.folds[i].predict_proba(features[rows])
        return values


def cross_fitted(
    kind: ModelKind, features: F64, outcome: I64, fold: I64, classes: int, *, weight: F64 | None = None
) -> CrossFitted:
    """Classifiers fitted on rows `[n]` with outcomes 0 to `classes` - 1. Of several penalties, the one with the largest
    likelihood on held-out rows is taken. `weight`: of rows, 1 in the mean; None: of all 1.
    """
    w = np.ones(len(outcome)) if weight is None else weight
    candidates = []
    for made in _makers(kind, classes):
        models = []
        for i in range(FOLDS):
            x, y, v = features[fold != i], outcome[fold != i], w[fold != i]
            rates = (np.bincount(y, v, classes) + 1.0) / (v.sum() + classes)  # Laplace
            models.append(Rates(rates) if len(y) < FIT_ROWS or len(np.unique(y)) < 2 else made(x, y, v, rates))
        candidates.append(CrossFitted(classes, tuple(models)))
    if len(candidates) == 1:
        return candidates[0]
    return max(candidates, key=lambda each: _likelihood(each.probabilities(fold, features), outcome, w))


def _likelihood(share: F64, outcome: I64, weight: F64) -> float:
    return float((weight * np.log(np.maximum(share[np.arange(len(outcome)), outcome], 1e-9))).sum())


Maker = Callable[[F64, I64, F64, F64], Classifier]


def _makers(kind: str, classes: int) -> list[Maker]:
    """Candidates of a fit, one for each strength of the penalty."""
    if kind not in get_args(ModelKind):
        raise UsageError(f"--reward-model {kind}: {nearest(kind, get_args(ModelKind))}")
    if kind == "constant":
        return [lambda _x, _y, _weight, rates: Rates(rates)]
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression
        from threadpoolctl import threadpool_limits  # scikit-learn comes with it
    except ImportError as error:
        raise UsageError(f"--reward-model {kind} needs scikit-learn: {install_hint('estimate')}") from error

    def boosted(x: F64, y: I64, weight: F64, _rates: F64) -> Classifier:
        model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=8, min_samples_leaf=30, random_state=0)
        with threadpool_limits(1):
            return AllClasses(classes, model.fit(x, y, sample_weight=weight))

    def logistic(x: F64, y: I64, weight: F64, _rates: F64, *, penalty: float) -> Classifier:
        mean, spread = x.mean(axis=0), np.maximum(x.std(axis=0), _LEAST_SPREAD)
        with threadpool_limits(1):  # threads that wait for one another took most of the CPU
            model = LogisticRegression(C=1.0 / penalty, max_iter=1000).fit((x - mean) / spread, y, sample_weight=weight)
        weights, intercept = np.zeros((x.shape[1], classes)), np.full(classes, -np.inf)
        two = len(model.classes_) == 2
        intercept[model.classes_] = np.append(0.0, model.intercept_) if two else model.intercept_
        weights[:, model.classes_[1:] if two else model.classes_] = model.coef_.T / spread[:, None]
        intercept[model.classes_] -= mean @ weights[:, model.classes_]
        return LogisticModel(weights, intercept)

    return [boosted] if kind == "boosted" else [partial(logistic, penalty=penalty) for penalty in _PENALTIES]


@dataclass(frozen=True)
class OutcomeModels:
    """Models of one log."""

    features: MessageFeatures
    right: Mapping[int, CrossFitted]  # by the way of serving; ways that are not logged are missing
    rating: Mapping[int, CrossFitted]  # class 0: none, then RATINGS
    accepted: CrossFitted  # classes OFFERS
    delays: I64  # of all ratings, ascending
    held_out: tuple[HeldOut, ...]

    def chance(self, how: int, fold: I64, features: F64) -> F64:
        """Probability that answers are right `[n]`; 0.5 if no answer was served this way in the log."""
        return self.right[how].probabilities(fold, features)[:, 1] if how in self.right else np.full(len(fold), 0.5)

    def ratings(self, how: int, fold: I64, features: F64, right: F64) -> F64:
        """Probabilities of no rating and of each of RATINGS `[n, 4]`, given whether the answers are right."""
        if how not in self.rating:
            return np.tile([1.0, 0.0, 0.0, 0.0], (len(fold), 1))
        return self.rating[how].probabilities(fold, rated_features(features, right))


def rated_features(features: F64, right: F64) -> F64:
    """Features of ratings `[n, F]`: those of the turn, and whether the answer is right."""
    return np.column_stack([right, features])


def folds_of(users: int) -> I64:
    """Fold of each user id."""
    return np.arange(users) % FOLDS


def outcome_models(kind: ModelKind, log: ArmLog, vectors: I16) -> tuple[OutcomeModels, ArmLog]:
    """Fit all models on a log; returns the log, too, with what they expect of answers that nobody judged. `vectors`: of
    its messages, on the embedding grid.

    Rows count by 1 / chance of having been judged. Where not all are, an answer is estimated by what is expected of it,
    and, if it was judged, the error of that by the same weight (AIPW; Robins, Rotnitzky and Zhao 1994).
    """
    features, fold = MessageFeatures(log.messages, vectors), folds_of(len(log.start) - 1)[log.user]
    right, rating, held_out = {}, {}, []
    judged, expected = ~np.isnan(log.right), log.right.copy()
    for how in HOWS:  # before there is a model
        known, unknown = (
            np.flatnonzero((log.how == how) & which & ~np.isnan(log.judged)) for which in (judged, ~judged)
        )
        expected[unknown] = np.average(log.right[known], weights=1.0 / log.judged[known]) if len(known) else 0.5
    log = replace(log, expected=expected, estimated=expected.copy())
    for how in HOWS:
        at = np.flatnonzero((log.how == how) & ~np.isnan(log.judged) & ~np.isnan(_source_expected(log)))
        known = judged[at]
        if not known.any():
            continue
        rows, now = turn_features(features, log, at, how), at[known]
        weight = 1.0 / log.judged[now]
        weight /= weight.mean()
        right[how] = cross_fitted(kind, rows[known], log.right[now].astype(np.int64), fold[now], 2, weight=weight)
        predicted = right[how].probabilities(fold[at], rows)[:, 1]
        held_out.append(HeldOut(how, predicted[known], log.right[now], log.user[now], weight))
        log.expected[at] = np.where(known, log.right[at], predicted)
        residual = np.where(known, log.right[at] - predicted, 0.0) / log.judged[at]
        log.estimated[at] = np.where(log.judged[at] < 1.0, predicted + residual, log.right[at])
        rated = log.rating[now].astype(np.int64) + 1
        seen = rated_features(rows[known], log.right[now])
        rating[how] = cross_fitted(kind, seen, rated, fold[now], 1 + len(RATINGS), weight=weight)
    at = np.flatnonzero(log.offer >= 0)
    accepted = cross_fitted(
        kind, features.alone(log.text[at], log.time[at]), log.offer[at].astype(np.int64), fold[at], len(OFFERS)
    )
    delays = np.sort(log.delay[log.rating >= 0])
    return OutcomeModels(features, right, rating, accepted, delays, tuple(held_out)), log


def turn_features(features: MessageFeatures, log: ArmLog, at: I64, how: int) -> F64:
    """Features of turns `[n]` of the log."""
    if how == FALLBACK:
        return features.alone(log.text[at], log.time[at])
    source = log.place[log.user[at], log.source[at]]
    return features.pairs(log.text[at], log.text[source], log.time[at] - log.time[source], log.expected[source])


def _source_expected(log: ArmLog) -> F64:
    """Expectation that the stored answer was right when it was given `[N]`; 0 without one."""
    return np.where(log.source >= 0, log.expected[log.place[log.user, np.maximum(log.source, 0)]], 0.0)
