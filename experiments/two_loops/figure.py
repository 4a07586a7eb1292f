"""Loops and signs against the immediate loop alone: over the prior, in a world made for it, and as a map."""

from collections.abc import Mapping, Sequence

import pandas as pd

from experiments.guardian import ranges
from experiments.guardian.ranges import Range, RangePanel
from experiments.two_loops.measure import REFERENCE
from experiments.two_loops.tables import MAPPED, STEPS, cuts, mappable, mapped

ROWS = {
    "both": "both, one counter", "replace": "both, the later in place", "separate": "both, apart",
    "later": "later alone", "neutral_later": "later alone, neutral", "later_turned": "both, later turned round",
    "wrong_both": "both, all turned round", "coin": "a coin's ratings", "frozen": "nothing learned",
}  # fmt: skip
CELL, HIGH, LEFT, TOP, FULL = 118, 34, 110, 54, 0.03  # pixels; FULL: utility at which a colour is full
MAP_STYLE = """<style>svg { --worse: 178, 60, 40; --better: 11, 83, 148; }
@media (prefers-color-scheme: dark) { svg { --worse: 235, 120, 95; --better: 120, 180, 240; } }
.worse { fill: rgb(var(--worse)); } .better { fill: rgb(var(--better)); }</style>"""


def svg(table: pd.DataFrame, made: Mapping[str, float]) -> str:
    """The file."""
    prior = [Range.over(words, table[f"{arm} - {REFERENCE}"]) for arm, words in ROWS.items()]
    world = [
        Range.within(words, made[name := f"{arm} - {REFERENCE}"], made[f"{name}_error"]) for arm, words in ROWS.items()
    ]
    panels = [
        RangePanel(f"Over the prior: median of {len(table)} draws, nine of ten", prior),
        RangePanel("In a world made for the later loop: mean, 95 %", world),
    ]
    lines = (
        "Utility a trigger, less that of learning from reactions alone. Filled: the line does not reach 0.",
        "Made for it: what persuades is not what helps, four of five users say what was right, hardly anybody errs.",
    )
    under, tall = "", 0.0
    if mappable(table):
        top = ranges.HEAD + 15 + max(panel.height for panel in panels)
        left, tall = float(ranges.PAD), TOP + HIGH * STEPS + 40.0
        for name, words in MAPPED.items():
            under += _map(table, name, words, left, top)
            left += LEFT + CELL * STEPS + 40
    return ranges.svg("Does a second loop help?", lines, panels, under and MAP_STYLE + under, tall)


def _map(table: pd.DataFrame, name: str, words: str, left: float, top: float) -> str:
    """Mean over the draws of each cell."""
    parts = [
        f'<text class="head" x="{left}" y="{top + 14}">{words[0].upper()}{words[1:]}</text>',
        f'<text x="{left}" y="{top + 30}">across: questions that are answered; down: answers that are mistaken</text>',
    ]
    x0, y0 = left + LEFT, top + TOP
    for row, cells in enumerate(mapped(table, name)):
        y = y0 + row * HIGH
        parts.append(
            f'<text x="{x0 - 8}" y="{y + 21}" text-anchor="end">{_between(cuts(table["mistaken"]), row)}</text>'
        )
        for column, (mean, n) in enumerate(cells):
            x = x0 + column * CELL
            if n:
                css, strength = ("better" if mean > 0 else "worse"), min(abs(mean) / FULL, 1.0) * 0.8
                size = f'width="{CELL - 2}" height="{HIGH - 2}"'
                parts.append(
                    f'<rect class="{css}" fill-opacity="{strength:.2f}" x="{x}" y="{y}" {size}/>'
                    f'<text class="name" x="{x + CELL / 2}" y="{y + 21}" text-anchor="middle">{mean:+.3f} ({n})</text>'
                )
    for column in range(STEPS):
        x, share = x0 + (column + 0.5) * CELL, _between(cuts(table["answered"]), column)
        parts.append(f'<text x="{x}" y="{y0 + STEPS * HIGH + 14}" text-anchor="middle">{share}</text>')
    return "".join(parts)


def _between(limits: Sequence[float], at: int) -> str:
    return f"{100 * limits[at]:.0f} to {100 * limits[at + 1]:.0f} %"
