"""Choosers against the rule, over the prior, and readers by how well they tell places apart."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from experiments.llm_or_rule.measure import CHOOSERS
from experiments.llm_or_rule.reading import bins
from skg_bench.core.grid import F64
from skg_bench.study import spreads

FILES = {
    "llm_or_rule.svg": "Choosers against the rule",
    "llm_or_rule_places.svg": "Readers against the rule, by how well they tell places apart",
}


def files(table: pd.DataFrame) -> Mapping[str, str]:
    """All figures, by name."""
    oracle = table["oracle - rule"].median()
    how = (
        "Utility a trigger, less that of the rule (what was learned in such a place first), on the same books.",
        f"Median and nine of ten of {len(table)} draws from the prior. Left out: the best of the book, {oracle:+.2f}.",
    )
    choosers = {
        words: _spread(table[f"{name} - rule"].to_numpy()) for name, words in CHOOSERS.items() if name != "oracle"
    }  # the oracle is so far ahead that the others would be one dot
    readers = {
        f"{reader.name} ({len(reader.less)})": _spread(reader.less) for reader in bins(table) if len(reader.less)
    }
    preference = (
        "By how likely a reader prefers, of two that are else alike, what was learned in such a place (readers)."
    )
    first, second = FILES
    return {
        first: spreads.strips("Who chooses best from a given book?", how, choosers),
        second: spreads.strips("How well must a reader tell places apart?", (how[0], preference), readers),
    }


def _spread(values: F64) -> spreads.Spread:
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95)).tolist()
    return low, middle, high
