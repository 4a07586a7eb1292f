"""Vectors of texts, put on the embedding grid (core/grid.py) and checked to be on it."""

import numpy as np
import numpy.typing as npt

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16, SCALE


def quantise(vectors: npt.NDArray[np.floating]) -> I16:
    """Rows `[n, D]` of any length to the embedding grid (int16).

    Raises UsageError on NaN, infinity or a zero row.
    """
    rows = np.asarray(vectors, np.float64)
    norm = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    bad = np.flatnonzero(~np.isfinite(norm) | (norm == 0))
    if bad.size:
        raise UsageError(
            f"{bad.size} of {len(rows)} embedding vectors are zero or not finite (first: row {bad[0]}); "
            "embed these texts again or remove them"
        )
    grid: I16 = np.rint(rows / norm[:, None] * SCALE).astype(np.int16)
    return grid


def check(vectors: I16, n_texts: int) -> None:
    """Raises UsageError unless `vectors` are int16 rows on the grid, one a text; longer ones would not sum exactly."""
    try:
        given = f"{vectors.dtype} {vectors.shape}"
        sound = vectors.dtype == np.int16 and vectors.ndim == 2 and len(vectors) == n_texts
    except AttributeError:
        given, sound = f"a {type(vectors).__qualname__}", False
    if not sound:
        raise UsageError(
            f"the embedder gave {given} for {n_texts} texts; int16 [{n_texts}, D] is valid, as "
            "`core.embedding_grid.quantise` makes it of vectors of any length"
        )
    length = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
    if (off := np.flatnonzero(np.abs(length - SCALE) > 1.0 + 0.5 * np.sqrt(vectors.shape[1]))).size:
        raise UsageError(
            f"{off.size} of {n_texts} vectors are off the grid: row {off[0]} has length {length[off[0]]:.0f}, valid is "
            f"rint({SCALE:.0f} x) of unit vectors x; `core.embedding_grid.quantise` makes them"
        )
