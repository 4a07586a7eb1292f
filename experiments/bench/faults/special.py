"""Things that are no regular files, in place of shards and cases."""

import os
import shutil
import socket
from pathlib import Path

from experiments.bench.faults.damage import read
from experiments.bench.faults.lab import Bench
from experiments.bench.faults.outcomes import Outcome
from experiments.bench.faults.reader import LOGS

KINDS = ("fifo", "zero", "full", "loop", "folder", "sparse", "socket", "dangling")
_SPARSE = 10 * 2**30  # bytes


def special(bench: Bench) -> Outcome:
    """A shard, a table or a case is something else than a file: it is refused with its name, and nothing waits."""
    kind, place = KINDS[bench.trial % len(KINDS)], bench.trial // len(KINDS) % 3
    if place == 2:
        return _case(bench, kind)
    shutil.copytree(bench.lab.base, bench.out)
    log = str(bench.rng.choice(LOGS))
    files = (
        sorted((bench.out / log).glob("*")) if place == 0 else [bench.out / "summary.json", bench.out / "curves.csv"]
    )
    file = files[int(bench.rng.integers(len(files)))]
    file.unlink()
    make(file, kind)
    read(bench, bench.lab.base, file, log if place == 0 else file.name, finished=True)
    if kind == "folder":
        file.rmdir()  # what somebody made is not deleted for them
    if kind in ("zero", "full"):
        file.unlink()  # a link that leads out is not followed, and removed by hand, as the message says
    bench.finish(real=False)
    return bench.outcome("no regular file in its place", f"{kind}, {'a shard' if place == 0 else 'a table'}")


def _case(bench: Bench, kind: str) -> Outcome:
    file = bench.folder / "case.json"
    make(file, kind)
    done = bench.reader.command(["counterexample", "replay", str(file)])
    bench.say(done.message)
    if done.code is None:
        bench.ends.append(("hung", f"replay of a {kind}"))
    elif done.code != 2 or "Traceback" in done.err or file.name not in done.err:
        bench.ends.append(("wordless", f"replay of a {kind}, exit code {done.code}: {done.err[-300:]}"))
    return bench.outcome("no regular file in its place", f"{kind}, a case")


def make(file: Path, kind: str) -> None:
    """Put it there."""
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind == "sparse":
        with file.open("wb") as opened:
            opened.truncate(_SPARSE)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            here = os.open(file.parent, os.O_RDONLY)
            try:
                listener.bind(f"/proc/self/fd/{here}/{file.name}")  # a path of a socket has 107 bytes at most
            finally:
                os.close(here)
    else:
        target = {"zero": "/dev/zero", "full": "/dev/full", "loop": file.name, "dangling": "nowhere"}[kind]
        file.symlink_to(target)
