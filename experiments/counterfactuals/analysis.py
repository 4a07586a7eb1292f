"""Counterfactuals and placebos of a run of `counterfactuals`: what made a difference, and what makes none."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.table import Table

from skg_bench.analysis.inference import PairedT, equivalence
from skg_bench.analysis.intervals import ALPHA, Estimate
from skg_bench.analysis.measure import contrast
from skg_bench.analysis.metrics import Utility, metrics
from skg_bench.analysis.tally import Tally, events, tallies
from skg_bench.analysis.wording import interval, number
from skg_bench.core.run import Run

Kind = Literal["nothing by construction", "control", "effect"]
Verdict = Literal["equivalent", "not equivalent", "inconclusive"]
MARGINS = {"utility": 0.005, "hit_rate": 0.005}  # one right answer in two hundred requests; half a point of hits


@dataclass(frozen=True)
class Contrast:
    """An arm against another one, from the turn on at which they part."""

    kind: Kind
    arm: str
    reference: str
    asks: str


@dataclass(frozen=True)
class Finding:
    """A contrast in one metric."""

    contrast: Contrast
    metric: str
    unit: str
    estimate: Estimate
    p: float  # of "the means differ by the margin or more", new requests
    verdict: Verdict


CONTRASTS = (
    Contrast("nothing by construction", "plain_copies", "plain_frozen", "copies of skills, by similarity alone"),
    Contrast("nothing by construction", "sham_again", "sham", "other sham content"),
    Contrast("nothing by construction", "permuted_again", "permuted", "other ratings of other turns"),
    Contrast("control", "copies", "frozen_100", "a book that grows by copies of its skills"),
    Contrast("control", "sham", "frozen_100", "captures of random turns"),
    Contrast("control", "permuted", "identity", "ratings of other turns"),
    Contrast("control", "donor", "emptied", "another user's book"),
    Contrast("effect", "skg", "frozen_100", "all that was captured later"),
    Contrast("effect", "skg", "copies", "that, without the growth of the book"),
    Contrast("effect", "skg", "sham", "captures of the right turn"),
    Contrast("effect", "skg", "permuted", "ratings of the right turn"),
    Contrast("effect", "skg", "masked", "serving the first skill"),
    Contrast("effect", "skg", "masked_lineage", "serving the first skill and those near it"),
    Contrast("effect", "skg", "without", "capturing the first skill"),
    Contrast("effect", "skg", "without_lineage", "capturing the first skill and those near it"),
    Contrast("effect", "skg", "recaptured", "capturing the first skill early"),
)


def verdict(estimate: Estimate, margin: float) -> tuple[float, Verdict]:
    """p-value of "they differ by the margin or more", and what is shown about new requests, one-sided at 5 % each.

    *Equivalent*: the difference lies within the margin (two one-sided tests; an interval that holds 0 is not enough).
    *Not equivalent*: it lies beyond.
    """
    test = PairedT(estimate.mean, estimate.se_new, estimate.df_new, estimate.p(new=True))
    p = equivalence(test, margin)
    if p < ALPHA:
        return p, "equivalent"
    beyond = test.limit(ALPHA) >= margin or test.limit(1 - ALPHA) <= -margin
    return p, "not equivalent" if beyond else "inconclusive"


def parting(run: Run, one: Contrast) -> int:
    """The turn from which on two arms can differ: that of the fork which they do not share."""
    forks = {run.manifest["compositions"][arm]["fork"] for arm in (one.arm, one.reference)} - {None}
    return min((int(fork.partition("@")[2]) for fork in forks), default=0)


def findings(run: Run, contrasts: Sequence[Contrast] = CONTRASTS) -> list[Finding]:
    """All contrasts in the metrics that have a margin, in order, per metric."""
    on, shown = events(run), metrics(Utility.of(run.config))
    since = {one: parting(run, one) for one in contrasts}
    starts = sorted(set(since.values()))
    arms = dict.fromkeys(arm for one in contrasts for arm in (one.arm, one.reference))
    of: dict[str, dict[int, Tally]] = {arm: tallies(run, arm, on, since=starts) for arm in arms}
    found = []
    for name, margin in MARGINS.items():
        for one in contrasts:
            arm, reference = (of[a][since[one]] for a in (one.arm, one.reference))
            estimate = contrast([shown[name]], arm, reference, on)[name]
            found.append(Finding(one, name, shown[name].unit, estimate, *verdict(estimate, margin)))
    return found


def cells(found: Finding) -> tuple[str, ...]:
    """A row of the table."""
    e, one = found.estimate, found.contrast
    return (
        one.kind, f"{one.arm} - {one.reference}", one.asks, number(e.mean, found.unit, signed=True),
        interval(*e.interval(new=False), found.unit, signed=True),
        interval(*e.interval(new=True), found.unit, signed=True), f"{found.p:.4f}", found.verdict,
    )  # fmt: skip


def main(path: str) -> int:
    """Print the table of a run; 1 if a placebo that is nothing by construction is not shown to be equivalent."""
    run = Run(path)
    found, screen = findings(run), Console()
    for metric, margin in MARGINS.items():
        table = Table(
            "kind", "contrast", "asks about", "difference", "these requests", "new requests", "p (TOST)", "verdict",
            title=f"{metric}, within {margin:g}",
        )  # fmt: skip
        for one in found:
            if one.metric == metric:
                table.add_row(*cells(one))
        screen.print(table)
    nothing = [one.verdict for one in found if one.contrast.kind == "nothing by construction"]
    return int(any(v != "equivalent" for v in nothing))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
