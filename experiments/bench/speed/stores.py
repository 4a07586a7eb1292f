"""How many skillbooks a second do stores take, beside what the disk can do at all?

A writer loads a document of 4 KB and swaps it, and tries again where another writer was first. Disks differ by 20
times, so rates are ratios to `f`: how often a second this disk syncs 4 KB (fdatasync), in the same folder, between the
rounds of the writers. On a fast disk the processors are the limit, so what an update costs them stands beside it.
"""

import multiprocessing
import os
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan
from multiprocessing.synchronize import Barrier
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import typer

from experiments.bench.server import idle, running, seconds_of
from experiments.bench.speed.counted import CountedUpdates, counted
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.core.errors import UsageError
from skg_bench.core.store import Store
from skg_bench.store.memory import InMemory
from skg_bench.store.postgres import Postgres
from skg_bench.store.shared.table import SKILLBOOK_TABLE
from skg_bench.store.sqlite import SQLite

WRITERS, SECONDS, ROUNDS = 8, 4.0, 4
MARKS = {"SQLite": 0.8, "PostgreSQL": 1.7}  # updates a second, in f
IN_MEMORY = 20_000  # swaps a second
SLOWEST = 1.0  # s, the 99th percentile of an update
USERS = 10  # whose skillbooks the counted updates go to
COMMAND = "skg-bench experiment speed/stores --write reports"
_DOCUMENT = '{"text":"' + "x" * 4085 + '"}'
_SPAWN = multiprocessing.get_context("spawn")
Row = tuple[str, str, str, str]


@dataclass(frozen=True)
class StoreRates:
    """Rates of writers."""

    per_second: float  # updates of all of them
    p99: float  # s
    conflicts: int  # swaps for which another writer was first
    lost: int  # updates that no version counts; below 0: counted twice
    syncs: float  # f
    cost: float  # s of processors an update, of writers and server; NaN: the server is another's
    busy: float  # share of the processors' time that this or any other program used


def syncs(folder: Path, seconds: float = 0.5) -> float:
    """How often a second the disk under `folder` syncs 4 KB."""
    file = os.open(folder / "syncs", os.O_CREAT | os.O_WRONLY)
    count, begun = 0, time.perf_counter()
    while (spent := time.perf_counter() - begun) < seconds:
        os.pwrite(file, b"x" * 4096, 0)
        os.fdatasync(file)
        count += 1
    os.close(file)
    return count / spent


def swaps_in_memory(count: int = 20_000) -> float:
    """Swaps a second of the store `memory`, by one writer."""
    store, begun = InMemory(), time.perf_counter()
    for version in range(count):
        store.swap("anna", version, _DOCUMENT, "k")
    return count / (time.perf_counter() - begun)


def rates(
    store: Any, users: int, folder: Path, writers: int = WRITERS, seconds: float = SECONDS,
    server_seconds: Callable[[], float] = lambda: 0.0,
) -> StoreRates:  # fmt: skip
    """Processes that write to `store`, all at once, in rounds between which the disk is measured.

    `server_seconds`: processor seconds that a server has used so far.
    """
    for user in range(users):
        store.swap(f"user-{user}", 0, _DOCUMENT, "first")
    barrier, queue = _SPAWN.Barrier(writers + 1), _SPAWN.SimpleQueue()
    place = (getattr(store, "path", None) or store.address, store.seconds)
    arguments = (type(store), place, users, seconds / ROUNDS, barrier, queue)
    processes = [_SPAWN.Process(target=_write, args=(*arguments, writer), daemon=True) for writer in range(writers)]
    for process in processes:
        process.start()
    disk, idle_ticks, ticks, used = list[float](), 0, 0, server_seconds()
    for _ in range(ROUNDS):
        barrier.wait(60)
        disk.append(syncs(folder, seconds / ROUNDS / 4))
        before = idle()
        barrier.wait(60)
        barrier.wait(60 + seconds)
        idle_ticks, ticks = idle_ticks + idle()[0] - before[0], ticks + idle()[1] - before[1]
    results: list[tuple[Sequence[float], int, float]] = [queue.get() for _ in processes]
    for process in processes:
        process.join()
    took = np.concatenate([times for times, _, _ in results])
    versions = sum((store.load(f"user-{user}") or ("", 0))[1] - 1 for user in range(users))
    spent = server_seconds() - used + sum(seconds for _, _, seconds in results)
    return StoreRates(
        len(took) / seconds, float(np.percentile(took, 99)), sum(count for _, count, _ in results),
        len(took) - versions, float(np.mean(disk)), spent / len(took), 1 - idle_ticks / max(ticks, 1),
    )  # fmt: skip


def _write(
    kind: Any, place: tuple[Any, ...], users: int, seconds: float, barrier: Barrier, queue: Any, writer: int
) -> None:
    store: Store = kind(*place)
    store.load("user-0")
    took, conflicts, used = list[float](), 0, 0.0
    for _ in range(ROUNDS):
        barrier.wait(60)  # the disk is measured from here
        barrier.wait(60)  # to here
        start, last = time.process_time(), time.perf_counter() + seconds
        while (begun := time.perf_counter()) < last:
            key = f"{writer}-{len(took)}"
            user = f"user-{zlib.crc32(key.encode()) % users}"
            while True:
                document, version = store.load(user) or ("", 0)
                if store.swap(user, version, document, key):
                    break
                conflicts += 1
            took.append(time.perf_counter() - begun)
        used += time.process_time() - start
        barrier.wait(60 + seconds)
    store.close()
    queue.put((took, conflicts, used))


def rows(folder: Path, address: str | None = None, writers: int = WRITERS, seconds: float = SECONDS) -> Iterator[Row]:
    """Figure, measured, mark, ratio to the mark. `address`: a server of PostgreSQL whose disk is that of `folder`."""
    swaps = swaps_in_memory()
    yield "memory: swaps a second, one writer", f"{swaps:,.0f}", f"{IN_MEMORY:,}", f"{swaps / IN_MEMORY:.2f}x"
    with TemporaryDirectory(dir=folder) as name, running(Path(name)) as server:
        for users in (10, 1000):
            file = SQLite(f"{name}/{users}.db", 60.0)
            yield from _lines("SQLite", users, rates(file, users, Path(name), writers, seconds), writers)
            file.close()
        if (place := address or server) is None:
            yield "PostgreSQL", "not measured: install the extra dev, or give --address", "", ""
            return
        for users in (10, 1000):
            table = Postgres(place, 60.0)
            used = (lambda: nan) if address else lambda: seconds_of(Path(name))
            yield from _lines("PostgreSQL", users, rates(table, users, Path(name), writers, seconds, used), writers)
            _empty(table)


def _empty(table: Postgres) -> None:
    import psycopg

    table.close()
    with psycopg.connect(table.address) as connection:
        connection.execute(f"drop table {SKILLBOOK_TABLE}")


def _lines(name: str, users: int, result: StoreRates, writers: int) -> Iterator[Row]:
    ratio = result.per_second / result.syncs
    mark = MARKS[name]
    yield (
        f"{name}: updates a second, {writers} writers, {users:,} users",
        f"{result.per_second:,.0f} = {ratio:.2f} f", f"{mark} f", f"{ratio / mark:.2f}x",
    )  # fmt: skip
    yield "  f: syncs of 4 KB a second, then and there", f"{result.syncs:,.0f}", "", ""
    most = (os.cpu_count() or 1) / result.cost
    known = not isnan(most)
    yield (
        "  processors: busy; of an update; most that they allow",
        f"{result.busy:.0%}; " + (f"{1000 * result.cost:.2f} ms; {most:,.0f} a second" if known else "not known"),
        "", f"{result.per_second / most:.2f} of that" if known else "",
    )  # fmt: skip
    yield "  99th percentile of an update", f"{result.p99:.3f} s", f"{SLOWEST} s", f"{result.p99 / SLOWEST:.2f}x"
    yield "  conflicts; updates lost or doubled", f"{result.conflicts:,}; {result.lost}", "any; 0", ""


def counts(folder: Path, updates: int, kill_every: float | None, address: str | None = None) -> Iterator[Row]:
    """Database, updates, lost and doubled, how it went: `updates` by 8 processes, once without and once with kills."""
    with TemporaryDirectory(dir=folder) as name, running(Path(name)) as server:
        file = SQLite(f"{name}/counted.db", 60.0)
        yield _count("SQLite", counted(file, updates, USERS, WRITERS))
        file.close()
        for every in (None, kill_every) if kill_every else (None,):
            place = server if every else address or server
            if place is None:
                return
            table = Postgres(place, 60.0)
            kill = (place, every) if every else None
            title = f"PostgreSQL, a backend killed every {every:g} s" if every else "PostgreSQL"
            yield _count(title, counted(table, updates, USERS, WRITERS, kill))
            _empty(table)


def _count(title: str, result: CountedUpdates) -> Row:
    rest = f", {result.unstored:,} of which nothing is known" if result.unstored else ""
    return (
        title, f"{result.updates:,}", f"{result.lost}; {result.doubled}",
        f"{result.seconds:.0f} s, {result.retries:,} retries, {result.kills} kills{rest}",
    )  # fmt: skip


def analyse(
    seconds: Annotated[float, typer.Option(help="Of each measurement of speed.", min=0.1)] = SECONDS,
    folder: Annotated[Path, typer.Option(help="On the disk that is measured.")] = Path("runs"),
    address: Annotated[str | None, typer.Option(help="Of an empty database of PostgreSQL on that disk.")] = None,
    updates: Annotated[int, typer.Option(help="Also store so many, and count which are lost or doubled.", min=0)] = 0,
    kill_every: Annotated[
        float | None, typer.Option(help="Of --updates: seconds until another backend of PostgreSQL is killed.", min=0.5)
    ] = None,
) -> Report:
    """Takes a minute; no mark is checked, as figures belong to the disk. With --updates, the exit code is 1 where one
    is lost or doubled.
    """
    if kill_every is not None and not updates:
        raise UsageError(f"--kill-every {kill_every:g}: kills go with counted updates; give --updates, such as 2000")
    folder.mkdir(exist_ok=True)
    table = Table("stores", ("figure", "measured", "mark", "ratio"), list(rows(folder, address, seconds=seconds)))
    about = (
        f"{WRITERS} processes on {os.cpu_count()} cores, {seconds:g} s each; a document of 4 KB is loaded and swapped. "
        "*f*: how often a second this disk syncs 4 KB, measured between the rounds of the writers, as disks differ by "
        "20 times and their days by 10. A mark in *f* supposes that the disk is the limit; where the processors are "
        "busy, what they allow is the limit: all of them, divided by what an update costs writers and server."
    )
    if not updates:
        return Report([table], page("Stores", COMMAND, about, table.markdown()))
    lines = list(counts(folder, updates, kill_every, address))
    numbers = Table("counted updates", ("database", "stored", "lost; doubled", "how"), lines)
    command = COMMAND.replace(
        "--write", f"--updates {updates}{f' --kill-every {kill_every:g}' if kill_every else ''} --write"
    )
    more = (
        f"{WRITERS} processes store TAGs with keys into {USERS} skillbooks of 4 KB. *Lost*: a writer was told that it "
        "is stored, and no document counts it."
    )
    holds = all(line[2] == "0; 0" for line in lines)
    return Report([table, numbers], page("Stores", command, about, table.markdown(), more, numbers), holds)


EXPERIMENT = Experiment(analyse)
