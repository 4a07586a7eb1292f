"""No third signal: the weights of the others are renormalised."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from skg_bench.core.grid import I64
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.types import Scorer, TrainingRows


@dataclass(frozen=True)
class Identity:
    """Gives no score."""

    window: ClassVar[int] = 0
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def start(self, n_users: int, features: Sequence[str]) -> Scorer | None:
        """None: the signal is absent."""
        return None

    def fit(self, scorer: Scorer, rows: I64, training: TrainingRows) -> Scorer:
        """Never called, as there is no scorer."""
        return scorer
