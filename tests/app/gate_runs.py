"""Runs that a gate is tried on."""

import json
from pathlib import Path
from typing import Any

BASELINE = Path(__file__).resolve().parents[2] / "data" / "gate" / "baseline.json"
PANEL = ("experiment=gate", "users=40", "weeks=2")


def changed(run: Path, **values: Any) -> Path:
    """A run whose manifest says otherwise."""
    manifest = run / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text("utf-8")) | values), "utf-8")
    return run
