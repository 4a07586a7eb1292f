"""Numbers as they stand in `summary.json`: figures, differences, 9 significant digits."""

from math import isfinite
from typing import Any

from skg_bench.analysis.counts.measure import Difference
from skg_bench.analysis.statistics.intervals import Estimate

Figures = dict[str, Any]
NO_BOUNDS = (float("-inf"), float("inf"))


def figure(e: Estimate, n_turns: int, bounds: tuple[float, float] = NO_BOUNDS) -> Figures:
    """A FIGURE of `summary`, not yet rounded."""
    (low, high), (low_new, high_new) = e.interval(new=False, bounds=bounds), e.interval(new=True, bounds=bounds)
    return {
        "mean": e.mean, "low": low, "high": high, "low_new": low_new, "high_new": high_new,
        "n_users": e.n_users, "n_turns": n_turns, "excluded": e.excluded,
    }  # fmt: skip


def difference(d: Difference, n_turns: int) -> Figures:
    """A DIFFERENCE of `summary`, not yet rounded."""
    return {
        **figure(d.estimate, n_turns), "p": d.p, "p_new": d.p_new, "p_holm": d.p_adjusted, "mde": d.mde,
        "mde_new": d.mde_new, "significant": d.significant, "verdict": d.verdict,
    }  # fmt: skip


def digits(x: float) -> float | None:
    """9 significant digits: the last bits of a sum are nobody's result."""
    return float(f"{x:.9g}") + 0.0 if isfinite(x) else None


def rounded(value: Any) -> Any:
    """The same structure with every float at 9 significant digits."""
    if isinstance(value, float):
        return digits(value)
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list | tuple) else value
