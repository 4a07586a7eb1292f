"""A comparison as one SVG: every arm's difference from the reference, a panel a metric, with both intervals."""

from collections.abc import Callable, Mapping, Sequence
from html import escape

from skg_bench.analysis.comparison.compare import Comparison, ComparisonRow
from skg_bench.analysis.counts.measure import PROVEN
from skg_bench.analysis.counts.wording import number
from skg_bench.analysis.report.chart import tick, ticks
from skg_bench.analysis.report.picture import STYLE

FOREST_PANELS = ("hit_rate", "correct", "err_per_hit")
OWN_PANELS = 4  # of a domain at most
_PANEL, _GAP, _PAD, _HEAD, _FOOT, _LINE = 200, 52, 14, 76, 26, 20  # pixels; _LINE: height of an arm's row
LETTER = 6.8  # mean width of a letter of a label
_OWN = """
.zero { stroke: var(--rule-2); stroke-width: 1.2; } .margin { fill: var(--ceiling); }
.new { stroke: var(--ink); stroke-width: 1; } .these { stroke: var(--ink); stroke-width: 3.5; }
.dot { fill: var(--paper); stroke: var(--ink); stroke-width: 1.4; } .shown .dot { fill: var(--ink); }
.name { fill: var(--ink); }
"""


def forest_svg(comparison: Comparison, names: Sequence[str] = ()) -> str:
    """The figure as text; a dot is filled where the verdict is that there is a difference, a margin is shaded.

    `names`: of metrics; by default utility, the first ones of the domain, and those of answers.
    """
    names = names or main_metrics(comparison)
    arms = list(dict.fromkeys(row.arm for row in comparison.rows))
    rows = {(row.arm, row.metric.name): row for row in comparison.rows}
    shown = [name for name in names if name in measured_metrics(comparison)]
    left = _PAD + LETTER * max((len(arm) for arm in arms), default=0) + 10
    width, height = left + len(shown) * (_PANEL + _GAP) - _GAP + _PAD, _HEAD + _LINE * len(arms) + _FOOT + _PAD
    size = f'width="{width:.0f}" height="{height}"'
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" {size} role="img"',
        f' aria-label="{escape(forest_in_words(comparison))}">',
        f'<style>{STYLE}{_OWN}</style><rect class="paper" {size} rx="6"/>',
        f'<text class="title" x="{_PAD}" y="{_PAD + 12}">Difference from {escape(comparison.reference)}</text>',
        f'<text x="{_PAD}" y="{_PAD + 28}">{escape(_under(comparison))}</text>',
    ]
    for line, arm in enumerate(arms):
        y = _HEAD + _LINE * (line + 0.5)
        out.append(f'<text class="name" x="{left - 10:.0f}" y="{y + 4:.1f}" text-anchor="end">{escape(arm)}</text>')
    for n, name in enumerate(shown):
        of_lines = {line: rows[arm, name] for line, arm in enumerate(arms) if (arm, name) in rows}
        out.append(_panel(of_lines, len(arms), left + n * (_PANEL + _GAP)))
    return "".join([*out, "</svg>\n"])


def main_metrics(comparison: Comparison) -> list[str]:
    """Metrics that a figure shows if none are named."""
    return list(dict.fromkeys(("utility", *comparison.own[:OWN_PANELS], *FOREST_PANELS)))


def measured_metrics(comparison: Comparison) -> list[str]:
    """Names of metrics of which some arm has a difference."""
    return list(dict.fromkeys(
        row.metric.name for row in comparison.rows if row.difference.estimate.mean == row.difference.estimate.mean
    ))  # fmt: skip


def _panel(rows: Mapping[int, ComparisonRow], lines: int, left: float) -> str:
    """One metric's rows by line, of so many `lines`, `left` being the panel's edge."""
    metric, margin = next((row.metric, row.margin) for row in rows.values())
    estimates = [row.difference.estimate for row in rows.values()]
    # not NaN
    values = [v for e in estimates for v in (e.mean, *e.interval(new=False), *e.interval(new=True)) if v == v]
    marks, step = ticks(min([0.0, *values]), max([0.0, *values]))
    low, high = marks[0], marks[-1]
    bottom = _HEAD + _LINE * lines

    def x(value: float) -> float:
        return left + _PANEL * (min(max(value, low), high) - low) / (high - low)

    out = [f'<text class="title" x="{left:.1f}" y="{_HEAD - 8}">{escape(metric.label)}</text>']
    if margin is not None:
        edge = x(-margin)
        out.append(
            f'<rect class="margin" x="{edge:.1f}" y="{_HEAD}" width="{x(margin) - edge:.1f}" '
            f'height="{bottom - _HEAD}"/>'
        )
    unit = "difference" if metric.unit == "share" else metric.unit
    each = max(1, -(-len(marks) // 4))  # labels that fit
    for at, mark in enumerate(marks):
        css = ' class="zero"' if abs(mark) < step / 2 else ""
        out.append(f'<g class="grid"><line x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{_HEAD}" y2="{bottom}"{css}/></g>')
        if at % each == 0:
            label = tick(mark, unit, step)
            out.append(f'<text x="{x(mark):.1f}" y="{bottom + 16}" text-anchor="middle">{label}</text>')
    out.extend(_mark(row, x, _HEAD + _LINE * (line + 0.5)) for line, row in rows.items())
    return "".join(out)


def _mark(row: ComparisonRow, x: Callable[[float], float], y: float) -> str:
    """Two intervals and a dot; nothing where nothing was measured."""
    e = row.difference.estimate
    if e.mean != e.mean:
        return ""
    out = ['<g class="shown">' if row.difference.verdict in PROVEN else "<g>"]
    for css, new in (("new", True), ("these", False)):
        low, high = e.interval(new=new)
        if low == low:
            out.append(f'<line class="{css}" x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
    return "".join([*out, f'<circle class="dot" cx="{x(e.mean):.1f}" cy="{y:.1f}" r="4"/></g>'])


def _under(comparison: Comparison) -> str:
    noun = comparison.noun
    return (
        f"{comparison.users:,} users, {comparison.turns:,} turns of each arm. Thick: 95 % for other users with these "
        f"{noun}s; thin: with new {noun}s. Filled: shown."
    )


def forest_in_words(comparison: Comparison, name: str = "utility") -> str:
    """The differences in a metric in words, for those who do not see the figure."""
    rows = [row for row in comparison.rows if row.metric.name == name]
    phrases = [
        f"{row.arm}: {number(row.difference.estimate.mean, row.metric.unit, signed=True)}, {row.difference.verdict}"
        for row in rows
    ]
    return f"Difference in {rows[0].metric.label if rows else name} from {comparison.reference}: {'; '.join(phrases)}."
