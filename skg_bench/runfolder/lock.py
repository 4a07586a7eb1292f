"""Locks of a run folder: which process works on what, whatever machine it runs on.

A lock is a file that its owner touches every ten seconds, under a name that no other lock ever has, so that removing
the lock of a process that is gone cannot remove its successor's.
"""

import json
import os
import re
import secrets
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from errno import ENOENT
from itertools import count
from pathlib import Path
from stat import S_ISREG
from typing import Any

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import open_file
from skg_bench.core.processes import Owner, alive, this_process
from skg_bench.core.temporary import temporary

_BEAT = 10.0  # seconds between touches
_LEFT = 120.0  # seconds without a touch after which a process that cannot be looked up counts as gone
_PATIENCE = 5.0  # seconds before a lock is refused because of processes that want it too, and do not hold it
_LOOKS, _LOOK = 5, 0.02  # how often a process looks whether others give way to it, and seconds between
_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.0)  # seconds at most between tries; the last one then stays
_BYTES = 10_000  # a lock has 300
_MISSING = (FileNotFoundError, NotADirectoryError)

_PART = re.compile(r"part (?P<part>0|[1-9]\d{0,8})/(?P<of>[1-9]\d{0,8})")
_NAME = re.compile(r"\.lock\.(?P<slug>[a-z0-9-]+)\.(?P<host>[A-Za-z0-9-]+)\.(?P<pid>\d{1,10})\.[0-9a-f]{8}")
_SLUG = re.compile(r"part-(?P<part>\d+)-of-(?P<of>\d+)")


class Locked(UsageError):  # noqa: N818  nothing is wrong with the folder
    """Another process works on the same; the message names it."""


@dataclass
class Lock:
    """A lock that this process holds."""

    path: Path  # its file
    folder: Path  # as the caller named it
    gone: bool = False  # once the file was missing, another process may have begun: it stays so

    def check(self) -> None:
        """Checks the lock before what is done is published. Raises UsageError when the file is gone: the folder was
        moved or deleted, or another machine, which saw no touch for two minutes, took the lock over.
        """
        try:
            self.path.lstat()
        except _MISSING:
            self.gone = True
        except OSError:  # a network file system that fails for a moment; what is written there will say so itself
            pass
        if self.gone:
            raise UsageError(
                f"{self.folder} was moved or deleted while this process worked on it, or its lock {self.path.name} "
                "was removed; nothing more is written there. Run the same command again, with the folder's present name"
            )


@contextmanager
def held(folder: Path, scope: str, *, wait: float = 0.0) -> Iterator[Lock]:
    """Holds a lock of a folder for as long as the block takes.

    `scope` is "run", "part I/N" or "tables". A run excludes everything, a part excludes itself and parts of another N,
    tables exclude tables. `wait`: seconds to wait for a lock that another process holds.

    Two processes never hold locks that exclude each other: each creates its file, and keeps it, before it lists the
    others, so of two such processes the one whose file came second sees the first file. It takes the lock only when it
    sees none, so it does not take it while the first process lives. Of processes that begin at the same moment one gets
    the lock: the one whose name has the least random end stays, and the others withdraw. Exception: a process of
    another machine that was suspended for over two minutes loses its lock, which `Lock.check` finds.

    Raises Locked if a process that is alive holds such a lock, ValueError for an unknown scope, and OSError that names
    the folder if it is missing, full or cannot be written; no file is left then.
    """
    slug = _slug(scope)
    owner, stop = this_process(), threading.Event()
    name = f".lock.{slug}.{owner.host}.{owner.process}.{secrets.token_hex(4)}"
    lock = Lock(folder.absolute() / name, folder)
    beat = threading.Thread(target=_touch_until, args=(stop, lock), name="lock", daemon=True)
    try:
        try:
            _take(lock, slug, _content(owner, scope), wait)
        except OSError as error:
            error.filename = str(folder)
            raise
        beat.start()
        yield lock
    finally:
        if os.getpid() == owner.process:  # a forked child that leaves this block holds nothing
            stop.set()
            if beat.is_alive():
                beat.join(1.0)
            _remove(lock.path)


def remove_dead(folder: Path) -> None:
    """Removes locks whose processes are gone, where that is allowed: a finished run needs no lock to be read."""
    with suppress(OSError):
        files = [file for file in folder.iterdir() if file.name.startswith(".lock.")]
        for file in files:
            if (other := _other(file, time.time())) is not None and other.alive is False:
                file.unlink(missing_ok=True)


def worked_on(folder: Path) -> bool:
    """Does a process that may be alive hold a lock of this folder, or is about to? Unreadable folders have none."""
    with suppress(OSError):
        others = [_other(file, time.time()) for file in folder.iterdir() if file.name.startswith(".lock.")]
        return any(other is not None and not other.dead() for other in others)
    return False


def _slug(scope: str) -> str:
    if match := _PART.fullmatch(scope):
        return f"part-{match['part']}-of-{match['of']}"
    if scope not in ("run", "tables"):
        raise ValueError(f"scope={scope!r}; valid are 'run', 'tables' and 'part I/N'")
    return scope


def _content(owner: Owner, scope: str) -> bytes:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return json.dumps({**vars(owner), "since": since, "scope": scope, "command": _command(sys.argv)}).encode()


def _command(words: list[str]) -> str:
    """The program and its subcommand; what follows may be secret, as may be any word of another program."""
    program = Path(words[0]).name if words else ""
    if program == "__main__.py" and Path(words[0]).parent.name == "skg_bench":
        program = "skg-bench"
    known = program == "skg-bench" and len(words) > 1 and re.fullmatch(r"[a-z]+", words[1])
    return f"{program} {words[1]}" if known else program


def _touch_until(stop: threading.Event, lock: Lock) -> None:
    while not lock.gone and not stop.wait(_BEAT):
        try:
            os.utime(lock.path)
        except _MISSING:
            lock.gone = True
        except OSError:  # a network file system that fails for a moment
            continue


def _remove(path: Path) -> None:
    with suppress(OSError):  # the folder may have vanished; what cannot be removed is seen to be dead by others
        path.unlink()


# ------------------------------------------------------------------------------------------------------ taking


@dataclass(frozen=True)
class _Other:
    """A lock of another process that excludes this one."""

    file: Path
    owner: Owner | None  # None: torn, or of another program
    since: str
    taken: bool  # False: its process may give way
    age: float  # seconds since it was touched, by the clock of the file system
    alive: bool | None  # None where only the age can tell

    def dead(self) -> bool:
        """A time in the future is no sign of life either: owners touch by the clock of the file system, and again
        within seconds after that clock was set back.
        """
        return abs(self.age) > _LEFT if self.alive is None else not self.alive


def _take(lock: Lock, slug: str, content: bytes, wait: float) -> None:
    """Returns with the lock taken. Raises Locked, or OSError; the file may be there then."""
    begun = time.monotonic()
    for tries in count():
        _create(lock.path, content)
        for _look in range(_LOOKS):
            others = _others(lock.path, slug)
            taken = [other for other in others if other.taken]
            if not others:
                _mark(lock.path)
                return
            if taken or min(_rank(other.file) for other in others) < _rank(lock.path):
                break
            time.sleep(_LOOK)  # others that have only begun give way
        lock.path.unlink()
        if time.monotonic() - begun >= (wait if taken else max(wait, _PATIENCE)):
            raise Locked(_refusal(lock.folder, (taken or others)[0]))
        # no random number of the simulation
        time.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)] * (1 + secrets.randbelow(1000)) / 1000)


def _create(path: Path, content: bytes) -> None:
    """The file with all that it says: one of a process that was killed before it said whose it is would stand for two
    minutes.
    """
    part = temporary(path)
    try:
        part.write_bytes(content)
        part.rename(path)
    except BaseException:
        _remove(part)
        raise


def _mark(path: Path) -> None:
    """The last line feed says that the lock is taken: processes that see it need not try again, and name its owner."""
    with path.open("r+b") as file:  # makes no file
        file.seek(0, os.SEEK_END)
        file.write(b"\n")


def _rank(file: Path) -> tuple[str, str]:
    return file.name.rpartition(".")[2], file.name


def _others(path: Path, slug: str) -> list[_Other]:
    """Locks of the folder that exclude this one and whose processes are alive; those of dead ones are removed."""
    os.utime(path)
    clock = path.stat().st_mtime
    files = [file for file in path.parent.iterdir() if file.name.startswith(".lock.")]
    if path not in files:
        raise FileNotFoundError(ENOENT, "the folder was moved, or its lock removed", str(path))
    others = []
    for file in files:
        if file == path or not _exclude(slug, file.name.split(".")[2]):
            continue
        if (other := _other(file, clock)) is None:
            continue
        if other.dead():
            file.unlink(missing_ok=True)
        else:
            others.append(other)
    return others


def _exclude(slug: str, other: str) -> bool:
    """Do two locks exclude each other? A slug that is not known excludes everything."""
    a, b = _SLUG.fullmatch(slug), _SLUG.fullmatch(other)
    if a and b:
        return slug == other or a["of"] != b["of"]
    return not (a or b) or "tables" not in (slug, other)


def _other(file: Path, clock: float) -> _Other | None:
    """None if it has just been removed, or is no file."""
    try:
        status = file.lstat()
    except FileNotFoundError:
        return None
    if not S_ISREG(status.st_mode):
        return None
    owner, since, taken = _read(file)
    return _Other(file, owner, since, taken, clock - status.st_mtime, None if owner is None else alive(owner))


def _read(file: Path) -> tuple[Owner | None, str, bool]:
    """Owner and time of a lock, and whether it is taken; no owner if it is torn, or not what this program writes."""
    with suppress(OSError, ValueError, RecursionError):
        with open_file(file) as content_file:
            text = content_file.read(_BYTES)
        content: Any = json.loads(text)
        match content:
            case {"host": str(host), "process": int(process), "start": str(start), "machine": str(machine)}:
                plain = re.fullmatch(r"[A-Za-z0-9-]+", host)  # it is printed
                owner = Owner(host, process, start, machine) if plain else None
                return owner, str(content.get("since")), text.endswith(b"\n")
    return None, "", False


def _refusal(folder: Path, other: _Other) -> str:
    name = _NAME.fullmatch(other.file.name)
    scope = _SLUG.sub(r"part \g<part>/\g<of>", name["slug"]) if name else "run"
    if other.owner:
        who = f"process {other.owner.process} on host {other.owner.host}"
    else:
        who = f"process {name['pid']} on host {name['host']}" if name else f"the owner of {other.file.name!r}"
    since = ""
    with suppress(ValueError, OverflowError):
        since = f" since {datetime.fromisoformat(other.since).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    end = ""
    if other.alive is None:
        end = (
            f". Its last sign of life was {max(other.age, 0.0):.0f} s ago; it counts as gone, and the command goes on, "
            f"{_LEFT:.0f} s after the last one"
        )
    return (
        f"{folder} is being run by {who}{since}{'' if scope == 'run' else f' ({scope})'}; wait for it, or stop it, and "
        f"run the same command again{end}"
    )
