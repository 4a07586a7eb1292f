"""Calendar of a run: its second 0 is a Monday at 00:00, the same one for all runs but those of a replayed log."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from skg_bench.core.grid import I64

FIRST_MONDAY = datetime(2026, 1, 5)  # without a zone: times of a run are local times
EPOCH = round(FIRST_MONDAY.replace(tzinfo=UTC).timestamp())  # the same in seconds of the Unix clock
DAY = 86_400
WEEK = 7 * DAY
Offsets = Sequence[tuple[int, int]]
"""(second of a run, offset of local time from UTC from then on [s]), the first at second 0; empty: none is known."""


def local_time(offsets: Offsets, time: I64) -> I64:
    """Time that the users' clocks show at `time`, both in seconds since the first Monday.

    Time passes evenly; clocks are turned back and put forward. Without offsets they show `time` itself.
    """
    if not offsets:
        return time
    since, offset = np.array(offsets, np.int64).T
    local: I64 = time + offset[np.maximum(np.searchsorted(since, time, side="right") - 1, 0)] - offset[0]
    return local


def offsets_of(manifest: Mapping[str, Any]) -> Offsets:
    """Offsets of the run with this manifest."""
    offsets: Offsets = (manifest.get("log") or {}).get("offsets", ())
    return offsets


def first_monday(manifest: Mapping[str, Any]) -> datetime:
    """The Monday at second 0 of the run with this manifest."""
    log = manifest.get("log")
    return datetime.fromisoformat(log["first_day"]) if log else FIRST_MONDAY
