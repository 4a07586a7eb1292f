"""Contrasts that an experiment asks for by name: what made a difference, and what makes none.

A placebo is accepted by equivalence: two one-sided tests show that the difference lies within a margin. An interval
that holds 0 is not enough: a small run has wide ones. Every placebo has to pass, so p-values need no correction for
their number.
"""

from dataclasses import dataclass
from typing import Literal

from skg_bench.analysis.counts.measure import contrast
from skg_bench.analysis.counts.metrics import Metric, Utility
from skg_bench.analysis.counts.outcomes import metrics_of
from skg_bench.analysis.counts.tally import Tally, events, tallies
from skg_bench.analysis.statistics.intervals import ALPHA, Estimate
from skg_bench.runfolder.run import RunTables

KINDS = ("nothing by construction", "control", "effect")
ContrastVerdict = Literal["equivalent", "not equivalent", "inconclusive"]
MARGINS = {"utility": 0.005, "hit_rate": 0.005}  # one right answer in two hundred requests; half a point of hits


@dataclass(frozen=True)
class Contrast:
    """An arm against another one, from the turn on at which they part: an entry of `contrasts` in the configuration."""

    kind: str  # of KINDS
    arm: str
    reference: str
    asks: str
    bound: str | None = None  # arm with an oracle in the place of the part: the largest effect it could have had


@dataclass(frozen=True)
class ContrastResult:
    """A contrast in one metric."""

    contrast: Contrast
    metric: Metric
    margin: float
    estimate: Estimate
    p: float  # of "the means differ by the margin or more", new requests
    verdict: ContrastVerdict
    largest: Estimate | None  # of `bound` against the reference; None: there is no such arm


def contrasts(run: RunTables) -> list[Contrast]:
    """Contrasts that the run's configuration names."""
    return [Contrast(**entry) for entry in run.manifest["config"].get("contrasts") or ()]


def findings(run: RunTables) -> list[ContrastResult]:
    """All contrasts in the metrics that have a margin, in order, per metric."""
    pairs, requests, shown = contrasts(run), events(run), metrics_of(run, Utility.of(run.manifest["config"]))
    since = {pair: parting(run, pair) for pair in pairs}
    starts = sorted(set(since.values()))
    arms = dict.fromkeys(arm for pair in pairs for arm in (pair.arm, pair.reference, pair.bound) if arm is not None)
    by_arm: dict[str, dict[int, Tally]] = {arm: tallies(run, arm, requests, since=starts) for arm in arms}
    rows = []
    for name, margin in MARGINS.items():
        for pair in pairs:
            arm, reference = (by_arm[a][since[pair]] for a in (pair.arm, pair.reference))
            estimate, largest = contrast([shown[name]], arm, reference, requests)[name], None
            if pair.bound is not None:
                largest = contrast([shown[name]], by_arm[pair.bound][since[pair]], reference, requests)[name]
            rows.append(
                ContrastResult(pair, shown[name], margin, estimate, *contrast_verdict(estimate, margin), largest)
            )
    return rows


def parting(run: RunTables, pair: Contrast) -> int:
    """The turn from which on two arms can differ: that of the fork which they do not share."""
    forks = {run.manifest["compositions"][arm]["fork"] for arm in (pair.arm, pair.reference)} - {None}
    return min((int(fork.partition("@")[2]) for fork in forks), default=0)


def contrast_verdict(estimate: Estimate, margin: float) -> tuple[float, ContrastVerdict]:
    """p-value of "they differ by the margin or more", and what is shown about new requests, one-sided at 5 % each.

    *Equivalent*: the difference lies within the margin. *Not equivalent*: it lies beyond.
    """
    p = estimate.equivalence(margin)
    if p < ALPHA:
        return p, "equivalent"
    beyond = estimate.limit(ALPHA) >= margin or estimate.limit(1 - ALPHA) <= -margin
    return p, "not equivalent" if beyond else "inconclusive"
