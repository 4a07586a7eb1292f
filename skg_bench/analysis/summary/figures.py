"""The numbers of `summary.json`: means with their intervals, differences with their tests, 9 significant digits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from skg_bench.analysis.counts.measure import Difference, Verdict
from skg_bench.analysis.statistics.intervals import Estimate

NO_BOUNDS = (float("-inf"), float("inf"))


@dataclass(frozen=True)
class Figure:
    """A mean over users with its 95 % intervals; None: there is no such number.

    `low, high`: over other users with these requests; `low_new, high_new`: over other users with new requests (other
    intents), the one that claims and verdicts use; see `statistics/intervals.py`.
    """

    mean: float | None
    low: float | None
    high: float | None
    low_new: float | None
    high_new: float | None
    n_users: int
    n_turns: int  # rows under the mean: turns, hits or ratings
    excluded: int  # users without any of these

    @classmethod
    def of(cls, e: Estimate, n_turns: int, bounds: tuple[float, float] = NO_BOUNDS) -> "Figure":
        """Figure of an estimate; intervals are cut at `bounds`."""
        (low, high), (low_new, high_new) = e.interval(new=False, bounds=bounds), e.interval(new=True, bounds=bounds)
        ends = digits(low), digits(high), digits(low_new), digits(high_new)
        return cls(digits(e.mean), *ends, e.n_users, n_turns, e.excluded)


NO_FIGURE = Figure(None, None, None, None, None, 0, 0, 0)  # stands for what was not measured


@dataclass(frozen=True)
class DifferenceFigure(Figure):
    """A paired difference, user by user, and its test (paired t)."""

    p: float | None
    p_new: float | None
    p_holm: float | None  # p_new, corrected for the number of arms in the table
    mde: float | None  # minimum detectable effect: the smallest difference found in 80 % of such runs
    mde_new: float | None  # of a verdict: corrected as p_holm; of the sign found
    mde_rise: float | None  # as mde_new, of a true difference above 0
    mde_fall: float | None  # and below 0, without its sign
    significant: bool  # p_holm < 0.05
    verdict: Verdict
    shrunken: float | None  # a significant estimate below mde_new, less what it exaggerates
    intents: float | None  # effective number of intents that carry the difference (`statistics/intervals.py`)
    least_users: float | None  # smallest share of users, and of intents, that 95 % of such runs would see
    least_intents: float | None
    others: Mapping[str, Sequence[float]]  # intervals for new requests by other methods, where they are far away

    @classmethod
    def tested(cls, d: Difference, n_turns: int) -> "DifferenceFigure":
        """Figure of a tested difference."""
        e = d.estimate
        f = Figure.of(e, n_turns)
        return cls(
            f.mean, f.low, f.high, f.low_new, f.high_new, f.n_users, f.n_turns, f.excluded, digits(d.p),
            digits(d.p_new), digits(d.p_adjusted), digits(d.mde), digits(d.mde_new), digits(d.mde_rise),
            digits(d.mde_fall), d.significant, d.verdict, digits(d.shrunken), digits(e.intents),
            digits(e.least_shares[0]), digits(e.least_shares[1]),
            {name: tuple(float(f"{end:.9g}") for end in ends) for name, ends in e.others.items()},
        )  # fmt: skip


def digits(x: float) -> float | None:
    """9 significant digits: the last bits of a sum are nobody's result."""
    return float(f"{x:.9g}") + 0.0 if isfinite(x) else None
