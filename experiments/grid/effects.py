"""Effects of routers and rerankers of a grid, each over all options of the other factor.

An arm of the grid is named ROUTER_RERANKER. A router is held against `maxsim` on the mean of both over all rerankers, a
reranker against `identity` on the mean over all routers, user by user on the same events: users, not arms, are what is
counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from skg_bench.analysis.comparison.compare import Comparison, compare
from skg_bench.analysis.comparison.seeds import SeedRuns, by_configuration
from skg_bench.analysis.counts.measure import contrast
from skg_bench.analysis.counts.metrics import Metric, Utility, metrics
from skg_bench.analysis.counts.tally import Tally, events, tallies
from skg_bench.analysis.counts.wording import bare, interval, number
from skg_bench.analysis.statistics.intervals import ALPHA, Estimate, holm
from skg_bench.analysis.summary.saturation import Saturation, corpus, saturation
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run

FACTORS = {"router": "maxsim", "reranker": "identity"}  # and what its options are held against
REFERENCE = "maxsim_linear"  # of single arms: what SKG describes
MEASURED = ("utility", "hit_rate", "err_per_request")


@dataclass(frozen=True)
class Effect:
    """One option of a factor against the factor's plain one, over all options of the other factor."""

    corpus: str
    factor: str
    option: str
    metric: Metric
    estimate: Estimate
    p: float  # for new requests, corrected for all effects that are tested together

    @property
    def holds(self) -> bool:
        """Is it significant after correction, and independent of the interval?"""
        return self.p < ALPHA and not self.estimate.disputed

    @property
    def size(self) -> str:
        """The difference with its interval."""
        unit = self.metric.unit
        span = bare(interval(*self.estimate.interval(new=True), unit, signed=True))
        return f"{number(self.estimate.mean, unit, signed=True)} ({span})"


@dataclass(frozen=True)
class Grid:
    """All that was measured on one corpus."""

    corpus: str
    combined: SeedRuns
    table: Comparison  # of all arms with REFERENCE
    used_up: Saturation


def grids(runs: Sequence[Run]) -> tuple[list[Grid], list[Effect]]:
    """The runs by corpus, and the effects on all of them, corrected together.

    Raises UsageError for runs of another experiment, grids with holes, and runs of one corpus that differ otherwise.
    """
    groups = by_configuration(runs)
    names = [corpus(combined.config) for combined in groups]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"the runs on {twice[0]} differ in more than their seed; give those of one grid")
    corpus_grids, effects = [], list[Effect]()
    for name, combined in zip(names, groups, strict=True):
        grid, corpus_effects = _measured(name, combined)
        corpus_grids.append(grid)
        effects += corpus_effects
    return corpus_grids, corrected(effects)


def corrected(effects: Sequence[Effect]) -> list[Effect]:
    """p-values by Holm over all of them."""
    return [replace(effect, p=p) for effect, p in zip(effects, holm([effect.p for effect in effects]), strict=True)]


def options(arms: Sequence[str]) -> dict[str, list[str]]:
    """Options of each factor.

    Raises UsageError when some combination is no arm.
    """
    split = [arm.rpartition("_") for arm in arms if "_" in arm]
    levels = {
        "router": list(dict.fromkeys(r for r, _, _ in split)),
        "reranker": list(dict.fromkeys(k for *_, k in split)),
    }
    missing = [f"{r}_{k}" for r in levels["router"] for k in levels["reranker"] if f"{r}_{k}" not in arms]
    plain = [option for factor, option in FACTORS.items() if option not in levels[factor]]
    absent = [arm for arm in (REFERENCE, "never") if arm not in arms]
    if missing or plain or absent:
        lacks = [*missing, *plain, *absent][0]
        raise UsageError(f"this is no whole grid of routers and rerankers, it lacks {lacks}; run experiment=grid")
    return levels


def _measured(name: str, combined: SeedRuns) -> tuple[Grid, list[Effect]]:
    factors, requests, shown = options(combined.arms), events(combined), metrics(Utility.of(combined.config))
    wanted = [shown[metric] for metric in MEASURED]
    tally = {
        (router, reranker): tallies(combined, f"{router}_{reranker}", requests)[0]
        for router in factors["router"]
        for reranker in factors["reranker"]
    }
    effects = []
    for side, (factor, plain) in enumerate(FACTORS.items()):
        level = {option: mean([tally[cell] for cell in tally if cell[side] == option]) for option in factors[factor]}
        for option in factors[factor]:
            if option != plain:
                against = contrast(wanted, level[option], level[plain], requests)
                effects += [Effect(name, factor, option, m, e := against[m.name], e.p(new=True)) for m in wanted]
    table = compare(combined.runs, REFERENCE, correction="bh")
    return Grid(name, combined, table, saturation(requests)), effects


def mean(group: Sequence[Tally]) -> Tally:
    """An arm whose counts are the mean of those of several arms."""
    by_cell = {
        name: sum(tally.by_cell[name] for tally in group[1:]) + group[0].by_cell[name] for name in group[0].by_cell
    }
    by_cell = {name: total / len(group) for name, total in by_cell.items()}
    return replace(group[0], arm="mean", by_cell=by_cell, digest=b"")
