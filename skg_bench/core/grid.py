"""Exact arithmetic: the grids on which real numbers cross a seam.

Embeddings live on an integer grid, ``rint(4000 x)`` of the unit vector. By Cauchy-Schwarz a dot product of two such
vectors, and every partial sum of it, stays below 2**24 in absolute value, so float32 holds it exactly in any order of
summation, on any BLAS kernel and on a GPU. Features, signals and scores are multiples of 2**-16, fitted weights
multiples of 2**-20; their products and sums stay below 2**53 units and are exact in float64.
"""

from functools import lru_cache
from math import exp

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I8 = npt.NDArray[np.int8]
U8 = npt.NDArray[np.uint8]
I16 = npt.NDArray[np.int16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
Bool = npt.NDArray[np.bool_]

SCALE = 4000.0  # units of the embedding grid per unit of length
UNIT = 2.0**-16  # features, signals, scores
WEIGHT_UNIT = 2.0**-20  # fitted weights, about 1e-6
_LOGIT_STEPS, _LOGIT_MAX = 1024, 12  # sigmoid is tabulated: numpy's exp differs by one ulp between CPU types


def read_only(*arrays: np.ndarray | None) -> None:
    """Locks arrays that others read as well, such as the log: who writes into one gets a ValueError."""
    for array in arrays:
        if array is not None:
            array.flags.writeable = False


def kind_in_words(given: object) -> str:
    """An array with its shape and dtype, or the type of something else, for errors."""
    if isinstance(given, np.ndarray):
        return f"an array {list(given.shape)} of {given.dtype}"
    return f"a {type(given).__qualname__}"


def snap(x: F64, out: F64 | None = None) -> F64:
    """`x` rounded to multiples of 2**-16, in a new array or in `out`."""
    out = np.multiply(x, 65536.0, out=out)
    np.rint(out, out=out)
    out *= UNIT
    return out


def cosine(dots: npt.NDArray[np.floating]) -> F64:
    """Integer dot products to cosines in [0, 1] on the 2**-16 grid (negative cosines count as 0)."""
    share = np.maximum(dots, 0.0, dtype=np.float64)
    share *= 1.0 / SCALE**2
    np.minimum(share, 1.0, out=share)
    return snap(share, out=share)


@lru_cache(maxsize=1)
def _sigmoid_table() -> F64:
    logits = range(-_LOGIT_MAX * _LOGIT_STEPS, _LOGIT_MAX * _LOGIT_STEPS + 1)
    return snap(np.array([1.0 / (1.0 + exp(-i / _LOGIT_STEPS)) for i in logits]))


def sigmoid(logit: F64) -> F64:
    """Logistic function on the 2**-16 grid; logits are rounded to 1/1024 and clipped to [-12, 12]."""
    steps = np.rint(logit * _LOGIT_STEPS)
    steps += _LOGIT_MAX * _LOGIT_STEPS
    return _sigmoid_table().take(steps.astype(np.int64), mode="clip")


def solve(a: F64, b: F64) -> F64:
    """Solutions `[R, F]` of R symmetric positive definite systems `[R, F, F]`, by elimination without pivoting.

    In elementwise operations: the same bits on any BLAS, for one system or among many.
    """
    a, b = a.copy(), b.copy()
    n = b.shape[1]
    for j in range(n):
        factor = a[:, j + 1 :, j] / a[:, j, j, None]
        a[:, j + 1 :, j + 1 :] -= factor[:, :, None] * a[:, j, None, j + 1 :]
        b[:, j + 1 :] -= factor * b[:, j, None]
    for j in range(n - 1, -1, -1):
        b[:, j] /= a[:, j, j]
        b[:, :j] -= a[:, :j, j] * b[:, j, None]
    return b
