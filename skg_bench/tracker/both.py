"""MLflow and Opik, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.runfolder.tracking import Sink, Tracker


@dataclass(frozen=True)
class Both:
    """Delivers to MLflow and to Opik at the same time; neither waits for the other."""

    mlflow: Tracker
    opik: Tracker
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    @property
    def sinks(self) -> Sequence[Sink]:
        """Sinks of one, then those of the other."""
        return (*self.mlflow.sinks, *self.opik.sinks)
