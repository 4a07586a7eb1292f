"""What policies share: the best candidate of a shortlist."""

import numpy as np

from skg_bench.core.grid import I32
from skg_bench.core.types import Candidates


def best(candidates: Candidates) -> I32:
    """Place `[B]` of the largest combined score; equal scores go to the lower skill id. 0 where there are none."""
    # scores are multiples of 2**-16 and ids stay below 2**24: the key is exact; beyond the end it is least
    keys = candidates.combined * 2.0**40 - candidates.skill
    place: I32 = keys.argmax(axis=1).astype(np.int32)
    return place
