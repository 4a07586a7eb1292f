"""Memory and time of runs with much to hold: books without bounds, and a log of as many users as rows. Each is
measured in a process of its own, whose memory no other figure adds to.
"""

import csv
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from skg_bench.app.api import run
from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.engine import execute as engine
from skg_bench.launcher.local import Local

BOOKS = 1.0  # GiB, of a process that runs 512 users with large books for 26 weeks
LOG = 1.5e9 / 2**30  # GiB, of a run of a log of 100,000 users with a row each, with tables and page
WEEKS = 26  # that the rows of the log are spread over
Measured = tuple[int, float, float]  # turns of all arms, seconds, and the most memory that the process held, GiB


def large_books(users: int, weeks: int) -> Measured:
    """A cache of every message, of vectors that are treated as if none had been seen before."""
    engine.TABLE_LIMIT, turns = 0, 0
    arms = ["arms={everything: [curator=everything]}", "reference=everything"]
    even = ["simulator.messages_per_day=14", "simulator.volume_spread=0"]
    plan = prepare(compose([*arms, *even, f"users={users}", f"weeks={weeks}"])).plan

    def progress(_: int, total: int) -> None:
        nonlocal turns
        turns = total

    with TemporaryDirectory() as folder:
        begun = time.perf_counter()
        engine.execute(plan, Path(folder), cohort=512, workers=1, launcher=Local(), progress=progress)
        return turns, time.perf_counter() - begun, most_held()


def users_of_one_row(users: int) -> Measured:
    """A log in which nobody comes twice, and no message either, under a cache of every message and without skills."""
    arms = ["arms={everything: [curator=everything], never: [policy=never, curator=none]}", "reference=never"]
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log.csv"
        write_log(log, users)
        given = ["simulator=recorded", f"simulator.path={log}", "embedder=hashing", f"out={folder}/run", *arms]
        begun = time.perf_counter()
        run(given, progress=False)
        return 2 * users, time.perf_counter() - begun, most_held()


def write_log(path: Path, users: int) -> None:
    """A row a user, over 26 weeks."""
    monday, apart = datetime(2026, 1, 5), timedelta(weeks=WEEKS) / users
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("user", "time", "message"))
        rows.writerows((f"user {i}", monday + i * apart, f"what became of the parcel number {i}") for i in range(users))


def most_held() -> float:
    """Peak resident memory of this process, GiB (Linux)."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text("utf-8").splitlines())
    return int(status["VmHWM"].split()[0]) / 2**20


def alone(function: Callable[..., Measured], *arguments: int) -> Measured:
    """Result of `function` in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def rows(quick: bool = False) -> Iterator[tuple[str, str, str, str]]:
    """Figure, measured, mark, ratio to the mark: for the table of all that is timed."""
    users, weeks = (64, 8) if quick else (512, 26)
    turns, seconds, memory = alone(large_books, users, weeks)
    name = f"large books, arbitrary vectors, {users} users x {weeks} weeks, 1 process"
    yield name, f"{turns / seconds:,.0f} turns/s", "", f"{seconds:,.0f} s"
    yield "  largest memory of the process", f"{memory:.2f} GiB", f"{BOOKS:.2f}", f"{memory / BOOKS:.2f}x"
    users = 5_000 if quick else 100_000
    turns, seconds, memory = alone(users_of_one_row, users)
    name = f"a log of {users:,} users with a row each, 2 arms, tables and page, 1 process"
    yield name, f"{turns / seconds:,.0f} turns/s", "", f"{seconds:,.0f} s"
    yield "  largest memory of the process", f"{memory:.2f} GiB", f"{LOG:.2f}", f"{memory / LOG:.2f}x"
