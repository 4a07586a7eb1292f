"""Conditions on at most two parameters under which a claim holds: found on half of the draws, told by the other.

"Attainable, in 58 % of the prior" says how wide a prior was taken. What helps a reader is under which condition it
holds. A condition is a limit of one parameter, or of two, either side of each. All are tried, limits at quantiles of
the draws. Draws are split by even and odd numbers, as a condition is best on those that it was chosen on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import fisher_exact

from skg_bench.core.grid import Bool
from skg_bench.study.masses import Share

QUANTILES = 19  # quantiles of each parameter that are tried: 5 %, 10 %, ...
LEAST = 5  # draws of the first half on either side of a condition
SECOND = 0.02  # of the draws, so many more must be told rightly for a second limit to be taken
NOWHERE = "No condition on one or two parameters tells where, on draws that it was not chosen on."
CHANCE = 0.01  # p-value, on the other half, from which a condition tells nothing


@dataclass(frozen=True)
class Limit:
    """One side of a limit of a parameter."""

    name: str
    at: float
    below: bool

    def meets(self, draws: pd.DataFrame) -> Bool:
        """Mask of the draws that meet it."""
        mask: Bool = ((draws[self.name] < self.at) == self.below).to_numpy(np.bool_)
        return mask

    def __str__(self) -> str:
        return f"{self.name} is {'below' if self.below else 'at least'} {self.at:.3g}"


@dataclass(frozen=True)
class ClaimCondition:
    """All of some limits, and how often a claim holds where they are met and elsewhere, on draws that chose nothing."""

    limits: tuple[Limit, ...]
    met: Share
    elsewhere: Share

    def __str__(self) -> str:
        return (
            f"where {' and '.join(map(str, self.limits))}: in {self.met.held} of {self.met.draws} draws, and in "
            f"{self.elsewhere.held} of {self.elsewhere.draws} elsewhere"
        )


def condition(draws: pd.DataFrame, parameters: Sequence[str], holds: Bool) -> ClaimCondition | None:
    """The condition that tells best in which draws a claim holds; None: none does better than chance on the other half.

    `holds` is of each of the `draws`, whose `draw` is their number.
    """
    first = (draws["draw"].to_numpy() % 2 == 0).astype(np.bool_)
    limits = _found(draws[first], parameters, holds[first])
    if not limits:
        return None
    rest, truth = draws[~first], holds[~first]
    met = np.logical_and.reduce([limit.meets(rest) for limit in limits])
    inside, outside = (Share(int(truth[mask].sum()), int(mask.sum())) for mask in (met, ~met))
    if not inside.draws or not outside.draws:
        return None
    table = [[share.held, share.draws - share.held] for share in (inside, outside)]
    better = fisher_exact(table, alternative="greater").pvalue < CHANCE
    return ClaimCondition(limits, inside, outside) if better else None


def _found(draws: pd.DataFrame, parameters: Sequence[str], holds: Bool) -> tuple[Limit, ...]:
    """One limit, or two where the second tells more draws rightly; none where nothing varies."""
    tried = _tried(draws, parameters)
    if not tried or holds.all() or not holds.any():
        return ()
    masks = np.stack([limit.meets(draws) for limit in tried]).astype(np.float64)
    worth = np.where(holds, 0.5 / holds.sum(), -0.5 / (~holds).sum())  # each side of the claim counts as much
    both, sizes = (masks * worth) @ masks.T, masks @ masks.T
    allowed = (sizes >= LEAST) & (sizes <= len(draws) - LEAST)
    same = np.equal.outer([limit.name for limit in tried], [limit.name for limit in tried])
    pairs, alone = np.where(allowed & ~same, both, -np.inf), np.where(np.diag(allowed), np.diag(both), -np.inf)
    best = int(alone.argmax())
    i, j = divmod(int(pairs.argmax()), len(tried))
    if pairs[i, j] > max(alone[best], 0.0) + SECOND:
        return tried[i], tried[j]
    return (tried[best],) if alone[best] > 0 else ()


def _tried(draws: pd.DataFrame, parameters: Sequence[str]) -> list[Limit]:
    quantiles = np.arange(1, QUANTILES + 1) / (QUANTILES + 1)
    return [
        Limit(name, float(at), below)
        for name in parameters
        if draws[name].min() < draws[name].max()
        for at in np.unique(np.quantile(draws[name], quantiles))
        for below in (True, False)
    ]
