"""Rated turns for tests of rerankers."""

import numpy as np

from skg_bench.core.grid import F64, I32, I64, snap
from skg_bench.core.types import TrainingRows


def turns(rng: np.random.Generator, users: int, n: int, width: int, places: int = 5) -> TrainingRows:
    """`n` rated turns of `users` users, in any order, with features on the grid and shortlists of any length."""
    features = snap(rng.random((n, places, width)))
    candidates = rng.integers(1, places + 1, n).astype(np.int32)
    features[np.arange(places) >= candidates[:, None]] = 0.0
    place = (rng.random(n) * candidates).astype(np.int32)
    row, label, event = rng.integers(0, users, n), rng.choice([0, 0.5, 1], n), rng.integers(0, 2**64, n, np.uint64)
    return TrainingRows(row.astype(np.int32), features, candidates, place, label, event)


def served(row: I32 | I64, features: F64, label: F64) -> TrainingRows:
    """Turns whose shortlists are the served skill alone; `features` `[n, F]`."""
    n = len(features)
    event = np.arange(n, dtype=np.uint64)
    return TrainingRows(
        row.astype(np.int32), features[:, None], np.ones(n, np.int32), np.zeros(n, np.int32), label, event
    )


def chosen(training: TrainingRows) -> F64:
    """Features of the served skills, `[n, F]`."""
    return training.features[np.arange(len(training.place)), training.place]
