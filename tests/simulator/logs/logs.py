"""Small logs, and the simulator that replays them."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from skg_bench.core.grid import I64
from skg_bench.core.package import CONF
from skg_bench.core.world import FALLBACK, UNREAD, Served
from skg_bench.simulator.logs.recorded import Readers, Recorded
from tests.core import samples

Rows = Sequence[Mapping[str, Any]]


def defaults(option: str = "recorded") -> dict[str, Any]:
    """What a yaml of the simulator says, with what it builds upon."""
    node: dict[str, Any] = yaml.safe_load((CONF / "simulator" / f"{option}.yaml").read_text("utf-8"))
    above = [defaults(parent) for parent in node.pop("defaults", [])]
    inherited = above[0] if above else {}
    columns = {**inherited.get("columns", {}), **node.get("columns", {})}
    for key in ("_target_", "_with_"):
        node.pop(key, None)
    return {**inherited, **node, "columns": columns}


def recorded(path: Path, option: str = "recorded", **changes: Any) -> Recorded:
    """The simulator with some parameters changed; `columns` are added to those of the yaml."""
    parameters = defaults(option)
    columns = {**parameters["columns"], **changes.pop("columns", {})}
    return Recorded(**{**parameters, "path": str(path), "columns": columns, **changes})


def write_csv(path: Path, rows: Rows) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.DictWriter(file, list(rows[0]))
        lines.writeheader()
        lines.writerows(rows)
    return path


def write_lines(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def turn(user: str, time: str, message: str, **more: Any) -> dict[str, Any]:
    return {"user": user, "time": time, "message": message, **more}


SMALL = [
    turn("ann", "2024-03-06T09:00:00", "how long does tea steep", intent="tea", answer="Four minutes.",
         satisfaction="ok"),
    turn("bob", "2024-03-04T10:00:00", "rain today?", intent="weather", answer="No.", satisfaction="miss"),
    turn("ann", "2024-03-05T08:30:00", "tea time", intent="tea", answer="Four minutes.", satisfaction=""),
    turn("ann", "2024-03-12T08:30:00", "tea, how long", intent="tea", answer="4 min", satisfaction="Partial"),
]  # fmt: skip
ALL = {"intent": "intent", "answer": "answer", "satisfaction": "satisfaction"}


# ------------------------------------------------------------------------------------------------- replayed


@dataclass(frozen=True)
class Replayed:
    """What the log says of the turns of all users, `[B, T]`; padded with -1."""

    quality: I64
    rating: I64  # -1: none
    delay: I64
    local: I64  # what the users' clocks showed


def readers(simulator: Recorded) -> Readers:
    """All users of the log before their first turn."""
    return simulator.begin(0, np.arange(simulator.record.users, dtype=np.int32), simulator.record.weeks)


def replayed(simulator: Recorded, how: int = FALLBACK, answer: int = -1) -> Replayed:
    """All turns of the log, each served in this way: by default the LLM answers."""
    state = readers(simulator)
    n = state.events.n
    columns = {name: np.full((len(n), n.max()), -1, np.int64) for name in ("quality", "rating", "delay", "local")}
    some = np.ones(len(n), np.int32)
    served = Served(
        how * some, answer * some, np.full(len(n), 0.9), np.zeros(len(n)), -some, UNREAD, (answer * some)[:, None]
    )
    draws = samples.draws(np.random.default_rng(0), len(n))
    for turn in range(n.max()):
        event, here = simulator.events(state, turn), turn < n
        state, response = simulator.respond(state, event, served, draws)
        said = response.feedback.rows(here[response.feedback.row])
        columns["quality"][here, turn], columns["local"][here, turn] = response.quality[here], event.local[here]
        columns["rating"][said.row, turn], columns["delay"][said.row, turn] = said.value, said.delay
    return Replayed(**columns)
