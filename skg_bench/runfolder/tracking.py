"""The seam `tracker`: where people follow runs.

A sink is fed from a run directory when that is written, so what it refuses is not lost, and can be delivered later.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

from skg_bench.runfolder.run import Run

Stage = Literal["turns", "tables", "page"]  # what a run directory has: its logs, then its tables, then its page


class Sink(Protocol):
    """A destination to which runs are delivered, each once."""

    @property
    def name(self) -> str:
        """As in `skg-bench export NAME RUN`."""
        ...

    @property
    def reads(self) -> Sequence[Stage]:
        """Times at which to deliver what is there; all is there at the last of them."""
        ...

    @property
    def parameter(self) -> str:
        """Name of its parameter that holds an address, such as `url`. An export never takes that from a manifest."""
        ...

    @property
    def variables(self) -> Sequence[str]:
        """Variables of the environment that its process sees, by name, or by a beginning that ends with `_`."""
        ...

    def address(self, run: Path) -> str | None:
        """Address for the run directory `run`: as configured, else as the environment says, else beside the run."""
        ...

    def local(self, run: Path) -> bool:
        """Is it a file of this machine, which opens without a server? Then a run waits until it is open."""
        ...

    def open(self, run: Path) -> None:
        """Does what takes long and needs no run yet: imports a library, makes a database. No server is asked."""
        ...

    def deliver(self, run: Run, progress: Callable[[int, int], None]) -> str:
        """Deliver what is not there yet of what the run has; returns in words what is there now, and where.

        `progress(n, total)`: n of all parts are there. Raises whatever its library raises, when it could not deliver.
        """
        ...

    def forget(self, run: Run, user: int, noted: str | None = None) -> str:
        """Remove what is there of a user of the run; returns in words what was removed.

        `noted`: an address that only a file of the run names, in place of the sink's own. It is sent no keys.
        Raises UsageError for one that cannot be asked so, and whatever its library raises, when it could not do so.
        """
        ...


class Tracker(Protocol):
    """Choice of a configuration: no sink, one, or several."""

    @property
    def sinks(self) -> Sequence[Sink]:
        """Sinks that can be delivered to at the same time."""
        ...
