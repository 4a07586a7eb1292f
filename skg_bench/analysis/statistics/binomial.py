"""Intervals of a share that was counted."""

from skg_bench.analysis.statistics.intervals import ALPHA


def exact_share(count: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share of which `count` in `n` were seen (Clopper and Pearson 1934)."""
    from scipy import special  # costs 0.1 s: not at import

    low = 0.0 if count == 0 else float(special.betaincinv(count, n - count + 1, ALPHA / 2))
    high = 1.0 if count == n else float(special.betaincinv(count + 1, n - count, 1 - ALPHA / 2))
    return low, high
