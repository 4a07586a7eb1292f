"""Several weightings of the signals side by side: what each would choose, and how what it backed was rated.

A policy with `weights` (similarity, preference, score) is shown at each turn what each of them would choose at its
`threshold`. When a rating of the served skill becomes known, it counts for every weighting that would have served that
skill, over the probability with which it was served: on average each weighting is told what it would have gained by
itself (Auer, Cesa-Bianchi, Freund and Schapire 2002, section 7). Fallbacks teach nothing: arms do not learn from
ratings of the LLM's answers.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from skg_bench.core.grid import F64, I32, I64, Bool
from skg_bench.core.trials import Trials
from skg_bench.core.types import Policy
from skg_bench.engine.signals import Signals

LABEL = np.array([1.0, 0.5, 0.0])  # ok, partial, miss


def weighs(policy: Policy) -> bool:
    """Does this policy learn how to weigh the signals?"""
    return bool(getattr(policy, "weights", ()))


class Weighings:
    """The weightings of one policy, for B users."""

    def __init__(self, policy: Any, signals: Signals, n_users: int, n_turns: int) -> None:
        self.policy, self.signals, self._threshold = policy, signals, float(policy.threshold)
        weights: Sequence[Sequence[float]] = policy.weights
        self._each = [signals.weighted(*each) for each in weights]
        self._backed: Bool = np.zeros((n_users, n_turns, len(weights)), np.bool_)
        self._propensity: F64 = np.ones((n_users, n_turns))
        self._gained: F64 = np.zeros((n_users, len(weights)))
        self._tried: F64 = np.zeros((n_users, len(weights)))

    def of(self, skill: I32, similarity: F64, preference: F64, score: F64 | None) -> Trials:
        """For shortlists `[a, K]` of the first users: of equal scores the lower id is taken."""
        a = len(skill)
        place = np.empty((a, len(self._each)), np.int32)
        for m, signals in enumerate(self._each):
            combined = signals.combine(similarity, preference, score)
            combined[skill < 0] = -1.0
            best = (combined * 2.0**40 - skill).argmax(axis=1)
            place[:, m] = np.where(combined.max(axis=1) >= self._threshold, best, -1)
        return Trials(place, self._gained[:a].copy(), self._tried[:a].copy())

    def chosen(self, t: int, trials: Trials, place: I32, propensity: F64) -> None:
        """What was decided at turn `t`, `[a]` each."""
        a = len(place)
        self._backed[:a, t], self._propensity[:a, t] = trials.place == place[:, None], propensity

    def learn(self, row: I64 | I32, turn: I64 | I32, rating: I32) -> None:
        """Ratings `[n]` of what users `row` were served at their turns `turn`; each user's in their order."""
        credit = self._backed[row, turn] / self._propensity[row, turn, None]
        np.add.at(self._tried, row, credit)
        np.add.at(self._gained, row, credit * LABEL[rating][:, None])
