"""Logs of real turns, as a simulation replays them, and what they say of themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import pyarrow as pa

from skg_bench.core.calendar import Offsets
from skg_bench.core.domain import Domain
from skg_bench.core.grid import I32
from skg_bench.core.world import World

LOGS_DOMAIN = Domain("logs", recorded=True)
"""Domain of worlds that replay a log: they have a `record`, and more (Replay)."""


@dataclass(frozen=True, slots=True)
class Record:
    """A log in words and numbers, as `log` of the manifest."""

    file: str  # name of the file or folder
    pseudo_users: bool  # each dialogue, or something else that is no person, counts as a user
    users: int
    turns: int
    rated: int  # turns with a rating
    weeks: int
    first_day: str  # the Monday that became the first of the run, ISO
    knows: Sequence[str]  # what the log has beside user, time and message
    redacted: bool
    assumes: Mapping[str, str]  # what a log cannot say and the run takes for granted
    read: int  # turns and broken rows that were read
    left_out: Mapping[str, Mapping[str, Any]]  # why -> {rows: how many, first: where the first of them stand}
    offsets: Offsets  # of its times, each from the first turn on that has it; empty where the log says none


def left_out(counts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Rows that are no turns or messages, by reason, and where the first of them stand. `counts`: see Record."""
    return [
        f"{entry['rows']:,} with {why} (row{'s' if entry['rows'] > 1 else ''} {', '.join(map(str, entry['first']))}"
        + (", ...)" if entry["rows"] > len(entry["first"]) else ")")
        for why, entry in counts.items()
    ]


class Replay(Protocol):
    """Methods that a simulator has beside its Protocol if it replays a log: nobody knows which answers were right."""

    @property
    def record(self) -> Record:
        """The log itself."""
        ...

    def show(self, texts: Sequence[str]) -> Sequence[str]:
        """Texts as logs and pages show them; hashes where they are redacted."""
        ...

    def logged(self, user: I32, event: I32, stored: I32) -> Mapping[str, pa.Array]:
        """Columns REPLAYED_COLUMNS of the turn log for events `event` of users `user`, `[N]` each.

        `stored`: the event of the same user whose answer was returned, -1: none was.
        """
        ...


@runtime_checkable
class HasRecord(Protocol):
    """A world whose messages people wrote: it reads them from a table, with as many users and weeks as that has."""

    @property
    def record(self) -> Record:
        """The table in words and numbers."""
        ...


@runtime_checkable
class ReadsLog(Protocol):
    """A world that reads a log, and can say before what that takes."""

    @property
    def reading(self) -> str | None:
        """Rows, expected minutes and memory, in words; None: hardly any, or it is not known before it is read.

        Raises UsageError for a file that cannot be opened.
        """
        ...


def replay_of(simulator: World[Any]) -> Replay | None:
    """The simulator, if it replays a log, as its domain says."""
    return cast("Replay", simulator) if simulator.domain.name == LOGS_DOMAIN.name else None
