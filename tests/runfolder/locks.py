"""Locks for tests: held by other processes, or forged."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from skg_bench.core.processes import Owner, this_process
from skg_bench.runfolder.lock import Locked, held

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import sys
from pathlib import Path
from skg_bench.runfolder.lock import held
with held(Path(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


def begin(code: str, *words: object) -> "subprocess.Popen[str]":
    """A Python process that runs `code`."""
    command = [sys.executable, "-c", code, *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@contextmanager
def holder(folder: Path, scope: str) -> "Iterator[subprocess.Popen[str]]":
    """A process that holds a lock until the block ends."""
    with begin(HOLD, folder, scope) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def locks(folder: Path) -> list[Path]:
    return sorted(folder.glob(".lock.*"))


def forged(folder: Path, owner: Owner, age: float = 0.0) -> Path:
    """A lock of a run that was touched so many seconds ago."""
    file = folder / f".lock.run.{owner.host}.{owner.process}.01234567"
    content = {**asdict(owner), "since": "2026-11-24T09:12:33+00:00", "scope": "run", "command": "skg-bench run"}
    file.write_text(json.dumps(content))
    aged(file, age)
    return file


def aged(file: Path, age: float) -> None:
    now = file.stat().st_mtime
    os.utime(file, (now - age, now - age))


def elsewhere() -> Owner:
    """This very process, were it on another machine."""
    return replace(this_process(), host="beta", machine="another boot 1")


def refused(folder: Path, scope: str = "run") -> str:
    with pytest.raises(Locked) as refusal, held(folder, scope):
        pass
    return str(refusal.value)


def granted(folder: Path, scope: str = "run") -> bool:
    with held(folder, scope) as lock:
        lock.check()
    return not lock.path.exists()
