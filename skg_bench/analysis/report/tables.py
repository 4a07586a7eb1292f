"""The page's tables: levels of the arms, differences to the reference, what learning on is worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from skg_bench.analysis.counts.wording import named
from skg_bench.analysis.report.addresses import flips_link
from skg_bench.analysis.report.arm_looks import Look
from skg_bench.analysis.report.typeset import typeset_interval, typeset_sizes, typeset_value
from skg_bench.analysis.summary.document import MetricWords, Summary
from skg_bench.analysis.summary.figures import NO_FIGURE, DifferenceFigure, Figure

LEVEL_METRICS = (
    "utility", "hit_rate", "err_per_hit", "right_per_hit", "pays_from", "err_per_request", "rated_ok", "skills",
    "offers_per_week", "calls_saved", "cost_saved_usd",
)  # fmt: skip
REPLAY_LEVELS = ("hit_rate", "same_answer", "other_answer", "other_intent", "wrong_lower", "wrong_upper", "rated_share",
            "rated_ok", "skills", "offers_per_week", "calls_saved", "cost_saved_usd")  # fmt: skip
LONG_LABEL = {"utility": "Utility per request"}
VERDICT_TONES = {"better": "good", "worse": "bad", "higher": "plain", "lower": "plain"}
FOREST_WIDTH, FOREST_HEIGHT = 200, 20


@dataclass(frozen=True, slots=True)
class Cell:
    """A mean and its interval, as text."""

    mean: str
    interval: str


@dataclass(frozen=True, slots=True)
class Level:
    """One arm's row of levels."""

    look: Look
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class ArmPair:
    """Pair of arms that a row compares."""

    look: Look  # of the arm that gives the row its colour
    note: str  # the row's heading, empty: the arm's name
    turns: str  # address of the turns behind the difference


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """One arm's row against the reference, or a live arm's against its frozen twin."""

    look: Look
    note: str
    difference: str
    forest: Markup
    turns: str  # address of the turns behind the difference
    these: str
    new: str
    detectable: str
    p: str
    verdict: str
    tone: str


@dataclass(frozen=True, slots=True)
class DifferenceTable:
    """Differences in one metric."""

    metric: str
    label: str
    says: str
    rows: Sequence[DifferenceRow]


def metric_heading(metric: str, metrics: Mapping[str, MetricWords], noun: str = "request") -> str:
    """A metric's name as a heading."""
    text = named(LONG_LABEL[metric], noun) if metric in LONG_LABEL else metrics[metric].label
    return text[:1].upper() + text[1:]


def levels(summary: Summary, looks: Sequence[Look]) -> tuple[list[str], list[Level]]:
    """Headings and rows, best utility first."""
    metrics, arms = summary.metrics, summary.arms
    wanted: Sequence[str] = LEVEL_METRICS
    if summary.telling.table:
        wanted = summary.telling.table
    elif summary.log is not None:
        wanted = [m for m in REPLAY_LEVELS if any(_mean(arms[look.arm].get(m)) > float("-inf") for look in looks)]
    wanted = [*wanted, *summary.own]
    listed = [m for m in wanted if any(m in arms[look.arm] for look in looks) and m in metrics]
    order = sorted(looks, key=lambda look: -_mean(arms[look.arm].get("utility")))
    rows = []
    for look in order:
        arm_figures = arms[look.arm]
        rows.append(
            Level(
                look,
                [
                    Cell(typeset_value(figure.mean, unit), typeset_interval(figure.low_new, figure.high_new, unit))
                    for figure, unit in ((arm_figures.get(m, NO_FIGURE), metrics[m].unit) for m in listed)
                ],
            )
        )
    return [metric_heading(m, metrics, summary.telling.noun) for m in listed], rows


def difference_tables(summary: Summary, looks: Sequence[Look]) -> list[DifferenceTable]:
    """One table per metric, arms by utility as in the table of levels."""
    against = summary.differences
    order = sorted(looks, key=lambda look: -_mean(summary.arms[look.arm].get("utility")))
    reference = str(summary.reference)
    entries = [
        (ArmPair(look, "", flips_link(look.arm, reference)), against[look.arm]) for look in order if look.arm in against
    ]
    return _tables(entries, summary)


def effects(summary: Summary, looks: Sequence[Look]) -> list[DifferenceTable]:
    """Worth of learning after a turn: live minus frozen, one table per metric."""
    frozen = summary.effects
    entries = []
    for look in (look for look in looks if look.arm in frozen):
        effect = frozen[look.arm]
        note = f"{effect.live} against {look.arm}, from turn {effect.since:,}"
        entries.append((ArmPair(look, note, flips_link(effect.live, look.arm)), effect.metrics))
    return _tables(entries, summary)


def _tables(
    entries: Sequence[tuple[ArmPair, Mapping[str, DifferenceFigure]]], summary: Summary
) -> list[DifferenceTable]:
    tables = []
    for metric, about in summary.metrics.items():
        some = [(pair, by_metric[metric]) for pair, by_metric in entries if metric in by_metric]
        if not any(d.verdict != "not measured" for _, d in some):
            continue
        scale = Scale.of([d for _, d in some], [pair.look.shown for pair, _ in some])
        rows = [_row(pair, d, about.unit, scale) for pair, d in some]
        heading = metric_heading(metric, summary.metrics, summary.telling.noun)
        tables.append(DifferenceTable(metric, heading, about.says, rows))
    return tables


def _row(pair: ArmPair, d: DifferenceFigure, unit: str, scale: "Scale") -> DifferenceRow:
    return DifferenceRow(
        look=pair.look,
        note=pair.note or pair.look.arm,
        turns=pair.turns,
        difference=typeset_value(d.mean, unit, signed=True),
        forest=forest(d, scale),
        these=typeset_interval(d.low, d.high, unit, signed=True),
        new=typeset_interval(d.low_new, d.high_new, unit, signed=True),
        detectable=typeset_sizes(d.mde_rise, d.mde_fall, unit),
        p="–" if d.p_holm is None else p_value_text(d.p_holm),
        verdict=d.verdict,
        tone=VERDICT_TONES.get(d.verdict, "open"),
    )


def p_value_text(p: float) -> str:
    """Three digits are enough."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


@dataclass(frozen=True, slots=True)
class Scale:
    """Horizontal scale of a table's interval bars."""

    low: float
    high: float

    @classmethod
    def of(cls, rows: Sequence[Figure], shown: Sequence[bool]) -> "Scale":
        """Zero and every arm; one beyond thrice what the arms on display need is cut, and marked by an arrow."""
        reach = [max([abs(v) for v in _ends(d)], default=0.0) for d in rows]
        need = max([r for r, s in zip(reach, shown, strict=True) if s], default=0.0) or max(reach, default=0.0) or 1.0
        inside = [v for d, r in zip(rows, reach, strict=True) if r <= 3 * need for v in _ends(d)]
        low, high = min([0.0, *inside]), max([0.0, *inside])
        pad = 0.06 * (high - low or 1.0)
        return cls(low - pad, high + pad)

    def x(self, value: float) -> float:
        """Pixels from the left, cut at the edges."""
        share = (value - self.low) / (self.high - self.low)
        return round(FOREST_WIDTH * min(max(share, 0.0), 1.0), 1)


def forest(d: Figure, scale: Scale) -> Markup:
    """Interval bar: thick for these requests, thin for new requests, a dot at the mean, a line at zero."""
    middle = FOREST_HEIGHT / 2
    parts = [f'<line class="zero" x1="{scale.x(0)}" x2="{scale.x(0)}" y1="0" y2="{FOREST_HEIGHT}"/>']
    for css, low, high in (("new", d.low_new, d.high_new), ("these", d.low, d.high)):
        if low is not None and high is not None:
            parts.append(f'<line class="{css}" x1="{scale.x(low)}" x2="{scale.x(high)}" y1="{middle}" y2="{middle}"/>')
    if d.mean is not None:
        x = scale.x(d.mean)
        if d.mean < scale.low:
            parts.append(f'<path class="beyond" d="M8 {middle - 4}L1 {middle}L8 {middle + 4}Z"/>')
        elif d.mean > scale.high:
            parts.append(f'<path class="beyond" d="M{x - 8} {middle - 4}L{x - 1} {middle}L{x - 8} {middle + 4}Z"/>')
        else:
            parts.append(f'<circle cx="{x}" cy="{middle}" r="3.6"/>')
    view = f"0 0 {FOREST_WIDTH} {FOREST_HEIGHT}"
    return Markup(f'<svg class="forest" viewBox="{view}" aria-hidden="true">{"".join(parts)}</svg>')  # noqa: S704  numbers only


def _ends(d: Figure) -> list[float]:
    return [end for end in (d.mean, d.low, d.high, d.low_new, d.high_new) if end is not None]


def _mean(figure: Figure | None) -> float:
    return float("-inf") if figure is None or figure.mean is None else figure.mean
