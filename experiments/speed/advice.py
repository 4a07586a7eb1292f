"""The Guardian's loop: turns a second of a whole run with logs, ten arms over the same shoppers."""

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.engine import execute as engine
from skg_bench.launcher.local import Local

TURNS, SECONDS = 3_000_000, 60.0  # the mark: so many turns within so long, on two processes
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
    plan = prepare(compose(["experiment=guardian", f"users={users}", f"weeks={WEEKS}", arms])).plan
    turns = 0

    def progress(_: int, total: int) -> None:
        nonlocal turns
        turns = total

    with TemporaryDirectory() as folder:
        begun = time.perf_counter()
        engine.execute(plan, Path(folder), cohort=512, workers=workers, launcher=Local(), progress=progress)
        return turns, time.perf_counter() - begun
