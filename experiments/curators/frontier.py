"""Figure: what a curator's book is worth beyond the book that it began with, against what learning cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite

from skg_bench.analysis.report.chart import tick, ticks

SIDE, HIGH, LEFT, TOP, GAP, KEY = 400, 250, 66, 92, 64, 20  # pixels
COLOURS = 6
Axis = tuple[Sequence[float], float]  # marks, and the step between them
STYLE = """
svg { --paper: #fff; --ink: #15191e; --soft: #59636e; --rule: #c9d0d8; --c0: #0b5394; --c1: #b45309; --c2: #7c3aed;
  --c3: #15803d; --c4: #be185d; --c5: #6b7280;
  font: 11px -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
@media (prefers-color-scheme: dark) { svg { --paper: #101317; --ink: #e7eaee; --soft: #a2acb7; --rule: #3b434c;
  --c0: #78b4f0; --c1: #f0a860; --c2: #b79bff; --c3: #6fcf97; --c4: #f48fb8; --c5: #a2acb7; } }
.paper { fill: var(--paper); } text { fill: var(--soft); }
.title { fill: var(--ink); font-size: 14px; font-weight: 600; } .name { fill: var(--ink); }
.rule { stroke: var(--rule); fill: none; } .zero { stroke: var(--soft); stroke-dasharray: 2 3; }
.frontier { stroke: var(--ink); stroke-dasharray: 5 3; fill: none; }
"""


@dataclass(frozen=True)
class Point:
    """A curator at a cap."""

    curator: str
    capped: bool
    usd: float  # that learning cost, a user
    gain: float  # utility beyond the frozen book
    low: float
    high: float


def frontier(points: Sequence[Point]) -> list[Point]:
    """Points that gain more than all that cost less, the cheapest first. To learn nothing costs nothing and gains 0."""
    best: list[Point] = []
    for point in sorted(points, key=lambda each: (each.usd, -each.gain)):
        if point.gain > (best[-1].gain if best else 0.0):
            best.append(point)
    return best


def drawn(title: str, how: Sequence[str], panels: Mapping[str, Sequence[Point]]) -> str:
    """A panel for each regime, with a key below; the dashed line is the frontier."""
    curators = list(dict.fromkeys(point.curator for points in panels.values() for point in points))
    width = LEFT + len(panels) * (SIDE + GAP) - GAP + 20
    key_top = TOP + HIGH + 58
    height = key_top + KEY * -(-(len(curators) + 2) // 4) + 8
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title)}">',
        f'<style>{STYLE}</style><rect class="paper" width="{width}" height="{height}" rx="6"/>',
        f'<text class="title" x="16" y="26">{escape(title)}</text>',
        *(f'<text x="16" y="{44 + 14 * i}">{escape(line)}</text>' for i, line in enumerate(how)),
    ]
    every = [point for points in panels.values() for point in points]
    across = ticks(0.0, max(point.usd for point in every))
    up = ticks(min(0.0, *(point.low for point in every)), max(0.0, *(point.high for point in every)))
    for i, (name, points) in enumerate(panels.items()):
        body += _panel(name, points, curators, LEFT + i * (SIDE + GAP), across=across, up=up)
    entries = [(name, f"var(--c{i % COLOURS})", True) for i, name in enumerate(curators)]
    entries += [("without a cap", "var(--ink)", True), ("with a cap", "var(--ink)", False)]
    for i, (name, colour, filled) in enumerate(entries):
        x, y = LEFT + (i % 4) * 200, key_top + KEY * (i // 4)
        body.append(_dot(x, y - 4, colour, filled=filled))
        body.append(f'<text class="name" x="{x + 12}" y="{y}">{escape(name)}</text>')
    return "\n".join([*body, "</svg>"]) + "\n"


def _panel(
    name: str, points: Sequence[Point], curators: Sequence[str], left: float, *, across: Axis, up: Axis
) -> list[str]:
    (x_marks, x_step), (y_marks, y_step) = across, up

    def at(usd: float, gain: float) -> tuple[float, float]:
        x = left + SIDE * (usd - x_marks[0]) / (x_marks[-1] - x_marks[0])
        return x, TOP + HIGH * (1 - (gain - y_marks[0]) / (y_marks[-1] - y_marks[0]))

    body = [
        f'<text class="name" x="{left}" y="{TOP - 10}" font-weight="600">{escape(name)}</text>',
        f'<rect class="rule" x="{left}" y="{TOP}" width="{SIDE}" height="{HIGH}"/>',
        f'<text x="{left + SIDE / 2}" y="{TOP + HIGH + 32}" text-anchor="middle">cost of learning, a user</text>',
    ]
    for mark in y_marks:
        y = at(0.0, mark)[1]
        body.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{tick(mark, "utility", y_step)}</text>')
    for mark in x_marks:
        x = at(mark, 0.0)[0]
        body.append(f'<text x="{x:.1f}" y="{TOP + HIGH + 16}" text-anchor="middle">{tick(mark, "usd", x_step)}</text>')
    zero = at(0.0, 0.0)[1]
    body.append(f'<path class="zero" d="M{left} {zero:.1f}H{left + SIDE}"/>')
    steps = [at(point.usd, point.gain) for point in frontier(points)]
    path = f"M{left} {zero:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in steps)
    body.append(f'<path class="frontier" d="{path}H{left + SIDE}"/>')
    for point in points:
        colour = f"var(--c{curators.index(point.curator) % COLOURS})"
        (x, y), low, high = at(point.usd, point.gain), at(0, point.low)[1], at(0, point.high)[1]
        if isfinite(low) and isfinite(high):  # one user has no interval
            body.append(f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="{colour}" stroke-opacity="0.55"/>')
        body.append(_dot(x, y, colour, filled=not point.capped))
    return body


def _dot(x: float, y: float, colour: str, *, filled: bool) -> str:
    fill = colour if filled else "var(--paper)"
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{fill}" stroke="{colour}" stroke-width="1.6"/>'
