"""Holds a run of `assistant_growth` against what its README expects."""

import csv
import json
import sys
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from skg_bench.core.run import Run

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
        return float(arms[arm][metric]["mean"])

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
            + ", ".join(f"{e['mean']:+.3f}" for e in effects.values()),
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


def main(path: str) -> int:
    """Print the findings on a run; 1 if an expectation does not hold."""
    run = Run(path)
    summary: Summary = json.loads((run.path / "summary.json").read_text("utf-8"))
    found = findings(summary, (run.path / "curves.csv").read_text("utf-8"))
    table = Table("expected", "holds", "figures", title=f"assistant_growth: {Path(path).name}")
    for one in found:
        table.add_row(one.expectation, "yes" if one.holds else "no", one.figures)
    Console().print(table)
    return int(not all(one.holds for one in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
