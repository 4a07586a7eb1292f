"""Section "What makes the difference": live minus frozen over turns, worth of earlier books, placebos, and order."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from skg_bench.analysis.comparison.companion_runs import CompanionRuns
from skg_bench.analysis.comparison.contrasts import KINDS, MARGINS, ContrastResult
from skg_bench.analysis.comparison.learning_effect import LearningEffect
from skg_bench.analysis.comparison.order_control import OrderControl
from skg_bench.analysis.comparison.transfer_matrix import TransferMatrix
from skg_bench.analysis.comparison.turn_bins import BinTable, bin_names
from skg_bench.analysis.counts.wording import named
from skg_bench.analysis.report.addresses import flips_link
from skg_bench.analysis.report.arm_looks import Look, looks
from skg_bench.analysis.report.chart import FOCUSABLE, Chart, Series, chart_svg
from skg_bench.analysis.report.page_charts import users_for_a_mean
from skg_bench.analysis.report.sentences import code
from skg_bench.analysis.report.tables import Cell, Scale, forest, p_value_text
from skg_bench.analysis.report.typeset import typeset_interval, typeset_value
from skg_bench.analysis.statistics.inference import PairedT
from skg_bench.analysis.summary.figures import Figure
from skg_bench.core.grid import F64
from skg_bench.runfolder.run import Run

CONTRAST_TONES = {"equivalent": "good", "not equivalent": "plain", "inconclusive": "open"}
PROOF_WORDS = {
    "nothing by construction": "Their true difference is 0. A harness that finds one here finds it anywhere.",
    "control": "Captures or ratings as before, without what they were about. Not nothing: they do something else.",
    "effect": "One thing changed in the arm that learns.",
}


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells over bins of users' turns, a row each; the same users in all cells of a difference."""

    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    users: Sequence[int]


@dataclass(frozen=True, slots=True)
class Over:
    """Live minus frozen, drawn and as a table."""

    chart: Chart
    drawing: Markup  # empty where no bin has enough users
    looks: Sequence[Look]  # of its arms, if they are those of a run beside, which the page's switches do not know
    grid: Grid


@dataclass(frozen=True, slots=True)
class ContrastRow:
    """A contrast in one metric, as text."""

    name: str
    asks: str
    difference: str
    forest: Markup
    turns: str  # address of the turns behind the difference
    these: str
    new: str
    p: str
    verdict: str
    tone: str


@dataclass(frozen=True, slots=True)
class Contrasts:
    """Contrasts of one kind in one metric."""

    kind: str
    says: str
    rows: Sequence[ContrastRow]


@dataclass(frozen=True, slots=True)
class Asked:
    """All contrasts in one metric."""

    metric: str
    label: str
    margin: str
    kinds: Sequence[Contrasts]


@dataclass(frozen=True, slots=True)
class Proof:
    """The section of the page; each part may be missing."""

    over: Over | None
    worth: Grid | None
    parts: Grid | None
    transfer: Sequence[tuple[str, str]]
    asked: Sequence[Asked]
    order: Sequence[tuple[str, Sequence[Cell]]]

    @property
    def empty(self) -> bool:
        return not (self.over or self.worth or self.asked or self.order)


def proof(evidence: CompanionRuns, run: Run, page: Sequence[Look]) -> Proof:
    """The section, of what there is. `page`: the looks of `run`, whose page it is."""
    books = evidence.transfer_matrix and evidence.transfer_matrix[1]
    return Proof(
        over=_over(*evidence.learning_effect, page if evidence.learning_effect[0] is run else None)
        if evidence.learning_effect
        else None,
        worth=_worth(books) if books else None,
        parts=_parts(books, run.telling.noun) if books else None,
        transfer=_transfer(books) if books else [],
        asked=[_asked(name, evidence.findings) for name in MARGINS] if evidence.findings else [],
        order=[_order(order) for order in evidence.order_control],
    )


def _over(run: Run, effects: LearningEffect, page: Sequence[Look] | None) -> Over:
    """The figure has a line for each turn of freezing, at the first turns of the bins."""
    config, compositions = run.config, run.manifest["compositions"]
    every = looks(run.arms, config["reference"], compositions, config["arms"], "twin") if page is None else page
    twin_looks = [next(look for look in every if look.arm == arm) for arm in effects.frozen]
    shown_arms = [look.arm for look in twin_looks if page is None or look.shown]
    table = effects.effect
    few = table.n < users_for_a_mean(int(table.n.max(initial=0)))
    tracks = [[_track(np.where(few[i], np.nan, column[i])) for column in (table.mean, table.low, table.high)]
              for i in range(len(twin_looks))]  # fmt: skip
    lines = [Series(look.arm, look.classes, *track) for look, track in zip(twin_looks, tracks, strict=True)]
    says = "Utility per request beyond the twin that learns nothing after the turn where its line begins."
    says = named(says, run.telling.noun)
    title = f"{code(effects.live)} minus its frozen twins, by turn"
    chart = Chart("f-over-turns", title, says, "utility", "turn", [float(e) for e in effects.edges], lines)
    names = [f"{effects.live} − {arm}" for arm in effects.frozen]
    known = any(value is not None for line in lines for value in line.mean)
    drawing = Markup(chart_svg(chart, shown_arms, FOCUSABLE if page else "") if known else "")  # noqa: S704  names are escaped
    return Over(
        chart,
        drawing,
        () if page else twin_looks,
        _grid(names, [(effects.effect, i) for i in range(len(twin_looks))], effects.edges),
    )


def _track(values: F64) -> list[float | None]:
    return [None if np.isnan(v) else float(v) for v in values]


def _grid(names: Sequence[str], sources: Sequence[tuple[BinTable, int]], edges: Sequence[int]) -> Grid:
    rows = [
        (name, [_cell(table, row, k) for k in range(len(edges))])
        for name, (table, row) in zip(names, sources, strict=True)
    ]
    return Grid(
        bin_names(edges), rows, [int(max(table.n[row, k] for table, row in sources)) for k in range(len(edges))]
    )


def _cell(table: BinTable, row: int, column: int) -> Cell:
    if table.n[row, column] == 0:
        return Cell("", "")
    low, high = (_known(ends[row, column]) for ends in (table.low, table.high))
    return Cell(
        typeset_value(table.mean[row, column], "utility", signed=True),
        typeset_interval(low, high, "utility", signed=True),
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _worth(matrix: TransferMatrix) -> Grid:
    names = [f"book of turn {s:,}" for s in matrix.books[1:]]
    return _grid(names, [(matrix.worth, i) for i in range(1, len(matrix.books))], matrix.books)


def _parts(matrix: TransferMatrix, noun: str) -> Grid:
    names = ("learning: the book grew", f"drift: {noun}s moved on", "backward: of later learning")
    return _grid(names, [(matrix.learning, 0), (matrix.drift, 0), (matrix.backward, 0)], matrix.books)


def _transfer(matrix: TransferMatrix) -> list[tuple[str, str]]:
    both = (("Forward transfer", matrix.forward_transfer), ("backward transfer", matrix.backward_transfer))
    return [
        (name, f"{cell.mean} ({cell.interval})") for name, test in both if test for cell in [_tested(test, "utility")]
    ]


def _tested(test: PairedT, unit: str) -> Cell:
    low, high = (_known(test.limit(tail)) for tail in (0.025, 0.975))
    return Cell(typeset_value(test.mean, unit, signed=True), typeset_interval(low, high, unit, signed=True))


def _asked(name: str, findings: Sequence[ContrastResult]) -> Asked:
    metric_findings = [finding for finding in findings if finding.metric.name == name]
    metric, margin = metric_findings[0].metric, metric_findings[0].margin
    figures = [Figure.of(finding.estimate, 0) for finding in metric_findings]
    scale = Scale.of(figures, [True] * len(figures))
    rows = [_row(finding, figure, scale) for finding, figure in zip(metric_findings, figures, strict=True)]
    kinds = [
        Contrasts(
            kind,
            PROOF_WORDS[kind],
            [row for row, finding in zip(rows, metric_findings, strict=True) if finding.contrast.kind == kind],
        )
        for kind in KINDS
    ]
    unit = "difference" if metric.unit == "share" else metric.unit
    return Asked(name, metric.label, typeset_value(margin, unit), [group for group in kinds if group.rows])


def _row(finding: ContrastResult, figure: Figure, scale: Scale) -> ContrastRow:
    contrast, unit = finding.contrast, finding.metric.unit
    return ContrastRow(
        f"{contrast.arm} − {contrast.reference}",
        contrast.asks,
        typeset_value(finding.estimate.mean, unit, signed=True),
        forest(figure, scale),
        flips_link(contrast.arm, contrast.reference),
        typeset_interval(figure.low, figure.high, unit, signed=True),
        typeset_interval(figure.low_new, figure.high_new, unit, signed=True),
        p_value_text(finding.p),
        finding.verdict,
        CONTRAST_TONES[finding.verdict],
    )


def _order(order: OrderControl) -> tuple[str, list[Cell]]:
    unit = "utility" if order.what == "utility" else "share"
    name = f"{order.arm}: {'utility' if order.what == 'utility' else 'hit rate'}"
    return name, [_tested(test, unit) for test in (order.ordered, order.permuted, order.by_order)]
