"""No tracker: the run directory is all there is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.runfolder.tracking import Sink


@dataclass(frozen=True)
class NoTracking:
    """Delivers nowhere; `skg-bench export mlflow|opik RUN` can do it later."""

    sinks: ClassVar[Sequence[Sink]] = ()
    reaches: ClassVar[Reaches] = REACHES_NOTHING
