"""Which router and which reranker make a difference, on each corpus and on all? From runs of `grid`, in words."""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from experiments.grid.effects import FACTORS, Effect, Grid, grids
from experiments.grid.page import COMMAND, markdown
from skg_bench.analysis.claims import Evidence, Finding, Measured, write
from skg_bench.analysis.report import forest
from skg_bench.core.errors import UsageError
from skg_bench.core.run import Run

CLAIM = "a light model, a weight vector or later a small net, ranks skills by what users rated"


def words(effects: Sequence[Effect]) -> list[str]:
    """What holds on every corpus, what on some, and of what nothing is shown; one sentence an option and metric."""
    on = list(dict.fromkeys(one.corpus for one in effects))
    said: dict[str, list[str]] = {"all": [], "some": [], "mixed": []}
    silent = []
    for (factor, option, metric), group in _grouped(effects).items():
        shown = [one for one in group if one.holds]
        signs = {one.estimate.mean > 0 for one in shown}
        if not shown:
            silent.append(f"{option} ({metric})")
            continue
        against = FACTORS[factor]
        sizes = "; ".join(f"{one.size} on {one.corpus}" for one in shown)
        if len(signs) > 1:
            said["mixed"].append(f"{option} against {against}, {metric}: {sizes}.")
        else:
            than = f"{'higher' if signs == {True} else 'lower'} than that of {against}"
            open_on = [one for one in group if not one.holds]
            rest = "".join(f"; not shown on {one.corpus}, {one.size}" for one in open_on)
            said["some" if open_on else "all"].append(f"{metric.capitalize()} of {option} is {than}: {sizes}{rest}.")
    every = on[0] if len(on) == 1 else "both corpora" if len(on) == 2 else f"all {len(on)} corpora"
    headed = [(f"Holds on {every}", said["all"])]
    if len(on) > 1:
        headed += [("Holds on one corpus, and is not shown on another", said["some"]),
                   ("Turns round between corpora", said["mixed"])]  # fmt: skip
    lines = [f"{sum(one.holds for one in effects)} of {len(effects)} differences hold."]
    for heading, sentences in headed:
        lines += [f"**{heading}:** {'' if sentences else 'nothing.'}".rstrip(), *(f"* {one}" for one in sentences)]
    if silent:
        lines.append(f"**Nothing is shown of:** {', '.join(silent)}.")
    return lines


def _grouped(effects: Sequence[Effect]) -> dict[tuple[str, str, str], list[Effect]]:
    found: dict[tuple[str, str, str], list[Effect]] = {}
    for one in effects:
        found.setdefault((one.factor, one.option, one.metric.label), []).append(one)
    return found


def findings(found: Sequence[Grid], effects: Sequence[Effect]) -> list[Finding]:
    """Of K10: what rerankers that learn are worth, in utility."""
    said = []
    for grid in found:
        evidence = Evidence.of(grid.combined.runs, COMMAND)
        for one in effects:
            if (one.corpus, one.factor, one.metric.name) == (grid.corpus, "reranker", "utility"):
                e = one.estimate
                helps = one.holds and e.mean > 0
                if one.holds:
                    what = "serves users better than none" if helps else "serves users worse than none"
                else:
                    what = f"is not shown to differ from none; such a run finds {e.detectable(new=True):.4f}"
                said.append(Finding(
                    "K10", CLAIM, Measured(e.mean, *e.interval(new=True), "utility per request"),
                    "reproduced" if helps else "not reproduced",
                    f"reranker={one.option} over all routers, on {one.corpus}, {what}.", evidence,
                ))  # fmt: skip
    return said


def main(arguments: list[str] | None = None) -> int:
    """Print what holds; with --write also report, figures and findings. 2 for runs of another experiment."""
    parser = argparse.ArgumentParser(prog="python -m experiments.grid.analysis", description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="all runs of the grid, of every seed and corpus")
    parser.add_argument("--write", type=Path, help="folder for grid.md, a figure of each corpus, and claims/grid.json")
    given = parser.parse_args(arguments)
    try:
        found, effects = grids([Run(run) for run in given.runs])
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    screen = Console(width=140)
    for line in words(effects):
        screen.print(line.replace("**", ""), markup=False, highlight=False)
    if given.write:
        figures = {grid.corpus: f"grid_{'_'.join(re.findall('[a-z0-9]+', grid.corpus.lower()))}.svg" for grid in found}
        for grid in found:
            (given.write / figures[grid.corpus]).write_text(forest.svg(grid.table), "utf-8")
        (given.write / "grid.md").write_text(markdown(found, effects, words(effects), figures), "utf-8")
        write(given.write / "claims", "grid", findings(found, effects))
    return 0


if __name__ == "__main__":
    sys.exit(main())
