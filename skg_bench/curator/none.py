"""No learning: the skillbook stays as it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.batch import NOTHING, Batch
from skg_bench.core.grid import I32, Bool
from skg_bench.core.types import KnownFeedback, Observation, Skillbooks


@dataclass(frozen=True)
class NoLearning:
    """Asks nobody and changes nothing."""

    sees_truth: ClassVar[bool] = False
    reasons: ClassVar[Sequence[str]] = ()

    def offers(self, seen: Observation) -> Bool:
        """Nobody."""
        return np.zeros(len(seen.text), np.bool_)

    def curate(self, seen: Observation, offer: I32, name: I32, feedback: KnownFeedback, books: Skillbooks) -> Batch:
        """Nothing."""
        return NOTHING

    def learns(self, turn: int) -> bool:
        """The scorer does not learn either."""
        return False
