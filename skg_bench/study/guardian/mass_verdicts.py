"""Verdicts of draws: where a claim holds, how often a difference is significant, and what moves it most."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import norm

from skg_bench.analysis.comparison.assay import Measured
from skg_bench.analysis.comparison.findings import Finding
from skg_bench.app.experiment_report import Table
from skg_bench.core.grid import Bool
from skg_bench.study.conditions import NOWHERE, condition
from skg_bench.study.guardian.drawing import Drawn
from skg_bench.study.guardian.lives import MeanDifference
from skg_bench.study.masses import CUTS, Share, cut_between

CLAIMS = ("claim", "as read here", "holds in", "95 %", "median draw (90 % of draws)", "moved most by", "verdict")
SIGNS = ("difference", "median draw (90 % of draws)", "better in", "worse in", "moved most by")
NONE = "none of the parameters alone"
_ERROR = "_error"  # ends the name of the column with a figure's standard error


@dataclass(frozen=True)
class Statement:
    """A claim, read as a condition on the figures of a draw."""

    id: str
    claimed: str
    figure: str  # column of the table whose values are told; a draw without one is left out
    holds: Callable[[pd.DataFrame], Bool]  # of each draw
    unit: str = "share"  # of the figure; a share is shown in percent, a difference of shares (`points`) in points


def figures(name: str, difference: MeanDifference) -> dict[str, float]:
    """Columns of a difference and its standard error."""
    return {name: difference.mean, name + _ERROR: difference.error}


def share(table: pd.DataFrame, statement: Statement) -> Share:
    """Share of draws in which a statement holds."""
    known = table[table[statement.figure].notna()]
    return Share(int(statement.holds(known).sum()), len(known))


def within(table: pd.DataFrame, name: str, low: float, high: float = np.inf) -> Bool:
    """Mask of draws in which a figure lies between these, the lower one included."""
    mask: Bool = ((table[name] >= low) & (table[name] < high)).to_numpy(np.bool_)
    return mask


def above(table: pd.DataFrame, name: str) -> Bool:
    """Mask of draws in which the whole 95 % interval of a difference lies above 0."""
    mask: Bool = (table[name] > 1.96 * table[name + _ERROR]).to_numpy(np.bool_)
    return mask


def below(table: pd.DataFrame, name: str) -> Bool:
    """Mask of draws in which it lies below 0."""
    mask: Bool = (table[name] < -1.96 * table[name + _ERROR]).to_numpy(np.bool_)
    return mask


def better(table: pd.DataFrame, name: str) -> Share:
    """Share of draws in which a difference is significantly above 0, of those that have it."""
    return Share(int(above(table, name).sum()), int(table[name + _ERROR].notna().sum()))


def worse(table: pd.DataFrame, name: str) -> Share:
    """Share of draws in which it is significantly below 0."""
    return Share(int(below(table, name).sum()), int(table[name + _ERROR].notna().sum()))


# ------------------------------------------------------------------------------------------------------ sensitivity


def moving(drawn: Drawn, figure: str, most: int = 3) -> list[tuple[str, float]]:
    """The parameters that move a figure most over the prior: Spearman's rank correlation with each, largest first."""
    known = drawn.table[drawn.table[figure].notna()]
    if len(known) < 3 or known[figure].nunique() < 2:
        return []
    ranks = known[drawn.parameters].rank()
    correlation = ranks.corrwith(known[figure].rank()).dropna()
    order = correlation.abs().sort_values(ascending=False, kind="stable").index[:most]
    return [(str(name), float(correlation[name])) for name in order]


def moved(drawn: Drawn, figure: str, most: int = 3) -> str:
    """The same in words. Of a figure that no parameter moves, chance names one in 5 of 100 cases."""
    draws = int(drawn.table[figure].notna().sum())
    chance = norm.isf(0.025 / max(len(drawn.parameters), 1)) / np.sqrt(max(draws - 1, 1))
    named = [f"{name} ({value:+.2f})" for name, value in moving(drawn, figure, most) if abs(value) > chance]
    return ", ".join(named) or NONE


# ------------------------------------------------------------------------------------------------------------ words


def value(number: float, unit: str) -> str:
    """A figure in its unit; a difference of shares is told from a share, lest 15 points pass for 15 % more."""
    if unit == "points":
        return f"{100 * number:+.3g} pp"
    return f"{100 * number:.3g} %" if unit == "share" else f"{number:.3g}"


def spread(table: pd.DataFrame, figure: str, unit: str) -> str:
    """The median draw, and the limits of nine draws of ten."""
    known = table[figure].dropna()
    if not len(known):
        return "-"
    low, middle, high = (value(x, unit) for x in np.quantile(known, (0.05, 0.5, 0.95)).tolist())
    return f"{middle} ({low} to {high})"


def percent(part: Share) -> str:
    """A share of the draws with its interval."""
    least, most = part.limits
    return f"{100 * part.share:.0f} % ({100 * least:.0f} to {100 * most:.0f})"


def claims_table(title: str, drawn: Drawn, statements: Sequence[Statement]) -> Table:
    """A row for each statement, with its verdict by prior mass."""
    rows = []
    for each in statements:
        part = share(drawn.table, each)
        least, most = part.limits
        rows.append(
            (each.id, each.claimed, f"{100 * part.share:.1f} %", f"{100 * least:.1f} to {100 * most:.1f} %",
             spread(drawn.table, each.figure, each.unit), moved(drawn, each.figure), part.verdict)
        )  # fmt: skip
    return Table(title, CLAIMS, rows)


def signs_table(title: str, drawn: Drawn, differences: Mapping[str, str], unit: str = "utility") -> Table:
    """A row for each difference, by name with its words: in how many draws it is significant, and which way. `unit`:
    utility, or points for differences of shares.
    """
    rows = [
        (words, spread(drawn.table, name, unit), percent(better(drawn.table, name)),
         percent(worse(drawn.table, name)), moved(drawn, name))
        for name, words in differences.items()
    ]  # fmt: skip
    return Table(title, SIGNS, rows)


def sensitivity_words(drawn: Drawn, names: Mapping[str, str]) -> str:
    """A paragraph: which unknown moves each figure most. Figures that none moves alone are counted."""
    movers = {words: moved(drawn, name) for name, words in names.items()}
    parts = [f"{words}: {text}" for words, text in movers.items() if text != NONE]
    still = len(names) - len(parts)
    parts += [f"{f'the other {still}' if parts else 'all'}: {NONE}"] if still else []
    return (
        "Which parameter moves each figure most (rank correlation over the prior; chance alone names a parameter for 5 "
        f"of 100 figures that none moves): {'; '.join(parts)}."
    )


def finding(drawn: Drawn, statement: Statement, more: str = "") -> Finding:
    """Finding that `skg-bench claims` shows of a statement; `more` is said after it."""
    part = share(drawn.table, statement)
    least, most = part.limits
    sentence = (
        f"It holds in {part.held:,} of {part.draws:,} draws from the prior; the median draw has "
        f"{spread(drawn.table, statement.figure, statement.unit)}, in brackets nine draws of ten. Moved most by "
        f"{moved(drawn, statement.figure)}."
    )
    where = ""
    if part.verdict == "attainable":
        known = drawn.table[drawn.table[statement.figure].notna()]
        limits = condition(known, drawn.parameters, statement.holds(known))
        where, sentence = (str(limits), sentence) if limits else ("", f"{sentence} {NOWHERE}")
    if part.verdict == "not testable here":
        cut = cut_between(least, most) if any(least < c <= most for c in CUTS) else CUTS[0]
        sentence += f" So many draws leave open whether that is {100 * cut:.0f} % of the prior."
    words = f"{sentence} {more}".strip()
    measured = Measured(100 * part.share, 100 * least, 100 * most, "% of the prior") if part.draws else "no draw"
    return Finding(statement.id, statement.claimed, measured, part.verdict, words, drawn.evidence, where=where)
