"""How many users a contrast needs when each of them meets one arm, and when each meets both, with the same draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from skg_bench.analysis.counts.measure import by_user
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.counts.tally import events, tallies
from skg_bench.analysis.statistics.inference import users_for
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, OneRun, needed
from skg_bench.core.grid import F64
from skg_bench.runfolder.run import Run

# The claims of `assistant_growth`: arm, reference.
CONTRASTS = (
    ("skg", "never"),
    ("skg", "frozen_100"),
    ("skg", "frozen_400"),
    ("skg", "skg_band"),
    ("exact_match", "skg"),
    ("oracle", "never"),
)
# The smallest difference worth finding, in the metric's unit; the gain hardly depends on it.
SIZES = {"utility": 0.01, "correct": 0.01, "hit_rate": 0.01, "rated_ok": 0.01, "cost_usd": 0.0001, "latency_ms": 50.0}
PRIMARY = "utility"
MARK = 5.0
COMMAND = "skg-bench experiment pairing_gain RUN --write reports"


@dataclass(frozen=True)
class Gain:
    """Users that show a difference of SIZES at the 5 % level with 80 % power."""

    contrast: str
    metric: str
    unpaired: int  # each meets one arm: as many again meet the other, both counted
    paired: int  # each meets both arms
    correlation: float  # of the two arms' values over users

    @property
    def gain(self) -> float:
        return self.unpaired / self.paired


def gain(contrast: str, metric: str, a: F64, b: F64, size: float) -> Gain | None:
    """Gain from users' values `[n]` of two arms on the same events; None: no user differs, or too few have both."""
    both = ~(np.isnan(a) | np.isnan(b))
    a, b = a[both], b[both]
    if len(a) < 2 or not np.any(a != b):
        return None
    apart, together = (float(np.sqrt(v)) for v in (a.var(ddof=1) + b.var(ddof=1), (a - b).var(ddof=1)))
    spread = float(a.std() * b.std())
    correlation = float(np.mean((a - a.mean()) * (b - b.mean()))) / spread if spread else 0.0
    return Gain(contrast, metric, 2 * users_for(apart, size), users_for(together, size), correlation)


def gains(run: Run, contrasts: Sequence[tuple[str, str]] = CONTRASTS) -> list[Gain]:
    """Gains of every contrast and metric in which some user differs.

    Raises UsageError for arms that the run does not have.
    """
    named = dict.fromkeys(arm for pair in contrasts for arm in pair)
    needed(run, list(named), "assistant_growth")
    requests = events(run)
    wanted = [metric for name, metric in metrics(Utility.of(run.config)).items() if name in SIZES]
    values = {arm: by_user(wanted, tallies(run, arm, requests)[0], requests) for arm in named}
    results = [
        gain(f"{arm} - {reference}", metric.name, values[arm][metric.name], values[reference][metric.name], size)
        for arm, reference in contrasts
        for metric in wanted
        for size in [SIZES[metric.name]]
    ]
    return [result for result in results if result is not None]


def medians(results: Sequence[Gain]) -> dict[str, float]:
    """Median gain over the contrasts, by metric."""
    by_metric = {name: [result.gain for result in results if result.metric == name] for name in SIZES}
    return {name: median(gains) for name, gains in by_metric.items() if gains}


def analyse(run: OneRun) -> Report:
    """Analyses a run of `assistant_growth`; as expected if the median gain in utility reaches the mark."""
    results = gains(run)
    table = Table(
        "pairing gain",
        ("contrast", "metric", "correlation", "users, unpaired", "users, paired", "gain"),
        [
            (result.contrast, result.metric, f"{result.correlation:.2f}", f"{result.unpaired:,}", f"{result.paired:,}",
             f"{result.gain:.1f}")
            for result in results
        ],
    )  # fmt: skip
    parts: list[Table | str] = [table]
    if len(results) < len(CONTRASTS) * len(SIZES):
        parts.append(f"{len(CONTRASTS) * len(SIZES) - len(results)} left out: no user differs")
    middle = medians(results)
    worst = {name: min((r for r in results if r.metric == name), key=lambda r: r.gain) for name in middle}
    rows = [(name, f"{value:.1f}", f"{worst[name].gain:.1f}", worst[name].contrast) for name, value in middle.items()]
    parts.append(Table("medians", ("metric", "median gain", "worst", "of"), rows))
    reached = middle.get(PRIMARY, 0.0)
    parts.append(f"median in {PRIMARY} {reached:.1f}, mark {MARK:g}; in users times arms half of it, {reached / 2:.1f}")
    return Report(parts, page("What is pairing worth?", COMMAND, *parts), holds=reached >= MARK)


EXPERIMENT = Experiment(analyse)
