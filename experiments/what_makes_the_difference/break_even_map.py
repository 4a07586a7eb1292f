"""Maps of where an assistant that learns procedures beats the LLM alone, over numbers that nobody knows."""

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import skg_bench
from experiments.what_makes_the_difference.map_figure import Cell, Panel, svg
from skg_bench.analysis import summary
from skg_bench.analysis.counts.measure import contrast
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.counts.tally import events, tallies
from skg_bench.analysis.counts.wording import number
from skg_bench.analysis.statistics.intervals import ALPHA, Estimate
from skg_bench.analysis.summary.figures import Figure
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run

COMMAND = "skg-bench experiment what_makes_the_difference/break_even_map"
CORPORA = {"built-in": [], "clinc150": ["simulator=clinc150"]}  # by name, the overrides that choose them
ARMS = (
    "arms={never: [policy=never, curator=none], asked: [serving=procedure, named_by=intent, policy.threshold=0.6], "
    "everything: [serving=procedure, named_by=intent, curator=everything, policy.threshold=0.7]}"
)


WORDS = {"asked": "users are asked, threshold 0.6", "everything": "every answer is captured, threshold 0.7"}


@dataclass(frozen=True)
class Axes:
    """Two parameters of the world, the values at which they are tried, and what else is set."""

    title: str
    down: tuple[str, tuple[float, ...]]
    across: tuple[str, tuple[float, ...]]
    overrides: tuple[str, ...] = ()


# at generalises=0 nothing generalises only if no second example makes a procedure general
GENERALITY = Axes(
    "How general procedures are, and how well they fill slots", ("generalises", (0.0, 0.4, 0.7, 0.85, 1.0)),
    ("slots_filled", (0.7, 0.85, 0.95, 1.0)), ("simulator.generalises_again=0",),
)  # fmt: skip
REPEATS = Axes(
    "How many intents have procedures, and how often people repeat their words",
    ("procedures_exist", (0.0, 0.4, 0.7, 1.0)), ("habit", (0.0, 0.3, 0.6, 0.9)),
)  # fmt: skip
MAPS = (GENERALITY, REPEATS)


@dataclass(frozen=True)
class Place:
    """One run: an arm beyond `never`, how many of its hits are right, and from how many right hits on these pay."""

    gain: Estimate
    right: float
    hits: float
    pays_from: float
    repeats: float  # requests that repeat an earlier one word for word

    @property
    def word(self) -> str:
        """The verdict, for new users and new requests."""
        if self.gain.p(new=True) >= ALPHA or self.gain.withheld or self.gain.disputed:
            return "open"
        return "better" if self.gain.mean > 0 else "worse"

    def __str__(self) -> str:
        gain = number(self.gain.mean, "utility", signed=True)
        right, needed, hits = (number(x, "share") for x in (self.right, self.pays_from, self.hits))
        return f"{gain} {self.word}, {hits} hits, {right} right of {needed}"


def places(run: Run) -> dict[str, Place]:
    """Place of each arm that learns."""
    requests, shown = events(run), metrics(Utility.of(run.config))
    never, content = tallies(run, "never", requests)[0], summary.read_summary(run)
    by_arm = {}
    for arm in WORDS:
        tally, means = tallies(run, arm, requests)[0], content.arms[arm]
        gain = contrast([shown["utility"]], tally, never, requests)["utility"]
        right, hits, pays_from = (_mean(means, name) for name in ("right_per_hit", "hit_rate", "pays_from"))
        repeats = content.saturation.verbatim
        by_arm[arm] = Place(gain, right, hits, pays_from, math.nan if repeats is None else repeats)
    return by_arm


def _mean(means: Mapping[str, Figure], name: str) -> float:
    mean = means[name].mean
    return math.nan if mean is None else mean


Cells = list[list[Place]]


def tried(corpus: str, axes: Axes, overrides: Sequence[str]) -> dict[str, Cells]:
    """Table of each arm that learns, rows and columns by the values of the two parameters."""
    (down, rows), (across, columns) = axes.down, axes.across
    cells: dict[str, Cells] = {arm: [] for arm in WORDS}
    for y in rows:
        for row in cells.values():
            row.append([])
        for x in columns:
            with tempfile.TemporaryDirectory() as folder:
                at = [f"simulator.{down}={y:g}", f"simulator.{across}={x:g}", f"out={Path(folder) / 'run'}"]
                made = skg_bench.run([ARMS, *CORPORA[corpus], *axes.overrides, *overrides, *at], progress=False)
                for arm, place in places(made).items():
                    cells[arm][-1].append(place)
    return cells


def table(corpus: str, axes: Axes, arm: str, cells: Cells) -> Table:
    """One arm's map as text."""
    (down, rows), (across, columns) = axes.down, axes.across
    headings = (f"{down} \\ {across}", *(f"{x:g}" for x in columns))
    lines = [(f"{y:g}", *map(str, row)) for y, row in zip(rows, cells, strict=True)]
    return Table(f"{axes.title}, {corpus} corpus: {WORDS[arm]}", headings, lines)


def panel(corpus: str, axes: Axes, arm: str, cells: Cells) -> Panel:
    """One arm's map as a picture. Columns have the repeats that were measured, on the mean over the rows."""
    repeats = [sum(place.repeats for place in column) / len(column) for column in zip(*cells, strict=True)]
    drawn = [[Cell(p.gain.mean, p.word != "open", p.right, p.pays_from) for p in row] for row in cells]
    return Panel(f"{corpus} corpus: {WORDS[arm]}", repeats, axes.down[1], drawn)


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
    maps = [(name, axes, tried(name, axes, chosen)) for name in corpora for axes in MAPS]
    tables = [table(name, axes, arm, cells) for name, axes, arms in maps for arm, cells in arms.items()]
    panels = [panel(name, axes, arm, c) for name, axes, arms in maps if axes is REPEATS for arm, c in arms.items()]
    size = ", ".join([f"{users} users", f"{weeks} weeks", *(overrides or ())])
    scope = (
        f"{size}. Each cell: utility a request beyond `never`, whether that is shown for new users and new requests, "
        "how many requests are hits, how many hits are right, and from how many on they pay. "
        "[The figure](break_even_map.svg) has the line at which learning is worth nothing."
    )
    command = " ".join([COMMAND, *(f"--corpus {name}" for name in corpora), "--write reports"])
    title = "Where learning procedures is worth something"
    return Report(
        tables, page(title, command, scope, *tables), figures={"break_even_map.svg": svg(panels, f"{title} ({size})")}
    )


EXPERIMENT = Experiment(analyse)
