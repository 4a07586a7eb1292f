"""A panel held against one baseline: the main line's, or that of the last release."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from skg_bench.analysis.gate.judge import Harm, Judged, State, judge, verdict
from skg_bench.analysis.gate.panel import Panel, changed, paired, ratios

Which = Literal["baseline", "release"]


@dataclass(frozen=True)
class Held:
    """What came of it."""

    which: Which
    base: Panel
    new: Panel
    state: State
    same: bool  # the same bits: nothing was judged
    changed: tuple[str, ...]  # digests that differ
    harms: tuple[Harm, ...]
    judged: tuple[Judged, ...]  # of each of `harms`


def hold(new: Panel, base: Panel, margins: Mapping[str, float], which: Which, name: str) -> Held:
    """The verdict on `new`, harms at `margins` being too much; `name` says where `base` was read from.

    Raises UsageError when the panels are not of the same users and events, and for metrics that cannot block.
    """
    paired(base, new, name)
    differs = tuple(changed(base, new))
    if not differs and all(np.array_equal(base.counts[count], new.counts[count]) for count in base.counts):
        return Held(which, base, new, "pass", True, (), (), ())
    harms = tuple(_harm(base, new, metric, margin) for metric, margin in margins.items())
    judged = tuple(judge(harms))
    return Held(which, base, new, verdict(judged), False, differs, harms, judged)


def _harm(base: Panel, new: Panel, name: str, margin: float) -> Harm:
    (metric, before, over_before), (_, after, over_after) = ratios(base, name), ratios(new, name)
    kept = (over_before > 0) & (over_after > 0)
    rise = after[kept] / over_after[kept] - before[kept] / over_before[kept]
    each = 0.0 - rise if metric.better == "higher" else rise
    trials = int(min(over_before.sum(), over_after.sum()))
    return Harm(name, margin, base.users[kept], each, int((~kept).sum()), trials)
