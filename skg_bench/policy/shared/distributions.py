"""Functions that policies share: the best candidate, and distributions over the fallback and the shortlist."""

import numpy as np

from skg_bench.core.deciding import Candidates
from skg_bench.core.grid import F64, I32


def best(candidates: Candidates) -> I32:
    """Place `[B]` of the largest combined score; equal scores go to the lower skill id. 0 where there are none."""
    return best_of(candidates.combined, candidates.skill)


def best_of(combined: F64, skill: I32) -> I32:
    """Place `[..., B]` of the largest of scores `[..., B, K]`; equal scores go to the lower skill id."""
    # scores are multiples of 2**-16 and ids stay below 2**24: the key is exact; beyond the end it is least
    keys = combined * 2.0**40 - skill
    place: I32 = keys.argmax(axis=-1).astype(np.int32)
    return place


def certain(place: I32, k: int) -> F64:
    """The distribution `[B, 1 + K]` that puts all on `place` `[B]` of a shortlist, or on the fallback (-1)."""
    share = np.zeros((len(place), 1 + k))
    share[np.arange(len(place)), place + 1] = 1.0
    return share


def uniform_choice(candidates: Candidates) -> F64:
    """The distribution `[B, 1 + K]` that is the same for the fallback and each candidate."""
    listed = np.concatenate([np.ones((len(candidates.skill), 1)), candidates.skill >= 0], axis=1)
    share: F64 = listed / listed.sum(axis=1, keepdims=True)
    return share
