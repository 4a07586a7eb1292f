"""What policies share: the best candidate of a shortlist."""

import numpy as np

from skg_bench.core.grid import I32
from skg_bench.core.types import Candidates


def best(candidates: Candidates) -> I32:
    """Place `[B]` of the largest combined score; equal scores go to the lower skill id. 0 where there are none."""
    keys = np.rint(candidates.combined * 65536.0).astype(np.int64) << 24
    keys |= (1 << 24) - 1 - np.maximum(candidates.skill, 0)
    keys[candidates.skill < 0] = np.iinfo(np.int64).min
    place: I32 = np.argmax(keys, axis=1).astype(np.int32)
    return place
