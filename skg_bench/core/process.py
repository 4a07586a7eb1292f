"""Marks of the process that wrote a file, and whether it still exists."""

import os
import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from skg_bench.core.foreign import raw_bytes

_PIDS = 2**31  # process numbers are below; larger ones are another program's
_STATE, _START = 0, 19  # fields 3 and 22 of /proc/PID/stat, counted from the one after the program's name
_DEAD = "ZX"  # states of a killed process that its parent has not read yet: it holds nothing any more


@dataclass(frozen=True)
class Owner:
    """A process, in words that no other process ever has: not a later one of the same number, nor one of another
    container whose host name is the same.
    """

    host: str  # letters, digits and hyphens
    process: int
    start: str  # in clock ticks since the boot; empty where there is no /proc
    machine: str  # this boot and the namespace of process numbers; empty where there is no /proc


def this_process() -> Owner:
    """The calling process. It is looked up at each call, as a forked process is another one."""
    pid = os.getpid()
    host = re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname()).strip("-")[:40] or "unknown"
    return Owner(host, pid, (_stat(pid) or ("", ""))[1], _machine(pid))


def alive(owner: Owner) -> bool | None:
    """Does a process exist? None where this process cannot know.

    It knows for processes of this machine and of its own namespace. The host name must agree as well: copies of a
    virtual machine that was saved while it ran share the boot and the numbers.
    """
    here = this_process()
    if not here.machine or (owner.host, owner.machine) != (here.host, here.machine):
        return None
    if not 0 < owner.process < _PIDS:
        return None
    stat = _stat(owner.process)
    if stat is not None and owner.start:
        state, start = stat
        return start == owner.start and state not in _DEAD
    try:  # /proc can hide processes of other users
        os.kill(owner.process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return None
    return None


def _machine(pid: int) -> str:
    """Empty also where /proc shows the processes of another namespace: their numbers mean other processes."""
    with suppress(OSError):
        if Path("/proc/self").readlink().name == str(pid):
            boot = raw_bytes("/proc/sys/kernel/random/boot_id").decode("ascii").strip()
            return f"{boot} {Path('/proc/self/ns/pid').stat().st_ino}"
    return ""


def _stat(pid: int) -> tuple[str, str] | None:
    """State and start of a process; None where there is none or /proc does not show it."""
    with suppress(OSError, IndexError):
        fields = raw_bytes(f"/proc/{pid}/stat").rpartition(b")")[2].decode("ascii").split()
        return fields[_STATE], fields[_START]
    return None
