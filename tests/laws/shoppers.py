"""A small run of the Guardian's world for the laws: arms that choose, hear, learn and stop in every way.

Runnable (`python -m tests.laws.shoppers OUT USERS COHORT WORKERS [ARM ...]`), so that a test can change the environment
of a process, or kill it.
"""

import json
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

from skg_bench.app.compose import Composed, compose
from skg_bench.app.launch import prepare
from skg_bench.engine import execute as engine
from skg_bench.engine.plan import Plan
from skg_bench.launcher.local import Local
from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from tests.runs import save

SLOW = ["jobs=model_calls", "jobs.call_seconds=8", "jobs.spread=1", "jobs.timeout_seconds=60"]
FORK = 12  # the turn at which arms fork from live, or freeze
ARMS = {
    "live": [],
    "pro": ["seeds=pro"],
    "bare": ["seeds=null"],
    "fresh": ["mood=fresh"],
    "immediate": ["signs.loops=[immediate]"],
    "later": ["signs.loops=[retrospective]"],
    "neutral": ["signs=neutral"],
    "wrong": ["signs=wrong"],
    "replace": ["signs.merge=replace"],
    "separate": ["signs.merge=separate"],
    "thompson": ["policy=thompson"],
    "asked": ["policy=llm_chooser"],
    "uniform": ["policy=uniform"],
    "nearest": ["router=maxsim", "policy=threshold", "policy.threshold=0.3"],
    "frozen": ["curator=none"],
    "frozen_book": ["freeze=book", f"freeze_at={FORK}"],
    "sham": ["curator=sham", "curator.curator=reflective", "curator.tags=coin", "curator.says=any"],
    "population": ["curator=population", "seeds=null"],
    "model": ["curator=reflecting"],
    "never": ["policy=never", "curator=none"],
    "oracle": ["router=oracle", "policy=always"],
    "slow": SLOW,
    "replayed": [*SLOW, "jobs.conflict=replay"],
    "blind": [*SLOW, "jobs.conflict=blind", "signs.merge=replace"],
    "serial": [*SLOW, "jobs.conflict=serial"],
    "as_before": [f"fork=live@{FORK}"],
    "slow_on": [f"fork=slow@{FORK}", *SLOW],
    "stopped": [f"fork=live@{FORK}", "curator=none"],
    "donor": [f"fork=live@{FORK}", "book=donor", "curator=none"],
    "hindsight": [f"fork=live@{FORK}", "book=hindsight", "curator=none"],
}  # fmt: skip
ALL = tuple(ARMS)
BLIND = tuple(arm for arm in ALL if arm != "oracle" and not "".join(ARMS[arm]).startswith("fork="))
WORLD = (
    "experiment=guardian",
    "contrasts=[]",
    "weeks=4",
    "simulator.triggers_per_week=6",
    "simulator.answered=0.8",
    "simulator.volume_spread=0.1",
    "seed=12",
)


@cache
def composition(users: int, arms: tuple[str, ...] = ALL) -> Composed:
    """The world with these arms: taken from all, which are composed once, but for a process that runs a few alone."""
    if (users, arms) != (1, ALL) and __name__ != "__main__":
        every = composition(1)
        root = {**every.root, "users": users, "arms": {arm: ARMS[arm] for arm in arms}, "reference": arms[0]}
        return replace(every, root=root, arms={arm: every.arms[arm] for arm in arms})
    table = json.dumps({name: ARMS[name] for name in arms})
    return compose([*WORLD, f"users={users}", f"arms={table}", f"reference={arms[0]}"])


def plan(users: int, arms: tuple[str, ...] = ALL) -> Plan:
    """Its components."""
    return prepare(composition(users, arms)).plan


def run(out: Path, users: int, cohort: int, workers: int = 1, arms: tuple[str, ...] = ALL) -> Run:
    """Simulate, or go on."""
    return carry_out(plan(users, arms), out, users, cohort, workers)


def carry_out(
    made: Plan, out: Path, users: int, cohort: int, workers: int = 1, composed: Composed | None = None
) -> Run:
    """Simulate a plan, or go on; `composed`: what it is made of, None: arms of this module."""
    arms = tuple(arm.name for arm in made.arms)
    whole = composition(users, arms) if composed is None else composed
    root, arm_configs = whole.root, whole.arms
    out.mkdir(parents=True, exist_ok=True)
    known = {
        "schema": schema.SCHEMA_VERSION,
        "arms": list(arms),
        "config": root,
        "compositions": arm_configs,
        "domain": made.simulator.domain.plain(),
        "identity": "0",
    }
    known |= {key: root[key] for key in ("question", "seed", "users", "weeks")}
    save(out, known)
    engine.execute(
        made, out, cohort=cohort, workers=workers, launcher=Local(), progress=lambda *_: None, run=Run(out).key
    )
    return Run(out)


if __name__ == "__main__":
    users, cohort, workers = map(int, sys.argv[2:5])
    run(Path(sys.argv[1]), users, cohort, workers, tuple(sys.argv[5:]) or ALL)
