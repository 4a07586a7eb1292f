"""No tracker: the run directory is all there is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from skg_bench.core.tracking import Place


@dataclass(frozen=True)
class Nothing:
    """Delivers nowhere; `skg-bench export mlflow|opik RUN` can do it later."""

    places: ClassVar[Sequence[Place]] = ()
