"""No learning: the skillbook stays as it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.batch import NO_OPERATIONS, Batch
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import Bool
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.types import Observation, Skillbooks
from skg_bench.core.world import Reaction


@dataclass(frozen=True)
class NoLearning:
    """Asks nobody and changes nothing."""

    sees_truth: ClassVar[bool] = False
    reasons: ClassVar[Sequence[str]] = ()
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def start(self, n: int) -> None:
        """No memory."""

    def offers(self, seen: Observation, state: None) -> Bool:
        """Asks nobody."""
        return np.zeros(len(seen.text), np.bool_)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: None
    ) -> tuple[None, Batch]:
        """Learns nothing."""
        return None, NO_OPERATIONS
