"""Reactions to offers in worlds whose users accept with one probability."""

import numpy as np

from skg_bench.core.grid import F64, I32, Bool
from skg_bench.core.world import OFFERS, Reaction


def offers_accepted(offers: Bool, share: float, uniform: F64, name: I32) -> Reaction:
    """Offers that are accepted with probability `share`, under the name of each row; the others are declined.

    `offers`, `uniform` (in [0, 1)) and `name` are `[B]` each.
    """
    accepted = offers & (uniform < share)
    code = np.where(offers, np.where(accepted, OFFERS.index("accepted"), OFFERS.index("declined")), -1)
    given = np.where(accepted, name, -1).astype(np.int32)
    return Reaction(code.astype(np.int32), given, given)
