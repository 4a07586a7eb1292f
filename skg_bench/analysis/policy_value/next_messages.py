"""Do users say something else after a skill answered than after the LLM did, where chance decided between the two?

If messages do not depend on answers, what comes next is fixed before chance decides. Then sum (a - p) (y - c) has mean
0 and variance sum p (1 - p) (y - c)^2, over decisions at which a skill (a = 1) had probability p, for any feature y
of what comes next: a martingale, so that its z is about normal.
"""

from dataclasses import dataclass
from math import nan

import numpy as np
from scipy import special

from skg_bench.analysis.policy_value.estimates import StreamCheck
from skg_bench.core.grid import F64, Bool

NEXT_FEATURES = (
    "likeness of the next message to this one", "chance that the next message has the same words", "time until it",
    "length of it",
)  # fmt: skip
"""Features of what comes next, in the order of the columns."""
_LEAST = 10.0  # variance of the decisions, that of 40 fair coins; with less, z is not near normal


@dataclass(frozen=True, slots=True)
class ChanceDecisions:
    """n decisions by chance, each followed by another turn of the user."""

    skill: Bool  # [n] a skill answered
    chance: F64  # [n] probability of that
    following: F64  # [n, NEXT_FEATURES]


def stream_check(decisions: ChanceDecisions) -> StreamCheck:
    """Test of all features, with Bonferroni's correction."""
    weight = decisions.chance * (1.0 - decisions.chance)
    n = int((weight > 0).sum())
    if weight.sum() < _LEAST:
        return StreamCheck(n, nan, "", nan)
    ranks = np.apply_along_axis(_ranks, 0, decisions.following)  # so that no single row decides
    centred = ranks - weight @ ranks / weight.sum()
    variance = weight @ centred**2
    some = variance > 0
    z = np.where(some, (decisions.skill - decisions.chance) @ centred / np.sqrt(np.where(some, variance, 1.0)), 0.0)
    clearest = int(np.abs(z).argmax())
    p = min(1.0, len(z) * 2.0 * float(special.ndtr(-abs(z[clearest]))))
    return StreamCheck(n, p, NEXT_FEATURES[clearest], float(z[clearest]))


def _ranks(values: F64) -> F64:
    """Ranks of values `[n]`, from 0 to 1; equal ones have the same."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: F64 = (count.cumsum() - count / 2)[place] / len(values)
    return ranks
