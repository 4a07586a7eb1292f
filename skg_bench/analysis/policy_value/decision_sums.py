"""One pass over logged decisions: sums of what each adds to each estimator, by user.

Blocks of rows are small enough for the cache of a processor. Where users come in order, a block is first summed over
the runs of its users. Without users each row stands for itself, and only the moments of rows are kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from skg_bench.analysis.policy_value.estimators import ESTIMATORS, TUNING_GRID, PolicyEstimator, Shrinkage
from skg_bench.core.grid import F64, I64

BLOCK_ROWS = 16_384
_EXACT = 1e-13  # smaller a part is rounded
Term = tuple[bool, Shrinkage, float]  # a sum that estimators need: with a model, shrinkage, its size


@dataclass(frozen=True, slots=True)
class LoggedDecisions:
    """Some rows of a log."""

    propensity: F64  # [n] of what was done
    reward: F64  # [n] NaN: missing
    chance: F64 | None = None  # [n] of a reward that is not missing; None: not known
    user: I64 | None = None  # [n] 0, 1, ... in the order in which they first come; None: each row is one
    predicted: F64 | None = None  # [n] a model's reward of what was done

    def __len__(self) -> int:
        return len(self.propensity)

    def rows(self, which: slice) -> "LoggedDecisions":
        """Some of the rows."""
        return LoggedDecisions(
            self.propensity[which], self.reward[which], _part(self.chance, which),
            None if self.user is None else self.user[which], _part(self.predicted, which),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class PolicyChoices:
    """A policy's view on some rows of a log."""

    probability: F64  # [n] of what was done
    expected: F64 | None = None  # [n] mean reward of the policy by the model


def _part(values: F64 | None, which: slice) -> F64 | None:
    return None if values is None else values[which]


@dataclass(frozen=True, slots=True)
class RowMoments:
    """Sums of c columns over n rows that are independent."""

    groups: int  # n
    totals: F64  # [c]
    products: F64  # [c, c] sums of products of two columns

    def spread(self, weights: F64, _over: Sequence[int]) -> tuple[float, float]:
        """Standard error of the sum of columns with these weights, whose true value is 0, and its degrees of freedom;
        NaN of fewer than two rows.
        """
        if self.groups < 2:
            return np.nan, np.nan
        size = float(np.abs(weights) @ np.abs(self.products) @ np.abs(weights))
        square = float(weights @ self.products @ weights)
        df = self.groups - 1.0
        return (0.0 if square <= _EXACT * size else (square * self.groups / df) ** 0.5), df


@dataclass(frozen=True, slots=True)
class UserSums:
    """Sums of c columns over each of G users."""

    columns: F64  # [c, G]

    @property
    def groups(self) -> int:
        """G."""
        return len(self.columns[0])

    @property
    def totals(self) -> F64:
        """Sums over all users `[c]`."""
        totals: F64 = self.columns.sum(axis=1)
        return totals

    def spread(self, weights: F64, over: Sequence[int]) -> tuple[float, float]:
        """Standard error as that of rows, and degrees of freedom. `over`: the columns that the sum is divided by.

        An estimate follows the errors of users with large shares w of them; g undoes it (Bell and McCaffrey 2002, exact
        where only users differ). Degrees of freedom are those of 1 / sum w^2 equal users.
        """
        if self.groups < 2:
            return np.nan, np.nan
        parts = self.columns[list(over)]
        w = (parts / parts.sum(axis=1, keepdims=True)).mean(axis=0)
        square = float((w**2).sum())
        g = 1.0 / np.maximum(1.0 - 2.0 * w + square, _EXACT)
        variance = float((g * (weights @ self.columns) ** 2).sum())
        size = float((g * (np.abs(weights) @ np.abs(self.columns)) ** 2).sum())
        return (0.0 if variance <= _EXACT * size else variance**0.5), max(1.0 / square - 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class WeightFigures:
    """Weights of a policy's rows, beside their sum, and what they differ by, d, from those of the reference."""

    squares: float  # sum of w^2
    apart: float  # sum of |d|
    apart_squares: float  # sum of d^2
    largest: float
    unknown: float  # sum of w where a reward is missing without a known chance
    unsupported: float  # sum of chances to do something else where the log took none, in rows


@dataclass(frozen=True, slots=True)
class SummedDecisions:
    """Sums of a whole log. Columns: rows; of each policy its weights, a model's value if it has one, its terms."""

    rows: int
    missing: int  # rewards
    lowest: float  # reward
    highest: float
    by_user: UserSums | RowMoments  # by row where no user is named
    by_row: RowMoments | None
    terms: Sequence[Sequence[Term]]  # of each policy
    places: Sequence[int]  # of the first column of each policy
    weights: Sequence[WeightFigures]

    def column(self, policy: int, term: Term) -> int:
        """Place of a term of a policy."""
        terms = self.terms[policy]
        return self.places[policy] + 1 + any(model for model, _, _ in terms) + terms.index(term)


def needed_terms(estimators: Sequence[PolicyEstimator]) -> tuple[Term, ...]:
    """Sums that these estimators need, each once; the first is that of inverse propensities."""
    terms = dict.fromkeys([ESTIMATORS["ips"].term])
    for estimator in estimators:
        sizes = TUNING_GRID if estimator.tuning else (estimator.size,)
        terms |= dict.fromkeys(estimator.at(size).term for size in sizes)
    return tuple(terms)


class DecisionSums:
    """Sums that grow block by block. `terms`: those of each policy; `rows`: are moments of rows wanted as well?
    `reference`: number of the policy that all are compared with.
    """

    def __init__(self, terms: Sequence[Sequence[Term]], *, rows: bool, reference: int = 0) -> None:
        self._terms, self._rows, self._reference = terms, rows, reference
        self._model = [any(model for model, _, _ in some) for some in terms]
        sizes = [1 + model + len(some) for some, model in zip(terms, self._model, strict=True)]
        self._places = [1, *(1 + np.cumsum(sizes)).tolist()]
        self._columns = np.empty((self._places[-1], BLOCK_ROWS))
        self._columns[0] = 1.0
        self._users = np.zeros((self._places[-1], 0))  # [c, users], with room for more
        self._n_users = 0
        self._totals, self._products = np.zeros(self._places[-1]), np.zeros((self._places[-1],) * 2)
        self._weights = np.zeros((len(terms), 6))  # as WeightFigures
        self._n, self._missing, self._lowest, self._highest = 0, 0, inf, -inf

    def add(self, log: LoggedDecisions, policies: Sequence[PolicyChoices]) -> None:
        """More rows."""
        for begin in range(0, len(log), BLOCK_ROWS):
            which = slice(begin, min(begin + BLOCK_ROWS, len(log)))
            chosen = [PolicyChoices(each.probability[which], _part(each.expected, which)) for each in policies]
            self._add(log.rows(which), chosen)

    def _add(self, log: LoggedDecisions, policies: Sequence[PolicyChoices]) -> None:
        n = len(log)
        x = self._columns[:, :n]
        absent = np.isnan(log.reward)
        some = bool(absent.any())
        known = log.reward[~absent] if some else log.reward
        if len(known):
            self._lowest, self._highest = min(self._lowest, known.min()), max(self._highest, known.max())
        self._n, self._missing = self._n + n, self._missing + int(np.count_nonzero(absent))
        inverse = 1.0 / log.propensity
        if log.chance is not None:
            inverse = np.where(absent, 0.0, inverse / log.chance) if some else inverse / log.chance
        reward = np.where(absent, 0.0, log.reward) if some else log.reward
        residual = reward
        if log.predicted is not None:
            residual = reward - log.predicted
            if some:
                residual[absent] = 0.0
        certain = log.propensity >= 1.0
        without_chance = bool(certain.any())
        for i, policy in enumerate(policies):
            at, w = self._places[i], np.multiply(policy.probability, inverse, out=x[self._places[i]])
            if self._model[i]:
                at += 1
                x[at] = policy.expected
            for model, shrinkage, size in self._terms[i]:
                at += 1
                np.multiply(shrinkage(w, size), residual if model else reward, out=x[at])
            squares, apart, apart_squares, largest, unknown, unsupported = self._weights[i]
            d = (policy.probability - policies[self._reference].probability) * inverse
            lost = w[absent].sum() if some and log.chance is None else 0.0
            elsewhere = (1.0 - policy.probability[certain]).sum() if without_chance else 0.0
            self._weights[i] = (
                squares + np.einsum("n,n", w, w),
                apart + np.abs(d).sum(),
                apart_squares + d @ d,
                max(largest, w.max()),
                unknown + lost,
                unsupported + elsewhere,
            )
        if log.user is None or self._rows:
            self._totals += x.sum(axis=1)
            self._products += x @ x.T
        if log.user is not None:
            self._add_users(log.user, x)

    def _add_users(self, user: I64, x: F64) -> None:
        starts = np.append(0, np.flatnonzero(user[1:] != user[:-1]) + 1)
        runs = np.add.reduceat(x, starts, axis=1) if len(starts) < len(user) else x
        of_run = user[starts]
        self._n_users = max(self._n_users, int(of_run.max()) + 1)
        if self._n_users > self._users.shape[1]:
            room = np.zeros((len(x), 2 * self._n_users))
            room[:, : self._users.shape[1]] = self._users
            self._users = room
        for total, run in zip(self._users, runs, strict=True):
            np.add.at(total, of_run, run)

    def total(self) -> SummedDecisions:
        """Sums over all rows that were added."""
        by_row = RowMoments(self._n, self._totals, self._products)
        by_user = UserSums(self._users[:, : self._n_users]) if self._n_users else by_row
        weights = [WeightFigures(*map(float, each)) for each in self._weights]
        return SummedDecisions(
            self._n, self._missing, float(self._lowest), float(self._highest), by_user,
            by_row if self._rows else None, self._terms, self._places[:-1], weights,
        )  # fmt: skip
