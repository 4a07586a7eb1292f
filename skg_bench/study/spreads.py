"""Drawings of figures over a prior, as SVG without scripts: curves over interactions, and a line for each figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

Spread = tuple[float, float, float]  # 5th, 50th and 95th percentile of the draws
SPREAD_WIDTH, LEFT, ROW, TOP = 860, 330, 26, 84  # pixels
SIDE, HIGH, GAP = 330, 190, 56  # of a panel of curves: width, height, and what lies between two
SPREAD_STYLE = """
svg { --paper: #fff; --ink: #15191e; --soft: #59636e; --rule: #c9d0d8; --c0: #0b5394; --c1: #b45309; --c2: #6b7280;
  --c3: #15803d; font: 11px -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
@media (prefers-color-scheme: dark) { svg { --paper: #101317; --ink: #e7eaee; --soft: #a2acb7; --rule: #3b434c;
  --c0: #78b4f0; --c1: #f0a860; --c2: #a2acb7; --c3: #6fcf97; } }
.paper { fill: var(--paper); } text { fill: var(--soft); }
.title { fill: var(--ink); font-size: 14px; font-weight: 600; }
.name { fill: var(--ink); } .rule { stroke: var(--rule); fill: none; }
.zero { stroke: var(--soft); stroke-dasharray: 2 3; }
"""


@dataclass(frozen=True)
class CurvesPanel:
    """A panel: for each series, the spread of a figure at each place on the x axis."""

    title: str
    x: Sequence[str]
    series: Mapping[str, Sequence[Spread]]
    percent: bool = False


def _framed(title: str, how: Sequence[str], width: int, height: float, body: Sequence[str]) -> str:
    lines = [f'<text x="16" y="{44 + 14 * i}">{escape(line)}</text>' for i, line in enumerate(how)]
    size = f'viewBox="0 0 {width} {height:.0f}" width="{width}" height="{height:.0f}"'
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title)}">',
        f"<style>{SPREAD_STYLE}</style>",
        f'<rect class="paper" width="{width}" height="{height:.0f}" rx="6"/>',
        f'<text class="title" x="16" y="26">{escape(title)}</text>',
    ]
    return "\n".join([*head, *lines, *body, "</svg>"]) + "\n"


def _scale(values: Sequence[float], *marks: float) -> tuple[float, float]:
    low, high = min([*values, *marks]), max([*values, *marks])
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room


def _shown(value: float, percent: bool) -> str:
    return f"{100 * value:.0f} %" if percent else f"{value:.2g}"


def strips(title: str, how: Sequence[str], rows: Mapping[str, Spread], *, percent: bool = False) -> str:
    """A line for each figure from the 5th to the 95th percentile of draws, a dot at the median, a rule at 0."""
    low, high = _scale([x for spread in rows.values() for x in spread], 0.0)
    span = SPREAD_WIDTH - LEFT - 180

    def place(value: float) -> float:
        return LEFT + span * (value - low) / (high - low)

    bottom = TOP + ROW * len(rows)
    body = [f'<path class="zero" d="M{place(0.0):.1f} {TOP - 8}V{bottom}"/>']
    for i, (name, (least, middle, most)) in enumerate(rows.items()):
        y = TOP + ROW * (i + 0.5)
        numbers = f"{_shown(middle, percent)} ({_shown(least, percent)} to {_shown(most, percent)})"
        line = f'd="M{place(least):.1f} {y:.1f}H{place(most):.1f}" stroke="var(--c0)" stroke-width="3"'
        body += [
            f'<text class="name" x="{LEFT - 12}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>',
            f'<path {line} stroke-opacity="0.45"/>',
            f'<circle cx="{place(middle):.1f}" cy="{y:.1f}" r="4.5" fill="var(--c0)"/>',
            f'<text x="{SPREAD_WIDTH - 166}" y="{y + 4:.1f}">{numbers}</text>',
        ]
    return _framed(title, how, SPREAD_WIDTH, bottom + 20, body)


def curve_panels(title: str, how: Sequence[str], each: Sequence[CurvesPanel]) -> str:
    """Panels side by side, two in a row; each series is its median over draws, in a band of nine draws of ten."""
    body: list[str] = []
    for i, panel in enumerate(each):
        body += _panel(panel, 60 + (i % 2) * (SIDE + GAP), TOP + 22 + (i // 2) * (HIGH + 76))
    rows = (len(each) + 1) // 2
    return _framed(title, how, 60 + 2 * SIDE + GAP + 24, TOP + rows * (HIGH + 76) + 4, body)


def _panel(panel: CurvesPanel, left: float, top: float) -> list[str]:
    low, high = _scale([x for spreads in panel.series.values() for spread in spreads for x in spread])

    def at(i: int, value: float) -> str:
        step = SIDE / max(len(panel.x) - 1, 1)
        return f"{left + step * i:.1f} {top + HIGH * (1 - (value - low) / (high - low)):.1f}"

    body = [
        f'<text class="name" x="{left}" y="{top - 24}" font-weight="600">{escape(panel.title)}</text>',
        f'<rect class="rule" x="{left}" y="{top}" width="{SIDE}" height="{HIGH}"/>',
    ]
    for value in (low, (low + high) / 2, high):
        y = top + HIGH * (1 - (value - low) / (high - low))
        body.append(f'<text x="{left - 5}" y="{y + 4:.1f}" text-anchor="end">{_shown(value, panel.percent)}</text>')
    for i, text in enumerate(panel.x):
        x = left + SIDE / max(len(panel.x) - 1, 1) * i
        body.append(f'<text x="{x:.1f}" y="{top + HIGH + 15}" text-anchor="middle">{escape(text)}</text>')
    if low < 0 < high:
        body.append(f'<path class="zero" d="M{at(0, 0.0)}H{left + SIDE}"/>')
    for k, (name, spreads) in enumerate(panel.series.items()):
        colour = f"var(--c{k % 4})"
        upper = [at(i, spread[2]) for i, spread in enumerate(spreads)]
        lower = [at(i, spread[0]) for i, spread in enumerate(spreads)]
        middle = [at(i, spread[1]) for i, spread in enumerate(spreads)]
        body += [
            f'<path d="M{"L".join([*upper, *lower[::-1]])}Z" fill="{colour}" fill-opacity="0.1"/>',
            f'<path d="M{"L".join(middle)}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<rect x="{left + 82 * k}" y="{top - 17}" width="10" height="3" fill="{colour}"/>',
            f'<text x="{left + 14 + 82 * k}" y="{top - 11}">{escape(name)}</text>',
        ]
    return body
