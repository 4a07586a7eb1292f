"""Processes as /proc shows them."""

import time
from contextlib import suppress
from pathlib import Path

import pytest

needs_proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are watched through /proc")


def workers(pid: int) -> list[int]:
    """Worker processes of a process, the oldest first; the resource tracker of multiprocessing is none."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # a thread or a process has just ended
            for child in task.read_text().split():
                with suppress(OSError):
                    if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                        found.append(int(child))
    return sorted(found)


def await_workers(pid: int, seconds: float = 20.0) -> list[int]:
    """Worker processes of a process, once it has any: a child bears its name only after its `exec`."""
    deadline = time.monotonic() + seconds
    while not (found := workers(pid)):
        assert time.monotonic() < deadline, f"no worker after {seconds:.0f} s"
        time.sleep(0.02)
    return found


def await_end(pids: list[int], seconds: float = 20.0) -> None:
    """Wait until none of these processes exists."""
    deadline = time.monotonic() + seconds
    while left := [pid for pid in pids if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < deadline, f"still there after {seconds:.0f} s: {left}"
        time.sleep(0.02)
