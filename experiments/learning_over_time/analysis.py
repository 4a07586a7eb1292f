"""Tables of a run of `learning_over_time`: effects over s and t, worth of books, swaps, and the order control."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import typer

from skg_bench.analysis.comparison.learning_effect import LearningEffect, learning_effect
from skg_bench.analysis.comparison.order_control import OrderControl, order_control
from skg_bench.analysis.comparison.transfer_matrix import TransferMatrix, transfer_matrix
from skg_bench.analysis.comparison.turn_bins import BinTable as Means
from skg_bench.analysis.comparison.turn_bins import bin_names
from skg_bench.analysis.counts.measure import contrast
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.counts.tally import events, tallies
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.statistics.inference import PairedT
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, OneRun, needed
from skg_bench.runfolder.run import Run

SWAPS = ("swap_threshold", "swap_router", "swap_reranker")
COMMAND = "skg-bench experiment learning_over_time RUN [PERMUTED] --write reports"


def cell(table: Means, row: int, column: int) -> str:
    """Mean and simultaneous band."""
    if table.n[row, column] == 0:
        return ""
    mean = number(table.mean[row, column], "utility", signed=True)
    if np.isnan(table.low[row, column]):
        return mean
    return f"{mean} ({interval(table.low[row, column], table.high[row, column], 'utility', signed=True)})"


def means(title: str, names: Sequence[str], sources: Sequence[tuple[Means, int]], edges: Sequence[int]) -> Table:
    """One row each of some tables of means, by bin."""
    rows = [
        (name, *(cell(source, row, k) for k in range(len(edges))))
        for name, (source, row) in zip(names, sources, strict=True)
    ]
    users = ("users", *map(str, sources[0][0].n.max(axis=0)))
    return Table(title, ("", *(f"turns {name}" for name in bin_names(edges))), [*rows, users])


def effect_table(twins: LearningEffect) -> Table:
    """Live minus frozen."""
    names = [f"{twins.live} - {arm}" for arm in twins.frozen]
    return means("live - frozen", names, [(twins.effect, i) for i in range(len(names))], twins.edges)


def worth_table(transfer: TransferMatrix) -> Table:
    """Worth of each book in each bin."""
    names = [f"book of turn {s}" for s in transfer.books[1:]]
    rows = [(transfer.worth, i) for i in range(1, len(transfer.books))]
    return means("utility beyond no book", names, rows, transfer.books)


def parts_table(transfer: TransferMatrix) -> Table:
    """Learning, drift and backward transfer."""
    names = ["learning: the book grew", "drift: requests moved on", "backward: of later learning"]
    return means(
        "change of worth", names, [(transfer.learning, 0), (transfer.drift, 0), (transfer.backward, 0)], transfer.books
    )


def said(test: PairedT | None) -> str:
    """A mean with its 95 % interval."""
    if test is None:
        return "nobody got there"
    low, high = test.limit(0.025), test.limit(0.975)
    return f"{number(test.mean, 'utility', signed=True)} ({interval(low, high, 'utility', signed=True)})"


def swap_table(run: Run) -> Table:
    """Swaps against the arm that they fork from, from the fork on."""
    rows = []
    requests, utility = events(run), metrics(Utility.of(run.config))["utility"]
    for arm in SWAPS:
        live, _, turn = str(run.manifest["compositions"][arm]["fork"]).rpartition("@")
        since = int(turn)
        tally, other = (tallies(run, name, requests, [since])[since] for name in (arm, live))
        e = contrast([utility], tally, other, requests)["utility"]
        between = interval(*e.interval(new=True), "utility", signed=True)
        rows.append((arm, live, turn, number(e.mean, "utility", signed=True), between))
    return Table("swaps", ("swap", "of", "from turn", "utility: swap - live", "new requests"), rows)


def order_table(controls: Sequence[OrderControl]) -> Table:
    """Rises in time and with requests permuted."""
    rows = []
    for control in controls:
        unit = "utility" if control.what == "utility" else "share"
        shares = [
            f"{number(t.mean, unit, signed=True)} ({interval(t.limit(0.025), t.limit(0.975), unit, signed=True)})"
            for t in (control.ordered, control.permuted, control.by_order)
        ]
        rows.append((f"{control.arm}: {control.what}", *shares))
    return Table("rise, last quarter - first", ("", "in time", "permuted", "of it order"), rows)


def analyse(
    run: OneRun,
    permuted: Annotated[
        Run | None,
        typer.Argument(parser=Run, metavar="PERMUTED", help="The same with requests permuted: the order control."),
    ] = None,
) -> Report:
    """Analyses a run of `learning_over_time`, and one with simulator.order=permuted; nothing expected is checked."""
    needed(run, SWAPS, "learning_over_time")
    books = transfer_matrix(run)
    parts: list[Table | str] = [
        effect_table(learning_effect(run)),
        worth_table(books),
        parts_table(books),
        f"forward transfer {said(books.forward_transfer)}, backward {said(books.backward_transfer)}",
        swap_table(run),
    ]
    if permuted is not None:
        parts.append(order_table(order_control(run, permuted)))
    return Report(parts, page("What was learned when, and how much of a rise is order?", COMMAND, *parts))


EXPERIMENT = Experiment(analyse)
