"""Tables of the draws: the grid of signs, maps, the two by two, and how many users an answer takes."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from experiments.two_loops.measure import DECISIONS, REFERENCE
from skg_bench.app.experiment_report import Table
from skg_bench.study.guardian.mass_verdicts import better, spread, worse

GRID = {  # loops and merge, and its arms by signs
    "immediate": {"pause": "immediate", "neutral": "immediate", "wrong": "wrong_immediate"},
    "later, sum or replace": {"pause": "later", "neutral": "neutral_later", "wrong": "wrong_later"},
    "later, separate": {
        "pause": "later_separate", "neutral": "neutral_later_separate", "wrong": "wrong_later_separate"
    },
    "both, sum": {"pause": "both", "neutral": "neutral_both", "wrong": "wrong_both"},
    "both, replace": {"pause": "replace", "neutral": "neutral_replace", "wrong": "wrong_replace"},
    "both, separate": {"pause": "separate", "neutral": "neutral_separate", "wrong": "wrong_separate"},
}  # fmt: skip
MAPPED = {
    "both - immediate": "both loops less the immediate one",
    "later - immediate": "the later loop less the immediate one",
}
STEPS = 3  # rows and columns of a map


def grid(table: pd.DataFrame) -> Table:
    """Every cell less the immediate loop alone."""

    def cell(arm: str) -> str:
        if arm == REFERENCE:
            return "0"
        name = f"{arm} - {REFERENCE}"
        shares = f"{100 * better(table, name).share:.0f} % / {100 * worse(table, name).share:.0f} %"
        return f"{table[name].median():+.4f} ({shares})"

    rows = [(loops, *(cell(arm) for arm in arms.values())) for loops, arms in GRID.items()]
    return Table(
        "Utility less that of the immediate loop: median draw (better / worse in)", ("loops", *GRID["immediate"]), rows
    )


def acceptances(table: pd.DataFrame, arms: Sequence[str]) -> Table:
    """Utility with acceptance beside it."""
    rows = [
        (arm, spread(table, f"utility {arm}", "utility"), spread(table, f"acceptance {arm}", "share")) for arm in arms
    ]
    return Table(
        "Utility a trigger, and acceptance beside it", ("arm", "utility: median draw (90 %)", "acceptance"), rows
    )


def cuts(values: "pd.Series[float]") -> list[float]:
    """Limits of a map's rows or columns, as wide as one another."""
    return [float(x) for x in np.linspace(values.min(), values.max(), STEPS + 1)]


def mapped(table: pd.DataFrame, name: str) -> list[list[tuple[float, int]]]:
    """Mean of a difference and number of draws, by mistaken (rows) and answered (columns)."""
    at = [np.clip(np.searchsorted(cuts(table[c])[1:-1], table[c]), 0, STEPS - 1) for c in ("mistaken", "answered")]
    cells = []
    for row in range(STEPS):
        here = [table[name][(at[0] == row) & (at[1] == column)] for column in range(STEPS)]
        cells.append([(float(values.mean()), len(values)) for values in here])
    return cells


def mappable(table: pd.DataFrame) -> bool:
    """Are both drawn, and often enough? A user may have set one of them."""
    return min(table[column].nunique() for column in ("mistaken", "answered")) >= STEPS


def maps(table: pd.DataFrame) -> list[Table]:
    """Maps by share answered and noise."""
    if not mappable(table):
        return []
    across, down = cuts(table["answered"]), cuts(table["mistaken"])
    headings = (
        "mistaken",
        *(f"answered {100 * a:.0f} to {100 * b:.0f} %" for a, b in pairwise(across)),
    )
    tables = []
    for name, words in MAPPED.items():
        rows = [
            (
                f"{100 * down[i]:.0f} to {100 * down[i + 1]:.0f} %",
                *(f"{mean:+.4f} ({n})" if n else "-" for mean, n in cells),
            )
            for i, cells in enumerate(mapped(table, name))
        ]
        tables.append(Table(f"Map: {words}, mean utility (draws)", headings, rows))
    return tables


def decisions(table: pd.DataFrame) -> Table:
    """The two by two, with the truth beside it."""
    rows = [
        (
            name,
            *(
                spread(table, f"{what} {name}", unit)
                for what, unit in (("share", "share"), ("wanted", "share"), ("utility of", "utility"))
            ),
        )
        for name in DECISIONS
    ]
    return Table(
        "What was done and what was said of it later, with the truth (both loops; median draw, 90 %)",
        ("cell", "share of all four", "really wanted", "utility"),
        rows,
    )


def made_table(row: Mapping[str, float], arms: Sequence[str]) -> Table:
    """All arms in the world that was made for the later loop."""
    rows = []
    for arm in arms:
        name = f"{arm} - {REFERENCE}"
        less = "0" if arm == REFERENCE else f"{row[name]:+.4f} +- {row[name + '_error']:.4f}"
        rows.append((arm, f"{row[f'utility {arm}']:+.4f}", less, f"{100 * row[f'acceptance {arm}']:.0f} %"))
    less = "less the immediate loop (+- standard error)"
    return Table("The world made for the later loop", ("arm", "utility", less, "acceptance"), rows)


def users_needed(table: pd.DataFrame, name: str, users: int) -> float:
    """Users for 80 % power at the median effect, paired, at 95 %."""
    spread_of_users = float(table[f"{name}_error"].median()) * float(np.sqrt(users))
    return float((2.8 * spread_of_users / float(table[name].median())) ** 2)
