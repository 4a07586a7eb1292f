"""Loops and signs against reactions alone: over the prior, in a world made for the later loop, and as maps."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from experiments.two_loops.measure import REFERENCE
from experiments.two_loops.tables import MAPPED, STEPS, cuts, mappable, mapped
from skg_bench.study import spreads

FILES = {
    "two_loops.svg": "Loops and signs against reactions alone, over the prior",
    "two_loops_made.svg": "The same in a world made for the later loop",
    "two_loops_map.svg": "The same by how many answer, and how many of them are mistaken",
}
ROWS = {
    "both": "both, one counter", "replace": "both, the later in place of the first", "separate": "both, kept apart",
    "later": "later answers alone", "neutral_later": "later answers alone, neutral",
    "heeded_later": "later answers alone, of advice followed", "wrong_later": "later answers alone, turned round",
    "later_turned": "both, later answers turned round", "wrong_both": "both, all signs turned round",
    "coin": "a coin's ratings", "frozen": "nothing learned",
}  # fmt: skip
CELL, HIGH, LEFT, TOP, FULL = 112, 36, 74, 100, 0.02  # pixels; FULL: utility at which a colour is full
HOW = (
    "Mean utility a trigger over the draws of a cell (so many), less reactions alone. Down: answers that are mistaken."
)
STYLE = """
.worse { fill: #b23c28; } .better { fill: #0b5394; }
@media (prefers-color-scheme: dark) { .worse { fill: #eb785f; } .better { fill: #78b4f0; } }
"""


def files(table: pd.DataFrame, made: Mapping[str, float]) -> Mapping[str, str]:
    """All figures, by name."""
    how = "Utility a trigger, less that of learning from reactions alone."
    drawn = {words: _spread(table[f"{arm} - {REFERENCE}"]) for arm, words in ROWS.items()}
    world = {words: _interval(made, f"{arm} - {REFERENCE}") for arm, words in ROWS.items()}
    made_for = (
        "What persuades is not what helps, four of five users say what was right, hardly anybody errs. Mean, 95 %."
    )
    first, second, third = FILES
    return {
        first: spreads.strips(
            "Does a second loop help?", (how, f"Median and nine of ten of {len(table)} draws from the prior."), drawn
        ),
        second: spreads.strips("In a world made for the later loop", (how, made_for), world),
        third: maps(table),
    }


def _spread(values: "pd.Series[float]") -> spreads.Spread:
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95)).tolist()
    return low, middle, high


def _interval(row: Mapping[str, float], name: str) -> spreads.Spread:
    mean, error = row[name], row[f"{name}_error"]
    return mean - 1.96 * error, mean, mean + 1.96 * error


def maps(table: pd.DataFrame) -> str:
    """Both maps beside one another; without cells where a user set what they are made by."""
    side = LEFT + CELL * STEPS
    width, height = 2 * side + 56, TOP + HIGH * STEPS + 54
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<style>{spreads.SPREAD_STYLE}{STYLE}</style><rect class="paper" width="{width}" height="{height}" rx="6"/>',
        '<text class="title" x="16" y="26">Where does the later loop help?</text>',
        f'<text x="16" y="44">{HOW}</text>',
    ]
    for place, (name, words) in enumerate(MAPPED.items() if mappable(table) else ()):
        parts.append(_map(table, name, words, 16 + place * (side + 24)))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _map(table: pd.DataFrame, name: str, words: str, left: float) -> str:
    parts = [f'<text class="name" x="{left}" y="{TOP - 16}" font-weight="600">{words[0].upper()}{words[1:]}</text>']
    for row, cells in enumerate(mapped(table, name)):
        y, noise = TOP + row * HIGH, _between(cuts(table["mistaken"]), row)
        parts.append(f'<text x="{left + LEFT - 8}" y="{y + 22}" text-anchor="end">{noise}</text>')
        for column, (mean, n) in enumerate(cells):
            if n:
                x, size = left + LEFT + column * CELL, f'width="{CELL - 2}" height="{HIGH - 2}"'
                css, opacity = ("better" if mean > 0 else "worse"), 0.8 * min(abs(mean) / FULL, 1.0)
                parts.append(
                    f'<rect class="{css}" fill-opacity="{opacity:.2f}" x="{x}" y="{y}" {size}/>'
                    f'<text class="name" x="{x + CELL / 2}" y="{y + 22}" text-anchor="middle">{mean:+.3f} ({n})</text>'
                )
    for column in range(STEPS):
        x, share = left + LEFT + (column + 0.5) * CELL, _between(cuts(table["answered"]), column)
        parts.append(f'<text x="{x}" y="{TOP + STEPS * HIGH + 16}" text-anchor="middle">{share}</text>')
    middle = left + LEFT + STEPS * CELL / 2
    parts.append(f'<text x="{middle}" y="{TOP + STEPS * HIGH + 34}" text-anchor="middle">questions answered</text>')
    return "\n".join(parts)


def _between(limits: Sequence[float], at: int) -> str:
    return f"{100 * limits[at]:.0f} to {100 * limits[at + 1]:.0f} %"
