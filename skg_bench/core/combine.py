"""The combined score of the SKG paper: the weighted mean of the signals that are present."""

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, snap


def combine(weights: tuple[float, float, float] | F64, similarity: F64, preference: F64, score: F64 | None) -> F64:
    """Mean of the signals `[B, K]` under `weights` (similarity, preference, score), renormalised to sum to 1 over those
    that are present; `[B, K]` in [0, 1]. Weights may be arrays `[3, ...]` that broadcast with the signals.

    Raises UsageError if those that are present have no weight.
    """
    total = weights[0] * similarity + weights[1] * preference
    weight = weights[0] + weights[1]
    if score is not None:
        total += weights[2] * score
        weight += weights[2]
    if not np.all(weight > 0):
        raise UsageError("signals.score has all the weight, and this reranker gives no score; raise another weight")
    total /= weight
    return snap(total, out=total)
