"""The default users, and a corpus of four intents."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from skg_bench.core.paths import CONF
from skg_bench.core.world import Events
from skg_bench.simulator.assistant import Assistant
from tests.simulator.test_bad_corpora import write

HOUR, DAY, WEEK = 3600, 86_400, 7 * 86_400


def assistant(**changes: Any) -> Assistant:
    """The simulator of `conf/simulator/assistant.yaml`."""
    node = yaml.safe_load((CONF / "simulator" / "assistant.yaml").read_text("utf-8"))
    assert node.pop("_target_") == "skg_bench.simulator.assistant.Assistant"
    return replace(Assistant(**node), **changes)


@lru_cache(maxsize=4)
def events(users: int, weeks: int, seed: int = 0) -> Events:
    """Events of the default users."""
    return assistant().population(seed, np.arange(users, dtype=np.int32), weeks)


def real(some: Events) -> np.ndarray:
    """Which places of `[B, T]` hold an event."""
    return np.arange(some.time.shape[1])[None] < some.n[:, None]


def small_corpus(folder: Path) -> str:
    """Types 0 stable, 1 and 2 slot values, 3 and 4 stale for three hours, 5 stale for ever shorter."""
    plain: dict[str, Any] = {"hours": {}, "weekdays": "any", "follows": [], "answer": "So."}
    slot = {"slot": {"city": ["Paris", "Osaka"]}}
    return write(
        folder,
        plain | {"intent": "egg", "kind": "stable", "wordings": ["egg time", "eggs?", "boil egg"]},
        plain | slot | {"intent": "zone", "kind": "slot", "wordings": ["time in {city}", "{city} time"]},
        plain | slot | {"intent": "rain", "kind": "stale", "ttl_hours": 3, "wordings": ["rain in {city}"]},
        plain | {"intent": "news", "kind": "stale", "ttl_hours": 0.5, "wordings": ["news", "headlines"]},
        one_offs="a penny\nmy cockatiel\na limerick\n",
    )
