"""Small runs of the world of facts, and of that of answers beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skg_bench.app.compose import Composed, compose
from skg_bench.app.launch import prepare
from skg_bench.core.world import FALLBACK, PROMPTED, UNREAD, Event, Served
from skg_bench.engine import execute as engine
from skg_bench.engine.scene import draws_of
from skg_bench.launcher.local import Local
from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from skg_bench.simulator.facts.world import FactUsers, FactUsersState
from tests.runs import save

OLD = ("simulator.known_by=world", "simulator.persists_by_type=0", "simulator.persists_by_wording=0")
HABITS = {
    "messages_per_day": 6, "volume_spread": 0.2, "active_low": 1, "rated_share": 0.6, "late_share": 0.3,
    "late_hours": 6, "concentration": 3, "accept": 0.9,
    "accept_one_off": 0.5,
}  # fmt: skip
SHARED = ("embedder=hashing", "curator.unused_days=2", "policy.threshold=0.4", "refit_every=10", "seed=7", "weeks=1")


def habits(prefix: str, **more: float) -> list[str]:
    """Overrides of users who ask much."""
    return [f"{prefix}.{name}={value}" for name, value in {**HABITS, **more}.items()]


def world(*overrides: str) -> FactUsers:
    """The world with these overrides."""
    made = prepare(compose(["simulator=facts", "users=1", *overrides])).plan.simulator
    assert isinstance(made, FactUsers)
    return made


def carried_out(out: Path, arms: Mapping[str, Sequence[str]], *overrides: str) -> Run:
    """A run of these arms."""
    table = ", ".join(f"{name}: [{', '.join(changes)}]" for name, changes in arms.items())
    composed = compose([*overrides, f"arms={{{table}}}", f"reference={next(iter(arms))}"])
    _manifest(out, composed)
    users = composed.root["users"]
    plan = prepare(composed).plan
    engine.execute(plan, out, cohort=users, workers=1, launcher=Local(), progress=lambda _done, _total: None)
    return Run(out)


def _manifest(out: Path, composed: Composed) -> None:
    out.mkdir(parents=True, exist_ok=True)
    plan = prepare(composed).plan
    known: dict[str, Any] = {
        "schema": schema.SCHEMA_VERSION, "arms": list(composed.arms), "config": composed.root,
        "compositions": composed.arms, "domain": plan.simulator.domain.plain(),
    }  # fmt: skip
    save(out, known | {key: composed.root[key] for key in ("question", "seed", "users", "weeks")})


def served(n: int, *, prompted: np.ndarray | None = None, ability: float = 0.9) -> Served:
    """Models that answer by themselves, or with answers `prompted` (handles `[n]`) in their prompts."""
    none = np.full(n, -1, np.int32)
    how = np.full(n, FALLBACK if prompted is None else PROMPTED, np.int32)
    able = np.full(n, ability)
    handles = none if prompted is None else prompted
    return Served(how, handles, able, able * 0.8, none, UNREAD, handles[:, None])


def answered(made: FactUsers, state: FactUsersState, event: Event, given: Served, keys: np.ndarray) -> Any:
    """What comes of answers."""
    return made.respond(state, event, given, draws_of(keys, event.number))[1]
