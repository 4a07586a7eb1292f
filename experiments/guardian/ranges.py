"""Differences as one SVG: panels of rows, in each a dot and a line from the low to the high end."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import pandas as pd

from skg_bench.analysis.report.chart import tick, ticks
from skg_bench.analysis.report.picture import STYLE

PAD, HEAD, TITLE, LINE, FOOT, WIDE, LETTER = 16, 64, 26, 20, 34, 260, 6.4  # pixels; LETTER: mean width of a letter
OWN = """
.zero { stroke: var(--ink); stroke-opacity: .55; } .rule { stroke: var(--rule); } .name { fill: var(--ink); }
.range { stroke: var(--ink); stroke-width: 2; } .dot { fill: var(--paper); stroke: var(--ink); stroke-width: 1.5; }
.clear { fill: var(--ink); } .head { fill: var(--ink); font-weight: 600; }
"""


@dataclass(frozen=True)
class Range:
    """A row; its dot is filled where the line does not reach 0."""

    name: str
    low: float
    middle: float
    high: float

    @classmethod
    def over(cls, name: str, values: "pd.Series[float]") -> "Range":
        """The median of the draws, and from the 5th to the 95th percentile."""
        low, middle, high = values.quantile([0.05, 0.5, 0.95])
        return cls(name, float(low), float(middle), float(high))

    @classmethod
    def within(cls, name: str, mean: float, error: float) -> "Range":
        """A mean with its 95 % interval."""
        return cls(name, mean - 1.96 * error, mean, mean + 1.96 * error)


@dataclass(frozen=True)
class RangePanel:
    """Rows on one axis."""

    title: str
    rows: Sequence[Range]

    @property
    def width(self) -> float:
        """With the names of its rows."""
        return self.names + WIDE + 2 * PAD

    @property
    def names(self) -> float:
        """Width of these."""
        return LETTER * max((len(row.name) for row in self.rows), default=0)

    @property
    def height(self) -> float:
        """With title and axis."""
        return TITLE + LINE * len(self.rows) + FOOT

    def svg(self, left: float, top: float) -> str:
        """The panel with its upper left corner there."""
        ends = [v for row in self.rows for v in (row.low, row.middle, row.high) if v == v]
        marks, step = ticks(min([0.0, *ends]), max([0.0, *ends]))
        edge, first, bottom = left + PAD + self.names, top + TITLE, top + TITLE + LINE * len(self.rows)

        def x(value: float) -> float:
            return edge + 10 + WIDE * (value - marks[0]) / (marks[-1] - marks[0])

        parts = [f'<text class="head" x="{left + PAD}" y="{top + 14}">{escape(self.title)}</text>']
        each = max(1, -(-len(marks) // 5))  # labels that fit
        for at, mark in enumerate(marks):
            css = "zero" if abs(mark) < step / 2 else "rule"
            parts.append(f'<path class="{css}" d="M{x(mark):.1f} {first}V{bottom}"/>')
            if at % each == 0:
                label = tick(mark, "utility", step)
                parts.append(f'<text x="{x(mark):.1f}" y="{bottom + 15}" text-anchor="middle">{label}</text>')
        for line, row in enumerate(self.rows):
            y = first + LINE * (line + 0.5)
            parts.append(
                f'<text class="name" x="{edge:.1f}" y="{y + 4:.1f}" text-anchor="end">{escape(row.name)}</text>'
            )
            if row.middle == row.middle:
                clear = " clear" if row.low > 0 or row.high < 0 else ""
                parts.append(
                    f'<path class="range" d="M{x(row.low):.1f} {y:.1f}H{x(row.high):.1f}"/>'
                    f'<circle class="dot{clear}" cx="{x(row.middle):.1f}" cy="{y:.1f}" r="4"/>'
                )
        return "".join(parts)


def svg(title: str, lines: Sequence[str], panels: Sequence[RangePanel], under: str = "", tall: float = 0) -> str:
    """Panels beside one another; `under` is drawn below them, and needs `tall` more pixels."""
    width = sum(panel.width for panel in panels) + 2 * PAD
    head = HEAD + 15 * (len(lines) - 1)
    height = head + max(panel.height for panel in panels) + tall + PAD
    size = f'width="{width:.0f}" height="{height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" {size} role="img"',
        f' aria-label="{escape(title)}"><style>{STYLE}{OWN}</style><rect class="paper" {size} rx="6"/>',
        f'<text class="title" x="{PAD}" y="26">{escape(title)}</text>',
        *(f'<text x="{PAD}" y="{44 + 15 * at}">{escape(line)}</text>' for at, line in enumerate(lines)),
    ]
    left = float(PAD)
    for panel in panels:
        parts.append(panel.svg(left, head))
        left += panel.width
    return "".join([*parts, under, "</svg>\n"])
