"""The Guardian's loop: turns a second of a whole run with logs, ten arms over the same shoppers."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.engine import execute as engine
from skg_bench.launcher.local import Local

MARK = 50_000  # turns a second on two processes: ten arms, 5,000 users, sixty triggers each, within a minute
WEEKS = 12  # about sixty triggers a user
ARMS = {
    "live": [], "frozen": ["curator=none"], "never": ["policy=never", "curator=none"], "random": ["policy=uniform"],
    "thompson": ["policy=thompson"], "immediate": ["signs.loops=[immediate]"], "neutral": ["signs=neutral"],
    "wrong": ["signs=wrong"], "coin": ["curator=sham", "curator.curator=reflective", "curator.tags=coin"],
    "oracle": ["router=oracle", "policy=always"],
}  # fmt: skip


def closed_loop(users: int, workers: int) -> tuple[int, float]:
    """Turns of all arms, and seconds."""
    arms = f"arms={json.dumps(ARMS)}"
    composed = compose(["experiment=guardian", "contrasts=[]", f"users={users}", f"weeks={WEEKS}", arms])
    plan, cohort, turns = prepare(composed).plan, composed.root["cohort"], 0

    def progress(_: int, total: int) -> None:
        nonlocal turns
        turns = total

    with TemporaryDirectory() as folder:
        begun = time.perf_counter()
        engine.execute(plan, Path(folder), cohort=cohort, workers=workers, launcher=Local(), progress=progress)
        return turns, time.perf_counter() - begun


def rows(users: int = 5000) -> Iterator[tuple[str, str, str, str]]:
    """Figure, measured, mark, ratio to the mark: for the table of all that is timed."""
    turns, seconds = closed_loop(users, 2)
    name = f"advice, {len(ARMS)} arms, {users:,} users x {WEEKS} weeks with logs, 2 processes"
    yield name, f"{turns / seconds:,.0f} turns/s", f"{MARK:,}", f"{turns / seconds / MARK:.2f}x"
