"""How well must a reader tell places apart to choose better than the rule? Draws and readers together, in bins."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from experiments.llm_or_rule.measure import READING
from skg_bench.core.grid import F64

LIMITS = (0.5, 0.6, 0.75, 0.9, 0.99, 1.0)  # of how likely the one that was learned here is preferred


@dataclass(frozen=True)
class ReadingBin:
    """Readers who tell places apart about as well, held against the rule."""

    low: float
    high: float
    less: F64  # [n] utility of each reader less that of the rule, in its draw
    error: F64  # [n] its standard errors

    @property
    def name(self) -> str:
        """Bounds of the bin, from and to."""
        return f"{100 * self.low:.0f} to {100 * self.high:.0f} %"

    @property
    def mean(self) -> float:
        """Mean over readers; NaN without any."""
        return float(self.less.mean()) if len(self.less) else np.nan

    def share(self, sign: float) -> float:
        """Share of readers who are significantly better (1) or worse (-1) than the rule."""
        return float((sign * self.less > 1.96 * self.error).mean()) if len(self.less) else np.nan


def bins(table: pd.DataFrame) -> list[ReadingBin]:
    """Bins of readers, from those who do not read places to those who see nothing else."""
    prefers, less, error = (
        np.concatenate([table[column.format(name)].to_numpy() for name in READING])
        for column in ("prefers {}", "{} - rule", "{} - rule_error")
    )
    index = np.clip(np.searchsorted(LIMITS, prefers, side="right") - 1, 0, len(LIMITS) - 2)
    return [
        ReadingBin(low, high, less[index == i], error[index == i]) for i, (low, high) in enumerate(pairwise(LIMITS))
    ]


def break_even(readers: Sequence[ReadingBin]) -> str:
    """The first bin whose readers are ahead of the rule on average, in words."""
    ahead = [reader.name for reader in readers if reader.mean > 0]
    return ahead[0] if ahead else "none: the rule is ahead of all of them on average"
