"""`deliveries.jsonl` of a run folder: each tracker or store, and address, to which a run was sent, noted before
anything is sent.

`forget` reads it, as an export may name a place that neither the manifest nor the environment of a later command does.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import bytes_of, json_of
from skg_bench.core.shapes import shaped
from skg_bench.core.temporary import private

DELIVERIES_FILE = "deliveries.jsonl"
STORE = "store"  # of skillbooks, in the place of a tracker
_LARGEST = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class NotedDelivery:
    """A line of the file."""

    tracker: str  # or STORE
    address: str  # without user, password, query and fragment


def note_delivery(folder: Path, delivery: NotedDelivery) -> None:
    """Add a line, unless it is there; it is on disk before this returns.

    Raises UsageError for a file that cannot be read, and OSError.
    """
    file = folder / DELIVERIES_FILE
    line = json.dumps({"tracker": delivery.tracker, "address": delivery.address}).encode()
    content = bytes_of(file, _LARGEST) if file.exists() else b""
    if line in content.splitlines():
        return
    torn = b"" if not content or content.endswith(b"\n") else b"\n"  # by a full disk
    with open(file, "ab", opener=private) as lines:
        lines.write(torn + line + b"\n")  # at once: two trackers of a run write beside one another
        lines.flush()
        os.fsync(lines.fileno())


def noted_deliveries(folder: Path) -> tuple[list[NotedDelivery], list[str]]:
    """Deliveries that were begun, each once, and an error message for each line that `note_delivery` does not write.

    Both are empty where there is no file. Raises UsageError for a file that cannot be read.
    """
    file = folder / DELIVERIES_FILE
    if not file.exists():
        return [], []
    deliveries, faults = dict[NotedDelivery, None](), list[str]()
    for n, line in enumerate(bytes_of(file, _LARGEST).splitlines(), 1):
        try:
            if line:
                deliveries[_delivery(line, f"{file}, line {n}")] = None
        except UsageError as error:
            faults.append(str(error))
    return list(deliveries), faults


def _delivery(line: bytes, where: str) -> NotedDelivery:
    hint = "it names a tracker and an address: mend the line, or remove it if nothing of the run is left there"
    try:
        delivery: NotedDelivery = shaped(NotedDelivery, json_of(line, where), where)
    except (UsageError, ValueError) as error:
        raise UsageError(f"{error}; {hint}") from error
    return delivery
