"""Figures of two loops in a draw: utility and acceptance of each arm, what counters are worth, and who was right."""

from collections.abc import Mapping

import numpy as np

from experiments.two_loops.counters import CONCORDANCE, concordance, strategy_worths
from skg_bench.core.grid import F64, Bool
from skg_bench.simulator.advice.levels import ACCEPTED, OVERRIDDEN, REGRET_IT, WAIT, WORTH_IT
from skg_bench.study.guardian.lives import Draw, Life, Lives, life_means, over_users, paired_lives
from skg_bench.study.guardian.mass_verdicts import figures

REFERENCE = "immediate"
DIFFERENCES = {  # arm less another one, both in the same world, and what this tells
    ("both", "later"): "both loops, against the later one alone",
    ("later", "immediate"): "the later loop in place of the first",
    ("later", "coin"): "what the later loop says, alone: against a coin's ratings",
    ("later", "wrong_later"): "the same, against its signs turned round",
    ("heeded_later", "coin"): "the same where it rates advice that was followed, against a coin's ratings",
    ("both", "later_turned"): "what the later loop says, in one counter: both, against its signs turned round",
    ("later_turned", "immediate"): "a second loop whose signs are turned round",
    ("both", "coin"): "ratings, against a coin's",
    ("coin", "frozen"): "new texts whose ratings are a coin's, against the seed book",
}
DECISIONS = {
    "listened, worth it": ((ACCEPTED, WAIT), WORTH_IT),
    "listened, regretted": ((ACCEPTED, WAIT), REGRET_IT),
    "overridden, worth it": ((OVERRIDDEN,), WORTH_IT),
    "overridden, regretted": ((OVERRIDDEN,), REGRET_IT),
}


def utility(life: Life) -> F64:
    """Utility of a turn."""
    return life.utility


def measure(_draw: Draw, lives: Lives) -> Mapping[str, float]:
    """A row of the table: of each arm the means over users, of arms in pairs the differences with standard errors."""
    row: dict[str, float] = {}
    for name, life in lives.items():
        row[f"utility {name}"] = over_users(life_means(life, life.utility)).mean
        row[f"acceptance {name}"] = acceptance(life)
        if name != REFERENCE:
            row |= figures(f"{name} - {REFERENCE}", paired_lives(life, lives[REFERENCE], utility))
    for name, reference in DIFFERENCES:
        row |= figures(f"{name} - {reference}", paired_lives(lives[name], lives[reference], utility))
    worths = strategy_worths(lives)
    for name in CONCORDANCE:
        row |= figures(f"concordance {name}", concordance(lives[name], worths))
    return row | decisions(lives["both"])


def acceptance(life: Life) -> float:
    """Mean over users of the share of what was said that they listened to."""
    return over_users(life_means(life, life.listened.astype(np.float64), life.spoken)).mean


def decisions(life: Life) -> dict[str, float]:
    """The two by two of what was done and what was said of it later: each cell's share, and the truth beside it."""
    cells = {name: cell(life, outcomes, word) for name, (outcomes, word) in DECISIONS.items()}
    total = sum(int(mask.sum()) for mask in cells.values())
    row: dict[str, float] = {}
    for name, mask in cells.items():
        n = int(mask.sum())
        row[f"share {name}"] = n / total if total else np.nan
        row[f"wanted {name}"] = float(life.wanted[mask].mean()) if n else np.nan
        row[f"utility of {name}"] = float(life.utility[mask].mean()) if n else np.nan
    regretted = cells["listened, regretted"]
    row["harmed listened, regretted"] = float((life.utility[regretted] < 0).mean()) if regretted.any() else np.nan
    row["unwanted overridden, regretted"] = 1.0 - row["wanted overridden, regretted"]
    return row


def cell(life: Life, outcomes: tuple[int, ...], word: int) -> Bool:
    """Turns that ended so, and of which this was said later."""
    mask: Bool = life.there & np.isin(life.outcome, outcomes) & (life.satisfaction == word)
    return mask
