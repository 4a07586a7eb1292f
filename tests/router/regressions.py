"""Books for routers that fit a regression for each message."""

import numpy as np

from skg_bench.core.types import Query, Skillbooks
from skg_bench.engine.vectors import SimilarityTable
from tests.core import samples


def world(seed: int, users: int = 20, examples: int = 25) -> tuple[Query, Skillbooks, np.ndarray]:
    """Messages, books of different lengths, and unit vectors of the texts."""
    rng = np.random.default_rng(seed)
    vectors = samples.vectors(rng, 60, 64)
    books = samples.lengthened(samples.ragged(rng, users, examples, texts=60, skills=8), vectors)
    wide = vectors.astype(np.float32)
    text = rng.integers(0, 60, users).astype(np.int32)
    return samples.query(text, SimilarityTable(wide @ wide.T), books), books, vectors / 4000.0
