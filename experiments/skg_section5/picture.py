"""Maps of where in the prior a claim holds, one for each claim and corpus, in one SVG file without scripts."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap

import numpy as np

from experiments.skg_section5.readings import Frame, Reading, holds, known

CELLS, LEAST = 9, 5  # columns and rows of a map; draws that a cell needs to be shown
SIDE, GAP, LEFT, TOP, ROW, BOTTOM = 140, 22, 84, 128, 96, 34  # pixels; ROW: between two rows of maps
X, Y = (0.002, 0.45), (0.05, 0.75)  # the axes' ranges
XS, YS = (0.003, 0.03, 0.3), (0.2, 0.4, 0.6)
MARKS = (0.31, 0.40)  # requests that repeat an earlier one: MeanCache; Teevan et al.
STYLE = """
svg { --paper: #fff; --ink: #15191e; --soft: #59636e; --rule: #c9d0d8; --none: #f4f5f7; --hue: 11, 83, 148;
  font: 11px -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
@media (prefers-color-scheme: dark) { svg { --paper: #101317; --ink: #e7eaee; --soft: #a2acb7; --rule: #3b434c;
  --none: #1a1f25; --hue: 120, 180, 240; } }
.paper { fill: var(--paper); } text { fill: var(--soft); }
.title { fill: var(--ink); font-size: 14px; font-weight: 600; }
.name { fill: var(--ink); font-weight: 600; } .frame { fill: var(--none); stroke: var(--rule); }
.cell { fill: rgb(var(--hue)); } .mark { stroke: var(--soft); stroke-dasharray: 2 3; }
"""


def axes(draws: Frame) -> tuple[np.ndarray, np.ndarray]:
    """Axes on which draws lie: how readily an answer becomes a skill, and how much is asked again."""
    return (draws.rated_share * draws.accept).to_numpy(), draws.asked_again.to_numpy()


def cells(reading: Reading, draws: Frame) -> tuple[np.ndarray, np.ndarray]:
    """`[CELLS, CELLS]` by x and y: the share of draws in which it holds, and how many there are."""
    draws = draws[known(reading, draws)]
    x, y = axes(draws)
    at = (
        np.clip((np.log(x / X[0]) / math.log(X[1] / X[0]) * CELLS).astype(int), 0, CELLS - 1),
        np.clip(((y - Y[0]) / (Y[1] - Y[0]) * CELLS).astype(int), 0, CELLS - 1),
    )
    n, met = np.zeros((CELLS, CELLS)), np.zeros((CELLS, CELLS))
    np.add.at(n, at, 1)
    np.add.at(met, at, holds(reading, draws))
    return met / np.maximum(n, 1), n


def svg(readings: Sequence[Reading], corpora: Mapping[str, Frame]) -> str:
    """The picture as text; a row of maps for each corpus."""
    width = LEFT + len(readings) * (SIDE + GAP) + 10
    height = TOP + len(corpora) * (SIDE + ROW) - ROW + 26 + BOTTOM
    how = (
        f"Dark: in all draws there; pale: in none; blank: fewer than {LEAST} draws. Dotted: {MARKS[0]:.0%} and "
        f"{MARKS[1]:.0%} of requests repeat an earlier one (MeanCache; Teevan et al.)."
    )
    across = (
        "across: probability that a right answer is rated ok, and the offer to make a skill of it accepted "
        "(rated_share x accept, logarithmic)"
    )
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{width}" height="{height}" rx="6"/>',
        '<text class="title" x="16" y="26">Where the prior holds what section 5 claims</text>',
        f'<text x="16" y="44">{how}</text>',
        f'<text x="{LEFT}" y="{height - 14}">{across}</text>',
    ]
    for row, (corpus, draws) in enumerate(corpora.items()):
        top = TOP + row * (SIDE + ROW)
        for column, reading in enumerate(readings):
            out += _map(reading, draws, LEFT + column * (SIDE + GAP), top, ticks=column == 0)
        for x, css, text in ((18, "name", corpus), (34, "soft", "requests asked again")):
            turned = f'transform="translate({x} {top + SIDE / 2}) rotate(-90)"'
            out.append(f'<text class="{css}" text-anchor="middle" {turned}>{escape(text)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def _map(reading: Reading, draws: Frame, left: float, top: float, *, ticks: bool) -> list[str]:
    share, n = cells(reading, draws)
    tells = draws[known(reading, draws)]
    words = wrap(f"{reading.id}: {reading.claimed}", 23)
    out = [
        f'<text class="name" x="{left}" y="{top - 8 - 13 * (len(words) - line)}">{escape(text)}</text>'
        for line, text in enumerate(words)
    ]
    out.append(f'<text x="{left}" y="{top - 6}">{holds(reading, tells).mean():.1%} of {len(tells):,} draws</text>')
    out.append(f'<rect class="frame" x="{left}" y="{top}" width="{SIDE}" height="{SIDE}"/>')
    step = SIDE / CELLS
    for i, j in zip(*np.nonzero(n >= LEAST), strict=True):
        x, y = left + i * step, top + SIDE - (j + 1) * step
        out.append(
            f'<rect class="cell" x="{x:.1f}" y="{y:.1f}" width="{step:.1f}" height="{step:.1f}" '
            f'fill-opacity="{0.06 + 0.94 * share[i, j]:.2f}"><title>{share[i, j]:.0%} of {n[i, j]:.0f}</title></rect>'
        )
    out += [f'<path class="mark" d="M{left} {_y(value, top):.1f}h{SIDE}"/>' for value in MARKS]
    for value in XS:
        x = left + SIDE * math.log(value / X[0]) / math.log(X[1] / X[0])
        out.append(f'<text x="{x:.1f}" y="{top + SIDE + 13}" text-anchor="middle">{value:g}</text>')
    for value in YS if ticks else ():
        out.append(f'<text x="{left - 5}" y="{_y(value, top) + 4:.1f}" text-anchor="end">{value:.0%}</text>')
    return out


def _y(value: float, top: float) -> float:
    return top + SIDE * (1 - (value - Y[0]) / (Y[1] - Y[0]))
