"""Small logs, and the simulator that replays them."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from skg_bench.core.paths import CONF
from skg_bench.simulator.recorded import Recorded

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
