"""Whether the LLM's answers said the same as stored ones would have: what a cache that verifies itself learns from.

When the LLM answers although there are candidates, its answer is compared with the stored answer of the nearest one,
which costs the user nothing and needs no rating. A policy that asks for it (`compares`) is shown how the comparisons of
the candidate came out that is nearest now. What was compared with an answer that has been replaced since is forgotten.
"""

import numpy as np

from skg_bench.core.compared import Compared
from skg_bench.core.grid import F64, I32, I64, Bool
from skg_bench.core.types import Policy


def comparing(policy: Policy, n_rows: int) -> Bool:
    """Which rows have a policy that learns from comparisons, `[n_rows]` (a stack of arms says it for each arm)."""
    asks: Bool = np.atleast_1d(np.asarray(getattr(policy, "compares", False)))
    return np.tile(asks, n_rows // len(asks))


def compares(policy: Policy) -> bool:
    """Does this policy, or one of the stack, learn from comparisons?"""
    return bool(np.any(getattr(policy, "compares", False)))


class Comparisons:
    """At most one a turn of B users, by turn."""

    def __init__(self, n_users: int, n_turns: int) -> None:
        self._skill = np.full((n_users, n_turns), -1, np.int32)
        self._similarity = np.zeros((n_users, n_turns))
        self._same = np.zeros((n_users, n_turns), np.bool_)

    def add(self, t: int, rows: I64, skill: I32, similarity: F64, same: Bool) -> None:
        """The comparisons of turn `t`, `[n]` each."""
        self._skill[rows, t], self._similarity[rows, t], self._same[rows, t] = skill, similarity, same

    def forget(self, rows: I32 | I64, skill: I32 | None = None) -> None:
        """Those with these skills `[n]` of users `rows` `[n]`, or all of theirs."""
        if skill is None:
            self._skill[rows] = -1
            return
        for row, one in zip(rows.tolist(), skill.tolist(), strict=True):
            own = self._skill[row]
            own[own == one] = -1

    def of(self, nearest: I32, similarity: F64, t: int) -> Compared:
        """Those before turn `t` with the skills `nearest` `[a]` of the first users, whose similarity now is given."""
        a = len(nearest)
        made = (self._skill[:a, :t] == nearest[:, None]) & (nearest >= 0)[:, None]
        return Compared(similarity, self._similarity[:a, :t], self._same[:a, :t], made)
