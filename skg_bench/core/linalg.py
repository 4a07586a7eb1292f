"""Linear algebra in elementwise operations: the same bits on any BLAS, for one system or among many."""

from skg_bench.core.grid import F64


def solve(a: F64, b: F64) -> F64:
    """Solutions `[R, F]` of R symmetric positive definite systems `[R, F, F]`, by elimination without pivoting."""
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
