"""Claims about memories of facts: what an arm is worth beyond another one, with random effects over seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.comparison.over_corpora import DEPENDS
from skg_bench.analysis.comparison.seeds import SeedRuns
from skg_bench.analysis.counts.measure import contrast
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.outcomes import metrics_of
from skg_bench.analysis.counts.tally import Tally, events, tallies
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.statistics.intervals import ALPHA, Estimate, t_quantile
from skg_bench.core.grid import F64
from skg_bench.runfolder.run import Run
from skg_bench.study.turning import JudgedDifference


@dataclass(frozen=True)
class FactClaim:
    """An arm against another one, in a metric."""

    arm: str
    reference: str
    metric: str
    expected: str  # better: on a corpus, and worse on none; not better: on none; empty: nothing is expected

    @property
    def name(self) -> str:
        """Both arms, and the metric where it is not utility."""
        return f"{self.arm} - {self.reference}{'' if self.metric == 'utility' else f', {self.metric}'}"


MEMORIES = (
    FactClaim("skg", "never", "utility", ""),
    FactClaim("recipe_prompted", "never", "utility", ""),
    FactClaim("last_k", "never", "utility", ""),
    FactClaim("full_history", "never", "utility", ""),
    FactClaim("keeps", "never", "utility", "better"),
    FactClaim("keeps", "skg", "utility", "better"),
    FactClaim("facts_oracle", "never", "utility", "better"),
)
CONTROLS = (
    FactClaim("keeps", "never", "recall", "better"),
    FactClaim("keeps", "sham", "utility", "better"),
    FactClaim("sham", "never", "utility", "not better"),
    FactClaim("frozen", "never", "utility", "not better"),
    FactClaim("donor", "never", "utility", "not better"),
    FactClaim("keeps", "keeps_first", "renewal", "better"),
    FactClaim("keeps", "never_declines", "abstention", "better"),
)


@dataclass(frozen=True)
class Worth(JudgedDifference):
    """A difference in a metric."""

    unit: str

    @property
    def measured(self) -> bool:
        """Did any user have such a request under both arms?"""
        return bool(np.isfinite(self.mean))

    @property
    def size(self) -> str:
        """The difference with its interval."""
        if not self.measured:
            return "-"
        return f"{number(self.mean, self.unit, signed=True)} ({interval(self.low, self.high, self.unit, signed=True)})"


def random_effects(means: F64, errors: F64) -> tuple[float, float, float]:
    """Mean over seeds and its 95 % interval: weights of DerSimonian and Laird (1986), error of Hartung and Knapp
    (2001), at least that of the weights. The mean of one seed has a Normal error.
    """
    if not errors.any():
        return float(means.mean()), float(means.mean()), float(means.mean())
    weight = 1 / np.maximum(errors, 1e-9) ** 2
    mean = float((weight * means).sum() / weight.sum())
    seeds = len(means)
    spread = float((weight * (means - mean) ** 2).sum()) - (seeds - 1)
    between = max(0.0, spread / (weight.sum() - (weight**2).sum() / weight.sum())) if seeds > 1 else 0.0
    weight = 1 / (1 / weight + between)
    mean = float((weight * means).sum() / weight.sum())
    within = 1 / weight.sum()
    if seeds == 1:
        half = 1.96 * within**0.5
        return mean, mean - half, mean + half
    knapp = (weight * (means - mean) ** 2).sum() / ((seeds - 1) * weight.sum())
    half = t_quantile(1 - ALPHA / 2, seeds - 1) * max(within, knapp) ** 0.5
    return mean, mean - half, mean + half


class Tallied:
    """Tallies of one run by arm, each counted once."""

    def __init__(self, run: Run) -> None:
        self._run, self._events = run, events(run)
        self._metrics = metrics_of(run, Utility.of(run.config))
        self._by_arm: dict[str, Tally] = {}

    def difference(self, claim: FactClaim) -> tuple[Estimate, str]:
        """Paired difference of a claim's arms, and the unit."""
        for name in (claim.arm, claim.reference):
            if name not in self._by_arm:
                self._by_arm[name] = tallies(self._run, name, self._events)[0]
        arm, reference, metric = (
            self._by_arm[claim.arm],
            self._by_arm[claim.reference],
            self._metrics[claim.metric],
        )
        return contrast([metric], arm, reference, self._events)[claim.metric], metric.unit


def worths(runs: SeedRuns, claims: Sequence[FactClaim]) -> dict[FactClaim, Worth]:
    """Worth of each claim whose arms are in the runs: for new users; requests are those of the corpus."""
    tallied = [Tallied(run) for run in runs.runs]
    by_claim = {}
    for claim in claims:
        if {claim.arm, claim.reference} <= {*runs.arms}:
            estimates, units = zip(*(each.difference(claim) for each in tallied), strict=True)
            means, errors = (np.array([getattr(each, name) for each in estimates]) for name in ("mean", "se"))
            kept = np.isfinite(means) & np.isfinite(errors)
            mean, low, high = random_effects(means[kept], errors[kept]) if kept.any() else (np.nan,) * 3
            by_claim[claim] = Worth(mean, low, high, units[0])
    return by_claim


def verdict(by_corpus: Mapping[str, Worth]) -> str:
    """Verdict over corpora. Where one shows a difference and another has the other sign, it depends on the corpus."""
    words = {corpus: worth.word for corpus, worth in by_corpus.items()}
    shown = {*words.values()} - {"open"}
    if shown and len({worth.mean > 0 for worth in by_corpus.values()}) > 1:
        return DEPENDS
    if len({*words.values()}) == 1:
        return next(iter(words.values()))
    return ", ".join(f"{word} on {corpus}" for corpus, word in words.items())
