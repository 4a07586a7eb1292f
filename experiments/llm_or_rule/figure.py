"""Choosers against the rule, over the prior, and readers by how well they tell places apart."""

import pandas as pd

from experiments.guardian import ranges
from experiments.guardian.ranges import Range, RangePanel
from experiments.llm_or_rule.measure import CHOOSERS
from experiments.llm_or_rule.reading import bins


def svg(table: pd.DataFrame) -> str:
    """The file."""
    choosers = [Range.over(words, table[f"{name} - rule"]) for name, words in CHOOSERS.items()]
    readers = [Range.over(reader.name, pd.Series(reader.less, dtype=float)) for reader in bins(table)]
    lines = (
        "Utility a trigger, less that of the rule (what was learned in such a place first), on the same books.",
        f"Median and nine of ten of {len(table)} draws from the prior. Filled: the line does not reach 0.",
    )
    panels = [
        RangePanel("Who chooses", choosers),
        RangePanel("Readers, by how often they prefer what was learned in such a place", readers),
    ]
    return ranges.svg("A model that reads the prompt, or a rule?", lines, panels)
