"""A small run, with arms that lack a skill of each user."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import skg_bench
from skg_bench.runfolder.run import Run

NEVER = ["policy=never", "curator=none"]
WORLD = [
    "users=6", "weeks=4", "seed=10", "simulator.corpus=builtin_120", "simulator.volume_spread=0.2", "reference=never"
]  # fmt: skip
KTH = (2, 5, 9)  # skills of each user that a run is made without


def arms(**table: list[str]) -> str:
    return f"arms={json.dumps(table)}"


@pytest.fixture(scope="module")
def base(once: Callable[..., Path]) -> Run:
    table = {f"without_{k}": ["curator=without", "curator.curator=everything", f"curator.skill={k}"] for k in KTH}
    table |= {"never": NEVER, "everything": ["curator=everything"], "skg": [], "prompted": ["serving=prompted"]}
    return Run(once("lift", lambda folder: skg_bench.run([*WORLD, arms(**table), f"out={folder}"], progress=False)))
