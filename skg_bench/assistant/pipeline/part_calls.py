"""Calls of routers and policies, whose answers are checked."""

from typing import Any

import numpy as np

from skg_bench.core.deciding import Candidates
from skg_bench.core.errors import UsageError, naming
from skg_bench.core.grid import F64
from skg_bench.core.types import Query, Shortlist, Skillbooks


def shortlist_by(router: Any, query: Query, books: Skillbooks) -> Shortlist:
    """Shortlist of a router.

    Raises UsageError, which names it, for one of other rows.
    """
    with naming(router):
        made: Shortlist = router.route(query, books)
    n = len(query.text)
    if len(made.skill) != n or made.similarity.shape != made.skill.shape:
        where = f"{type(router).__module__}.{type(router).__qualname__}.route"
        raise UsageError(f"{where} gave {made.skill.shape} and {made.similarity.shape}; valid is [{n}, K] for both")
    return made


def distribution_by(policy: Any, candidates: Candidates, memory: Any) -> F64:
    """Distributions of a policy, `[B, 1 + K]`.

    Raises UsageError, which names it, for rows that are none.
    """
    with naming(policy):
        share: F64 = policy.propensities(candidates, memory)
    b, k = candidates.skill.shape
    where = f"{type(policy).__module__}.{type(policy).__qualname__}.propensities"
    if share.shape != (b, 1 + k):
        raise UsageError(f"{where} gave {share.shape}; valid is [{b}, {1 + k}], column 0 the fallback")
    total = np.add.reduce(share, axis=1)
    off = np.abs(total - 1.0)
    if b and not (np.maximum.reduce(off) < 1e-6 and np.minimum.reduce(share, axis=None) >= 0):  # nor NaN
        raise UsageError(
            f"{where} gave rows with sums from {total.min():g} to {total.max():g}; valid are rows without negative "
            "numbers that sum to 1"
        )
    return share
