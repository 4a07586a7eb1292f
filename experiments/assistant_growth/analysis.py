"""Holds a run of `assistant_growth` against what its README expects, and says what it shows of the paper's claims."""

import argparse
import csv
import json
import sys
from dataclasses import dataclass
from io import StringIO
from math import nan
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from skg_bench.analysis.comparison import claims
from skg_bench.analysis.counts.wording import number
from skg_bench.core.run import Run

COMMAND = "make demo; python -m experiments.assistant_growth.analysis RUN --write reports"
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


def main(arguments: list[str] | None = None) -> int:
    """Print the findings on a run; 1 if an expectation does not hold."""
    parser = argparse.ArgumentParser(prog="python -m experiments.assistant_growth.analysis", description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--write", type=Path, help="folder for claims/assistant_growth.json")
    given = parser.parse_args(arguments)
    run = Run(given.run)
    summary: Summary = json.loads((run.path / "summary.json").read_text("utf-8"))
    results = findings(summary, (run.path / "curves.csv").read_text("utf-8"))
    table = Table("expected", "holds", "figures", title=f"assistant_growth: {run.path.name}")
    for result in results:
        table.add_row(result.expectation, "yes" if result.holds else "no", result.figures)
    Console().print(table)
    if given.write:
        claims.write(given.write / "claims", "assistant_growth", measured(run, summary))
    return int(not all(result.holds for result in results))


if __name__ == "__main__":
    sys.exit(main())
