"""Metrics of one arm and paired differences of two, from their tallies."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import isnan
from operator import add
from typing import Literal

import numpy as np

from skg_bench.analysis.counts.metrics import Metric
from skg_bench.analysis.counts.tally import Requests, Tally
from skg_bench.analysis.statistics.inference import bh, by, holm, shrunken
from skg_bench.analysis.statistics.intervals import ALPHA, Estimate, estimates
from skg_bench.core.grid import F64

Verdict = Literal[
    "better", "worse", "higher", "lower", "identical", "equal for every user", "inconclusive",
    "depends on the interval", "withheld", "not measured", "not testable here",
]  # fmt: skip
PROVEN: tuple[Verdict, ...] = ("better", "worse", "higher", "lower")  # verdicts that a difference is there
CORRECTIONS: Mapping[str, Callable[[Sequence[float]], list[float]]] = {"holm": holm, "bh": bh, "by": by}


@dataclass(frozen=True, slots=True)
class Difference:
    """One arm against another on the same events, user by user."""

    metric: str
    estimate: Estimate  # of the mean over users of (arm - reference)
    p: float  # these requests, paired t
    p_new: float  # new requests
    p_adjusted: float  # p_new, corrected for all arms of the table
    mde: float  # minimum detectable effect, these requests
    mde_new: float  # new requests, for a verdict: corrected for all arms of the table; of the sign found
    mde_rise: float  # as mde_new, of a true difference above 0
    mde_fall: float  # and below 0, without its sign
    significant: bool  # p_adjusted below 0.05
    verdict: Verdict  # by new requests
    shrunken: (
        float  # the estimate less what it exaggerates (`inference.shrunken`); NaN: no verdict, or not below mde_new
    )


def measure(metrics: Iterable[Metric], tally: Tally, requests: Requests) -> dict[str, Estimate]:
    """The metrics' means over users."""
    results: dict[str, Estimate] = {}
    for over, group in _by_denominator(metrics).items():
        counts = ([_count(metric, tally, requests)] for metric in group)
        results |= zip((m.name for m in group), estimates(requests.cells, [tally.by_cell[over]], counts), strict=True)
    return results


@dataclass(frozen=True, slots=True)
class UserCounts:
    """The sums of every user of which a metric is the ratio, `[n]`."""

    count: F64
    total: F64

    @property
    def ratio(self) -> F64:
        """Value of the metric; NaN for users without a denominator."""
        return np.where(self.total > 0, self.count / np.where(self.total > 0, self.total, 1.0), np.nan)

    @property
    def mean(self) -> float:
        """Mean over users, the same bits as that of `measure`."""
        kept = self.total > 0
        value = self.count * np.where(kept, 1.0 / np.where(kept, self.total, 1.0), 0.0)
        return float(value[kept].sum() / kept.sum()) if kept.any() else float("nan")


def by_user(metrics: Iterable[Metric], tally: Tally, requests: Requests) -> dict[str, F64]:
    """The metrics of every user, `[n]`; NaN for users without a denominator."""
    values: dict[str, F64] = {}
    for over, group in _by_denominator(metrics).items():
        total = requests.cells.by_user(tally.by_cell[over])
        for metric in group:
            values[metric.name] = UserCounts(requests.cells.by_user(_count(metric, tally, requests)), total).ratio
    return values


def contrast(metrics: Iterable[Metric], arm: Tally, reference: Tally, requests: Requests) -> dict[str, Estimate]:
    """Means over users of the paired differences arm - reference."""
    return {name: both.estimate for name, both in paired_sums(metrics, arm, reference, requests).items()}


@dataclass(frozen=True, slots=True)
class PairedSums:
    """An arm beside its reference in one metric."""

    estimate: Estimate  # of arm - reference
    arm: UserCounts
    reference: UserCounts


def paired_sums(metrics: Iterable[Metric], arm: Tally, reference: Tally, requests: Requests) -> dict[str, PairedSums]:
    """Paired differences arm - reference, with the sums of every user."""
    results: dict[str, PairedSums] = {}
    for over, group in _by_denominator(metrics).items():
        overs = [arm.by_cell[over]] if over == "turn" else [arm.by_cell[over], reference.by_cell[over]]  # turns: same
        totals = [requests.cells.by_user(each) for each in overs]
        of_users: list[tuple[UserCounts, UserCounts]] = []
        drawn = estimates(requests.cells, overs, _sides(group, (arm, reference), requests, totals, of_users))
        results |= {
            metric.name: PairedSums(estimate, *both)
            for metric, estimate, both in zip(group, drawn, of_users, strict=True)
        }
    return results


def _sides(
    group: Sequence[Metric],
    tallies: tuple[Tally, Tally],
    requests: Requests,
    totals: Sequence[F64],
    of_users: list[tuple[UserCounts, UserCounts]],
) -> Iterator[Sequence[F64]]:
    """Numerators of both, their difference where the denominator is one; the sums of every user go to `of_users`."""
    for metric in group:
        both = [_count(metric, tally, requests) for tally in tallies]
        sums = [requests.cells.by_user(count) for count in both]
        of_users.append((UserCounts(sums[0], totals[0]), UserCounts(sums[1], totals[-1])))
        if len(totals) == 1:
            both = [both[0] - both[1]]
        yield both


def same_counts(arm: Tally, reference: Tally) -> bool:
    """Have two arms the same counts? Else they did not do the same on every turn."""
    pairs = ((arm.by_cell[name], reference.by_cell.get(name)) for name in arm.by_cell)
    return all(other is not None and np.array_equal(count, other, equal_nan=True) for count, other in pairs)


def identical(arm: Tally, reference: Tally) -> bool:
    """Did two arms do the same on every turn?"""
    return arm.digest != b"" and arm.digest == reference.digest


def differences(
    metric: Metric, estimates: Sequence[Estimate], correction: str = "holm", same: Sequence[bool] = ()
) -> list[Difference]:
    """Tests of the estimates of one table, corrected for their number. `same`: which arms are `identical` to theirs.

    A verdict needs a difference that is significant after correction, for new requests, and no other interval that says
    otherwise from afar (`Estimate.disputed`). It comes in about 80 of 100 runs if the true difference is `mde_new`. A
    significant estimate below that exaggerates: beside it stands the shrunken one.
    """
    correct = CORRECTIONS[correction]
    p_new = [e.p(new=True) for e in estimates]
    strictest = ALPHA / _times(correct, sum(p == p for p in p_new))
    results = []
    twins = same or [False] * len(estimates)
    for e, raw, adjusted, twin in zip(estimates, p_new, correct(p_new), twins, strict=True):
        mde, mde_new, rise, fall = (
            e.detectable(new=False),
            *(e.detectable(new=True, level=strictest, sign=sign) for sign in (0.0, 1.0, -1.0)),
        )
        significant = adjusted < ALPHA
        exaggerates = significant and abs(e.mean) < mde_new
        less = e.mean * shrunken(raw, ALPHA * raw / adjusted) if exaggerates else np.nan
        word = _verdict(metric, e, shown=significant, twin=twin)
        p = e.p(new=False)
        results.append(Difference(metric.name, e, p, raw, adjusted, mde, mde_new, rise, fall, significant, word, less))
    return results


def _times(correct: Callable[[Sequence[float]], list[float]], tests: int) -> float:
    """Factor of the smallest p-value among so many if all others are 1."""
    tiny = 1e-6
    return correct([tiny, *[1.0] * (tests - 1)])[0] / tiny


def weekly(metric: Metric, tally: Tally) -> F64:
    """The metric by user and week, `[n, W]`; NaN where a user was not there or has no denominator."""
    mask = tally.by_week["turn"] > 0
    if metric.over == "book":
        return np.where(mask, tally.book, np.nan)
    over = mask.astype(np.float64) if metric.over == "week" else tally.by_week[metric.over]
    count = _weighted(metric, tally.by_week)
    return np.where(over > 0, count / np.where(over > 0, over, 1.0), np.nan)


def denominator(metric: Metric, tally: Tally) -> int:
    """Rows under the metric: turns, hits, or ratings."""
    return int(tally.by_cell["turn" if metric.over in ("week", "book") else metric.over].sum())


def _weighted(metric: Metric, counts: Mapping[str, F64]) -> F64:
    terms = (counts[name] if weight == 1 else weight * counts[name] for name, weight in metric.count.items())
    return reduce(add, terms)  # one after the other: a term has 8 bytes a cell


def _by_denominator(metrics: Iterable[Metric]) -> dict[str, list[Metric]]:
    groups: dict[str, list[Metric]] = {}
    for metric in metrics:
        groups.setdefault("turn" if metric.over in ("week", "book") else metric.over, []).append(metric)
    return groups


def _count(metric: Metric, tally: Tally, requests: Requests) -> F64:
    """Numerator in every cell.

    A count per week is a count per event times the user's events per week, which no intent changes. The book at the end
    is what was added in a cell, less the removals, spread evenly over the user's turns.
    """
    count = _weighted(metric, tally.by_cell)
    if metric.over not in ("week", "book"):
        return count
    user, turn = requests.cells.user, tally.by_cell["turn"]
    turns = requests.cells.by_user(turn)
    if metric.over == "week":
        return count * (turns / requests.spans)[user]
    gone = requests.cells.by_user(count) - tally.book_end
    return count * turns[user] - gone[user] * turn


def _verdict(metric: Metric, e: Estimate, *, shown: bool, twin: bool) -> Verdict:
    if isnan(e.mean):
        return "not measured"
    if twin:
        return "identical"
    if e.mean == 0 and e.detectable(new=True) == 0:
        return "equal for every user"
    if e.withheld:
        return "withheld"
    if e.disputed:
        return "depends on the interval"
    if not shown:
        return "inconclusive"
    if metric.better == "neither":
        return "higher" if e.mean > 0 else "lower"
    return "better" if (e.mean > 0) == (metric.better == "higher") else "worse"
