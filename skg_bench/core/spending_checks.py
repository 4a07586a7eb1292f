"""Checks of what components say that they spent: a cost below 0 would be paid back, and NaN would hide all others."""

from collections.abc import Callable
from typing import Any

import numpy as np

from skg_bench.core.errors import RowError
from skg_bench.core.grid import I64
from skg_bench.core.learning_jobs import Jobs
from skg_bench.core.types import Completions

_SPENT = ("tokens_in", "tokens_out", "cost_usd", "latency_ms")
_OF_JOBS = (*_SPENT, "tokens_cached")
_MOST = 1e12  # of anything; sums of tokens stay far below 2**63


def check_spent(spent: Completions, row: I64) -> None:
    """Raises RowError for costs `[n]` of rows `[n]` that are negative, not finite, or of another shape."""
    _check("", spent, _SPENT, row)


def check_jobs(jobs: Jobs) -> None:
    """Raises RowError for a learning job that cost less than nothing, or no number."""
    _check("Jobs.", jobs, _OF_JOBS, jobs.row)


def reporter(keep: Callable[[Jobs], None]) -> Callable[[Jobs], None]:
    """Takes the learning jobs of a turn, once they are checked."""

    def report(jobs: Jobs) -> None:
        check_jobs(jobs)
        keep(jobs)

    return report


def _check(where: str, spent: Any, names: tuple[str, ...], row: Any) -> None:
    n = len(row)
    first = int(row[0]) if n else 0
    for name in names:
        column = np.asarray(getattr(spent, name))
        if column.shape != (n,):
            raise RowError(first, f"gave {where}{name} of the shape {column.shape}; valid is [{n}]")
        if column.dtype.kind not in "iuf":
            raise RowError(first, f"gave {where}{name} of the type {column.dtype}; valid are numbers")
        if n and not (np.minimum.reduce(column) >= 0 and np.maximum.reduce(column) <= _MOST):  # NaN is neither
            at = int(np.flatnonzero(~((column >= 0) & (column <= _MOST)))[0])
            raise RowError(
                int(row[at]),
                f"gave {where}{name}={column[at]}; valid are finite numbers, not negative, up to {_MOST:g}",
            )
