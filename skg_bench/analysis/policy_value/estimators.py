"""Estimators of the value of a policy: what a logged decision adds to each of them.

Of a decision with weight w = (chance under the policy) / (chance in the log), reward r, and a model's rewards q of the
logged action and v of the policy, all of them are means of

    y = v + s(w) (r - q),      s(w) = w, or w shrunk towards 0,

with v = q = 0 where no model is used. Self-normalised ones divide the second part by the mean weight in the place of 1.
Shrunk weights, and a model alone, make an estimator biased: its interval is one of what it estimates.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.grid import F64

Shrinkage = Callable[[F64, float], F64]
TUNING_GRID = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, inf)
"""Sizes among which `slope` and `mse` choose; those of Open Bandit Pipeline."""
TUNINGS = ("slope", "mse")


def _whole(w: F64, _size: float) -> F64:
    return w


def _nothing(w: F64, _size: float) -> F64:
    return np.zeros_like(w)


def _cut(w: F64, size: float) -> F64:
    return np.minimum(w, size)


def _switched(w: F64, size: float) -> F64:
    return w * (w <= size)


def _optimistic(w: F64, size: float) -> F64:
    if size == 0 or size == inf:  # the limits, also of a weight of 0
        return w if size else np.zeros_like(w)
    return size * w / (w * w + size)


def _harmonic(w: F64, size: float) -> F64:
    return w / (1.0 - size + size * w)


@dataclass(frozen=True, slots=True)
class PolicyEstimator:
    """An estimator, with the size of its shrinkage if it has one."""

    name: str
    model: bool  # uses a model of the reward
    normalised: bool
    shrinkage: Shrinkage
    below: float = 0.0  # sizes are smaller than this; 0: there is no size
    size: float = inf
    tuning: str = ""  # one of TUNINGS; "": the size is given
    biased: bool = False

    @property
    def title(self) -> str:
        """Name with its size, as a person gives it."""
        return f"{self.name}={self.tuning or f'{self.size:g}'}" if self.below else self.name

    def at(self, size: float) -> "PolicyEstimator":
        """The same with this size."""
        return replace(self, size=size, tuning="")

    @property
    def term(self) -> tuple[bool, Shrinkage, float]:
        """Identity of the sum that it needs: self-normalised estimators share that of the plain ones."""
        return self.model, self.shrinkage, self.size

    @property
    def without_model(self) -> "PolicyEstimator":
        """Mean of logged rewards to hold it against, where no model is needed."""
        return ESTIMATORS["snips" if self.normalised else "ips"]


def _shrunk(name: str, shrinkage: Shrinkage, *, model: bool, below: float = inf) -> PolicyEstimator:
    return PolicyEstimator(name, model, normalised=False, shrinkage=shrinkage, below=below, biased=True)


ESTIMATORS: Mapping[str, PolicyEstimator] = {
    estimator.name: estimator
    for estimator in (
        PolicyEstimator("ips", model=False, normalised=False, shrinkage=_whole),
        PolicyEstimator("snips", model=False, normalised=True, shrinkage=_whole),
        PolicyEstimator("dr", model=True, normalised=False, shrinkage=_whole),
        PolicyEstimator("sndr", model=True, normalised=True, shrinkage=_whole),
        PolicyEstimator("dm", model=True, normalised=False, shrinkage=_nothing, biased=True),
        _shrunk("clipped", _cut, model=False),
        _shrunk("clipped-dr", _cut, model=True),
        _shrunk("switch", _switched, model=True),
        _shrunk("dros", _optimistic, model=True),
        _shrunk("sg-ips", _harmonic, model=False, below=1.0),
        _shrunk("sg-dr", _harmonic, model=True, below=1.0),
    )
}
"""Inverse propensities, self-normalised, doubly robust, the model alone, cut weights (Bottou et al. 2013), Switch-DR,
optimistic shrinkage (Su et al. 2020), and sub-Gaussian weights (Metelli et al. 2021).
"""
PLAIN_ESTIMATORS, MODEL_ESTIMATORS = ("ips", "snips"), ("dr", "sndr")


def chosen_estimators(words: Sequence[str], *, model: bool) -> list[PolicyEstimator]:
    """Estimators by their names, such as `ips` or `dros=10`; none given: those without bias. `model`: is there one?

    Raises UsageError for what is none, a size that is none, and what needs a model where there is none.
    """
    names = words or (*PLAIN_ESTIMATORS, *(MODEL_ESTIMATORS if model else ()))
    chosen = {estimator.title: estimator for estimator in map(_estimator, names)}
    for title, estimator in chosen.items():
        if estimator.model and not model:
            raise UsageError(
                f"--estimator {title} needs a model of the reward: map predicted and candidates, and give policies as "
                "lists over the candidates; or take ips, snips, clipped=20"
            )
    return list(chosen.values())


def _estimator(word: str) -> PolicyEstimator:
    name, _, size = word.partition("=")
    if name not in ESTIMATORS:
        raise UsageError(f"--estimator {word}: {nearest(name, ESTIMATORS)}")
    estimator = ESTIMATORS[name]
    if not estimator.below:
        if size:
            raise UsageError(f"--estimator {word}: {name} has no size; write {name}")
        return estimator
    tunable = estimator.below == inf
    if size in TUNINGS and tunable:
        return replace(estimator, tuning=size)
    try:
        value = float(size)
    except ValueError:
        value = -1.0
    if not (0 <= value < estimator.below or (tunable and value == inf)):
        valid = "0 or more, slope or mse, such as" if tunable else "from 0 to below 1, such as"
        raise UsageError(f"--estimator {word}: {name} needs a size, {valid} {name}={10 if tunable else 0.05:g}")
    return replace(estimator, size=value)
