"""Where an assistant that learns procedures is better than the LLM alone: maps over numbers that nobody knows."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import skg_bench
from skg_bench.analysis.counts.measure import contrast, measure
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.counts.tally import events, tallies
from skg_bench.analysis.counts.wording import number
from skg_bench.analysis.statistics.intervals import ALPHA, Estimate
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.core.errors import UsageError
from skg_bench.core.run import Run

COMMAND = "skg-bench experiment what_makes_the_difference/break_even_map"
CORPORA = {"built-in": [], "clinc150": ["simulator=clinc150"]}  # by name, the overrides that choose them
ARMS = (
    "arms={never: [policy=never, curator=none], asked: [serving=procedure, named_by=intent, policy.threshold=0.6], "
    "everything: [serving=procedure, named_by=intent, curator=everything, policy.threshold=0.7]}"
)


@dataclass(frozen=True)
class Axes:
    """Two parameters of the world, and the values at which they are tried."""

    title: str
    down: tuple[str, tuple[float, ...]]
    across: tuple[str, tuple[float, ...]]


MAPS = (
    Axes("How general procedures are, and how well they fill slots", ("generalises", (0.0, 0.4, 0.7, 0.85, 1.0)),
         ("slots_filled", (0.7, 0.85, 0.95, 1.0))),
    Axes("How many intents have procedures, and how often people repeat their words",
         ("procedures_exist", (0.0, 0.4, 0.7, 1.0)), ("habit", (0.0, 0.3, 0.6, 0.9))),
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """One run: an arm beyond `never`, and how many of its hits are right."""

    gain: Estimate
    right: float
    hits: float

    def __str__(self) -> str:
        sign = "" if self.gain.p(new=True) >= ALPHA or self.gain.withheld else "+" if self.gain.mean > 0 else "-"
        word = {"": "open", "+": "better", "-": "worse"}[sign]
        gain = number(self.gain.mean, "utility", signed=True)
        return f"{gain} {word}, {number(self.hits, 'share')} hits, {number(self.right, 'share')} right"


def places(run: Run, arms: Sequence[str] = ("asked", "everything")) -> dict[str, Place]:
    """Of each arm that learns."""
    requests, shown = events(run), metrics(Utility.of(run.config))
    never = tallies(run, "never", requests)[0]
    by_arm = {}
    for arm in arms:
        tally = tallies(run, arm, requests)[0]
        means = measure([shown["hit_rate"], shown["err_per_hit"]], tally, requests)
        gain = contrast([shown["utility"]], tally, never, requests)["utility"]
        by_arm[arm] = Place(gain, 1.0 - means["err_per_hit"].mean, means["hit_rate"].mean)
    return by_arm


def drawn(corpus: str, axes: Axes, overrides: Sequence[str]) -> list[Table]:
    """A table for each arm: rows and columns are values of the two parameters."""
    (down, rows), (across, columns) = axes.down, axes.across
    cells: dict[str, list[list[str]]] = {}
    for y in rows:
        line: dict[str, list[str]] = {}
        for x in columns:
            with tempfile.TemporaryDirectory() as folder:
                at = [f"simulator.{down}={y:g}", f"simulator.{across}={x:g}", f"out={Path(folder) / 'run'}"]
                made = skg_bench.run([ARMS, *CORPORA[corpus], *overrides, *at], progress=False)
                for arm, place in places(made).items():
                    line.setdefault(arm, []).append(str(place))
        for arm, texts in line.items():
            cells.setdefault(arm, []).append([f"{y:g}", *texts])
    words = {"asked": "users are asked, threshold 0.6", "everything": "every answer is captured, threshold 0.7"}
    headings = (f"{down} \\ {across}", *(f"{x:g}" for x in columns))
    return [Table(f"{axes.title}, {corpus} corpus: {words[arm]}", headings, lines) for arm, lines in cells.items()]


def analyse(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Such as workers=2; for all runs.")
    ] = None,
    corpus: Annotated[list[str] | None, typer.Option(help="built-in, the default, or clinc150; repeatable.")] = None,
    users: Annotated[int, typer.Option(help="Of each run.", min=2)] = 40,
    weeks: Annotated[int, typer.Option(help="Of each run.", min=1)] = 8,
) -> Report:
    """Makes its own runs, in some minutes a corpus; nothing expected is checked."""
    corpora = corpus or ["built-in"]
    if unknown := [name for name in corpora if name not in CORPORA]:
        raise UsageError(f"--corpus {unknown[0]}: valid are {', '.join(CORPORA)}")
    chosen = [f"users={users}", f"weeks={weeks}", "reference=never", "question=''", *(overrides or ())]
    tables = [table for name in corpora for axes in MAPS for table in drawn(name, axes, chosen)]
    size = ", ".join([f"{users} users", f"{weeks} weeks", *(overrides or ())])
    scope = (
        f"{size}. Each cell: utility a request beyond `never`, whether that is shown for new users and new requests, "
        "how many requests are hits, and how many hits are right."
    )
    command = " ".join([COMMAND, *(f"--corpus {name}" for name in corpora), "--write reports"])
    return Report(tables, page("Where learning procedures is worth something", command, scope, *tables))


EXPERIMENT = Experiment(analyse)
