"""The break-even map as one SVG file without scripts: colours are gains, on the line learning is worth nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDE, HIGH, LEFT, TOP, GAP, FOOT = 128, 54, 92, 74, 56, 40  # pixels of a cell, and around the maps
STRONG = 0.05  # utility a request, at which a colour is full
STYLE = """
svg { --paper: #fff; --ink: #15191e; --soft: #59636e; --worse: 178, 60, 40; --better: 11, 83, 148;
  font: 11px -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
@media (prefers-color-scheme: dark) { svg { --paper: #101317; --ink: #e7eaee; --soft: #a2acb7; --worse: 235, 120, 95;
  --better: 120, 180, 240; } }
.paper { fill: var(--paper); } text { fill: var(--soft); }
.title { fill: var(--ink); font-size: 14px; font-weight: 600; }
.name, .gain { fill: var(--ink); font-weight: 600; } .worse { fill: rgb(var(--worse)); }
.better { fill: rgb(var(--better)); } .hits { fill: var(--ink); }
.zero { fill: none; stroke: var(--ink); stroke-width: 2; stroke-opacity: .45; }
"""


@dataclass(frozen=True)
class Cell:
    """One run."""

    gain: float  # utility a request beyond `never`
    shown: bool  # a verdict, for new users and new requests
    right: float  # share of hits
    pays_from: float  # share of right hits from which they pay


@dataclass(frozen=True)
class Panel:
    """One arm on one corpus; the first row of cells has the smallest share of procedures."""

    name: str
    repeats: Sequence[float]  # of requests word for word, of each column
    shares: Sequence[float]  # of intents for which procedures exist, of each row
    cells: Sequence[Sequence[Cell]]


def break_even_line(panel: Panel) -> list[tuple[int, float]]:
    """Column and row (a fraction: between two) where the gain is 0, linear between runs; not of columns without."""
    places = []
    for column in range(len(panel.repeats)):
        gains = [row[column].gain for row in panel.cells]
        for row in range(len(gains) - 1):
            low, high = gains[row], gains[row + 1]
            if low < 0 <= high:
                places.append((column, row + low / (low - high)))
    return places


def svg(panels: Sequence[Panel], title: str) -> str:
    """The file: a map for each panel, one below the other."""
    columns = max(len(panel.repeats) for panel in panels)
    heights = [TOP + HIGH * len(panel.shares) + GAP for panel in panels]
    width, height = LEFT + WIDE * columns + 24, sum(heights) + FOOT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" ',
        f'aria-label="{escape(title)}">',
        f'<style>{STYLE}</style><rect class="paper" width="{width}" height="{height}"/>',
        f'<text class="title" x="16" y="26">{escape(title)}</text>',
    ]
    top = 0
    for panel, high in zip(panels, heights, strict=True):
        parts.append(f'<g transform="translate(0 {top})">{"".join(_panel(panel))}</g>')
        top += high
    note = "Line: learning is worth nothing. Below the gain: share of right hits, and the share from which hits pay."
    return "".join([*parts, f'<text x="16" y="{height - 18}">{note}</text></svg>\n'])


def _panel(panel: Panel) -> list[str]:
    rows = len(panel.shares)
    bottom = TOP + HIGH * rows
    parts, texts = [f'<text class="name" x="16" y="{TOP - 20}">{escape(panel.name)}</text>'], list[str]()
    for y, (share, cells) in enumerate(zip(panel.shares, panel.cells, strict=True)):
        at = bottom - HIGH * (y + 1)
        parts.append(f'<text x="{LEFT - 8}" y="{at + HIGH / 2 + 4}" text-anchor="end">{share:.0%}</text>')
        parts += [_colour(cell, LEFT + WIDE * x, at) for x, cell in enumerate(cells)]
        texts += [_text(cell, LEFT + WIDE * x, at) for x, cell in enumerate(cells)]
    for x, repeats in enumerate(panel.repeats):
        middle = LEFT + WIDE * (x + 0.5)
        parts.append(f'<text x="{middle}" y="{bottom + 16}" text-anchor="middle">{repeats:.0%}</text>')
    axis = "requests that repeat an earlier one word for word; upwards: intents with procedures"
    parts.append(f'<text x="{LEFT}" y="{bottom + 32}">{axis}</text>')
    line = [(LEFT + WIDE * (x + 0.5), bottom - HIGH * (y + 0.5)) for x, y in break_even_line(panel)]
    if line:
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
        parts.append(f'<polyline class="zero" points="{points}"/>')
        parts += [f'<circle class="zero" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in line]
    return parts + texts


def _colour(cell: Cell, x: float, y: float) -> str:
    strength = 0.08 + 0.3 * min(abs(cell.gain) / STRONG, 1.0)
    size = f'x="{x}" y="{y}" width="{WIDE - 2}" height="{HIGH - 2}"'
    return f'<rect class="{_sign(cell)}" fill-opacity="{strength:.2f}" {size}/>'


def _text(cell: Cell, x: float, y: float) -> str:
    word = _sign(cell) if cell.shown else "open"
    return (
        f'<text class="gain" x="{x + 8}" y="{y + 22}">{cell.gain:+.3f} {word}</text>'
        f'<text class="hits" x="{x + 8}" y="{y + 40}">{cell.right:.0%} right, of {cell.pays_from:.0%}</text>'
    )


def _sign(cell: Cell) -> str:
    return "better" if cell.gain >= 0 else "worse"
