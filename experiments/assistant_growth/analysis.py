"""Holds a run of `assistant_growth` against what its README expects, and says what it shows of the paper's claims."""

import csv
import json
from dataclasses import dataclass
from io import StringIO
from math import nan
from typing import Any

from skg_bench.analysis.comparison import claims
from skg_bench.analysis.counts.wording import number
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, OneRun, needed
from skg_bench.core.run import Run

COMMAND = "make demo; skg-bench experiment assistant_growth RUN --write reports"
ARMS = ("never", "skg", "skg_band", "exact_match", "oracle", "frozen_100", "frozen_400")
Summary = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """An expectation, whether it holds in a run, and the figures that say so."""

    expectation: str
    holds: bool
    figures: str


def weekly(curves: str, arm: str, metric: str) -> list[float]:
    """Means by week from the text of `curves.csv`."""
    rows = csv.DictReader(StringIO(curves))
    return [float(r["mean"]) for r in rows if r["arm"] == arm and r["metric"] == metric and r["mean"]]


def findings(summary: Summary, curves: str) -> list[Finding]:
    """The expectations of the README, in its order."""
    arms, against = summary["arms"], summary["differences"]

    def mean(arm: str, metric: str) -> float:
        value = arms[arm][metric]["mean"]
        return nan if value is None else float(value)

    hits = weekly(curves, "skg", "hit_rate")
    ceiling = weekly(curves, "*", "ceiling_1")
    quarter = max(1, len(hits) // 4)
    early, late = sum(hits[:quarter]) / quarter, sum(hits[-quarter:]) / quarter
    effects = {arm: summary["effects"][arm]["metrics"]["utility"] for arm in ("frozen_100", "frozen_400")}
    verdicts = [against[arm]["utility"]["verdict"] for arm in ("skg", "oracle")]
    return [
        Finding(
            "never hits nothing, skg_band learns nothing",
            mean("never", "hit_rate") == 0 and mean("skg_band", "skills") == 0,
            f"hit rate {mean('never', 'hit_rate'):.3f}, skills {mean('skg_band', 'skills'):.1f}",
        ),
        Finding(
            "the hit rate of skg grows and stays below the ceiling",
            early < late and all(h < c for h, c in zip(hits, ceiling, strict=True)),
            f"{early:.1%} in the first quarter, {late:.1%} in the last, ceiling {ceiling[-1]:.1%}",
        ),
        Finding(
            "skg serves worse than never, and learning made it worse",
            verdicts[0] == "worse" and all(e["verdict"] == "worse" for e in effects.values()),
            f"skg - never {against['skg']['utility']['mean']:+.3f}; live - frozen "
            + ", ".join(number(e["mean"], "utility", signed=True) for e in effects.values()),
        ),
        Finding(
            "exact_match hits less, and is wrong less often where it hits",
            mean("exact_match", "hit_rate") < mean("skg", "hit_rate")
            and mean("exact_match", "err_per_hit") < mean("skg", "err_per_hit"),
            f"hits {mean('exact_match', 'hit_rate'):.2%}, wrong {mean('exact_match', 'err_per_hit'):.0%} of them "
            f"(skg {mean('skg', 'err_per_hit'):.0%})",
        ),
        Finding(
            "oracle serves better than never",
            verdicts[1] == "better",
            f"oracle - never {against['oracle']['utility']['mean']:+.3f}",
        ),
    ]


def measured(run: Run, summary: Summary) -> list[claims.Finding]:
    """Of K01, what a skillbook spares; of K01 and K02, whether it serves users better."""
    beyond, learned = summary["differences"]["skg"], summary["effects"]["frozen_100"]["metrics"]
    evidence = claims.Evidence.of([run], COMMAND)
    questions = (
        ("K01", "a skillbook makes answers cheaper", beyond["cost_usd"], "US dollars per request", "lower"),
        ("K01", "a skillbook makes answers faster", beyond["latency_ms"], "ms per request", "lower"),
        ("K01", "a skillbook serves users better", beyond["utility"], "utility per request", "higher"),
        ("K02", "what is learned later serves users better", learned["utility"], "utility per request", "higher"),
    )  # fmt: skip
    results = []
    for name, claimed, figure, unit, wanted in questions:
        shown = figure["significant"] and figure["verdict"] not in ("inconclusive", "not measured")
        holds = shown and (figure["mean"] > 0) == (wanted == "higher")
        verdict = claims.verdict(holds=holds, fails=shown and not holds)
        words = "it is the other way round" if shown and not holds else "it is so" if holds else "not shown either way"
        mean, low, high = (figure[part] for part in ("mean", "low_new", "high_new"))
        value = "too few users got there" if low is None else claims.Measured(mean, low, high, unit)
        results.append(
            claims.Finding(name, claimed, value, verdict, f"skg against the arm without: {words}.", evidence)
        )
    return results


def analyse(run: OneRun) -> Report:
    """From a run of `assistant_growth`; as expected if all of the README's expectations hold."""
    needed(run, ARMS, "assistant_growth")
    summary: Summary = json.loads((run.path / "summary.json").read_text("utf-8"))
    results = findings(summary, (run.path / "curves.csv").read_text("utf-8"))
    rows = [(result.expectation, "yes" if result.holds else "no", result.figures) for result in results]
    table = Table(f"assistant_growth: {run.path.name}", ("expected", "holds", "figures"), rows)
    return Report(
        [table],
        page("Does an assistant that learns serve its user better?", COMMAND, table),
        holds=all(result.holds for result in results),
        findings=lambda: measured(run, summary),
    )


EXPERIMENT = Experiment(analyse)
