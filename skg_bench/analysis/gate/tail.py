"""Harm to few: the mean harm of the worst users, and the share of users who are harmed.

Harm of a user is what wrong answers per request rose by. Whoever looks worst is chosen by noise too: the mean of the
largest of n harms is positive where nobody is harmed. Therefore each user's turns are split in two halves, even and odd
ones, and what is chosen in one half is measured in the other (sample splitting, Cox 1975, Biometrika 62, 441-444):

    worst_users    mean over both halves of: the worst `share` of the users in one half, their mean harm in the other
    harmed_users   share of users with a harm above `beyond` in both halves

If nobody is harmed, noise in one half says nothing of the other, and the first is 0 in expectation: vectors jittered by
1e-3 gave -0.002 points, where the mean of the worst 5 % of all harms is 0.10. Otherwise it is at most the true mean of
the worst, as these are chosen with error.

Both are means over users, so that limits, skewness and numbers of users are those of any other metric, see `judge`. To
the first a user contributes ``c + n / k (chosen by one half) (harm in the other - c)``, k of n users being chosen. The
mean of this does not depend on c. It is the influence function of an expected shortfall (Rockafellar and Uryasev 2000,
J. Risk 2, 21-41) if c is the expected harm of a user who is just chosen; here c is the mean of the next k users, which
is a little less and makes limits a little wider.
"""

from math import ceil

import numpy as np

from skg_bench.analysis.gate.panel import Panel
from skg_bench.analysis.gate.rules import WORST, Rule
from skg_bench.core.grid import F64, I64


def halves(base: Panel, new: Panel) -> tuple[F64, I64]:
    """Rise of wrong answers per request in the user's even and odd turns `[n, 2]`, and the turns in these `[n, 2]`.

    Both panels have the same users and turns. NaN: a half without turns.
    """
    n, owner = len(base.users), np.repeat(np.arange(len(base.users)), base.turns)
    start = np.cumsum(base.turns) - base.turns
    cell = 2 * owner + (np.arange(len(owner)) - start[owner]) % 2
    rise = np.bincount(cell, new.wrong.astype(np.float64) - base.wrong, 2 * n).reshape(n, 2)
    turns = np.bincount(cell, minlength=2 * n).astype(np.int64).reshape(n, 2)
    with np.errstate(invalid="ignore"):
        return np.asarray(rise / turns, np.float64), turns


def user_contributions(rise: F64, rule: Rule) -> F64:
    """Contribution of every user to a tail metric, whose value is their mean; `rise` `[n, 2]` is finite."""
    if rule.option is None:
        raise ValueError(f"{rule.metric} is no tail metric")
    if rule.metric != WORST:
        return np.asarray((rise > rule.option).all(axis=1), np.float64)
    share: F64 = np.zeros(len(rise))
    for half in (0, 1):
        chosen, following = _chosen(rise, half, rule.option)
        other = rise[:, 1 - half]
        usual = float(other[following].mean()) if len(following) else 0.0
        share += usual / 2
        share[chosen] += len(rise) / len(chosen) * (other[chosen] - usual) / 2
    return share


def trials(rise: F64, turns: I64, rule: Rule) -> int:
    """Trials under a tail metric: turns in which the chosen are measured; users, of whom each is harmed or not."""
    if rule.metric != WORST or rule.option is None:
        return len(rise)
    return int(min(turns[_chosen(rise, half, rule.option)[0], 1 - half].sum() for half in (0, 1)))


def _chosen(rise: F64, half: int, share: float) -> tuple[I64, I64]:
    """Rows of the worst `share` of the users in a half, and of the next as many."""
    k, order = ceil(share * len(rise)), np.argsort(-rise[:, half], kind="stable")
    return order[:k], order[k : 2 * k]
