"""The seam `tracker`: where people follow runs.

A place is fed from a run directory when that is written, so what it refuses is not lost, and can be delivered later.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

from skg_bench.core.run import Run


class Place(Protocol):
    """A place to which runs are delivered, each once."""

    @property
    def name(self) -> str:
        """As in `skg-bench export NAME RUN`."""
        ...

    @property
    def reads(self) -> Literal["turns", "page"]:
        """What must be in the run directory before: its logs, or the page, which is written after all tables."""
        ...

    def open(self, run: Path) -> None:
        """What takes long and needs no run yet: import a library, make a database."""
        ...

    def deliver(self, run: Run, told: Callable[[int, int], None]) -> str:
        """Deliver what is not there yet; returns in words what is there now, and where.

        `told(n, total)`: n of all parts are there. Raises whatever its library raises, when not all is there.
        """
        ...


class Tracker(Protocol):
    """What a configuration chooses: no place, one, or several."""

    @property
    def places(self) -> Sequence[Place]:
        """Places that can be delivered to at the same time."""
        ...
