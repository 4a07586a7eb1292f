"""Replications of a simulation, each with random numbers of its own."""

import numpy as np

from skg_bench.core.draws import Purpose, fold, key


def generator(seed: int, replication: int) -> np.random.Generator:
    """The random numbers of one replication: keyed, so that any of them can be repeated alone."""
    folded = fold(key(seed, replication), int(Purpose.RESAMPLE))
    return np.random.Generator(np.random.Philox(key=int(folded)))
