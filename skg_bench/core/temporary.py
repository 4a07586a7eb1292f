"""Files that are whole or absent, in folders that several machines share.

A file is written beside its place under a name of its own and then renamed. What a killed process left is known by the
name, which says whose it was, and is removed by `sweep`.
"""

import errno
import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedRandom
from pathlib import Path

from skg_bench.core.processes import Owner, alive, this_process

PRIVATE_MODE, PUBLIC_MODE = 0o600, 0o666  # of files that hold messages, and of files for others, as a page of CI
_HOUR = 3600.0  # seconds without a write after which another machine's temporary counts as left behind
_NAME = re.compile(
    r"\..+\.(?P<host>[A-Za-z0-9-]+)\.(?P<pid>\d{1,10})-(?P<start>\d*)-(?P<machine>[0-9a-f]{8})?\.[0-9a-f]{8}\.tmp",
    re.DOTALL,
)
_LONGEST = 120  # bytes of the name that are kept: a name may have 255 in all
_NO_FSYNC = {errno.EINVAL, errno.ENOTSUP}  # some network file systems have none for folders


def temporary(path: Path) -> Path:
    """A new name beside `path`: `.{name}.{host}.{pid}-{start}-{machine}.{random}.tmp`.

    `start` and `machine` distinguish the process from a later one of the same number and from one in another container;
    `machine` is a digest of 8 characters, and empty where there is no /proc.
    """
    owner = this_process()
    name = os.fsencode(path.name)[:_LONGEST].decode("utf-8", "ignore")
    tag = f"{owner.process}-{owner.start}-{_short(owner.machine)}"
    return path.with_name(f".{name}.{owner.host}.{tag}.{secrets.token_hex(4)}.tmp")


def sweep(folder: Path) -> list[Path]:
    """Removes temporaries of this folder whose process is gone, and returns them.

    A process of another machine counts as gone when its file was not modified for an hour, by the clock of the file
    system, or will only be modified in more than an hour. Other files, and folders in this folder, are left alone.
    Raises OSError, FileNotFoundError if the folder is missing.
    """
    removed: list[Path] = []
    clock: float | None = None
    for file in sorted(folder.iterdir()):
        if (match := _NAME.fullmatch(file.name)) is None or file.is_symlink() or not file.is_file():
            continue
        living = _alive(match)
        if living is None:
            clock = _clock(folder) if clock is None else clock
            with suppress(FileNotFoundError):
                living = abs(clock - file.lstat().st_mtime) <= _HOUR
        if living is False:
            with suppress(FileNotFoundError):  # another process has removed it
                file.unlink()
                removed.append(file)
    return removed


def private(path: str, flags: int) -> int:
    """Opener of files that hold messages: a new one is read and written by its owner only."""
    return os.open(path, flags, PRIVATE_MODE)


def write_private(path: Path, text: str) -> None:
    """Writes a new text file that only its owner can read; line ends stay as they are. Raises OSError that names the
    file, of which nothing is left then: half a sheet would look like a whole one, and be in the way of the next.
    """
    known = path.exists()
    try:
        with open(path, "w", encoding="utf-8", newline="", opener=private) as file:
            file.write(text)
    except OSError as error:
        error.filename = str(path)  # a full disk does not name one
        if not known:
            with suppress(OSError):
                path.unlink()
        raise


def replace_whole(path: Path, data: bytes, *, mode: int = PRIVATE_MODE) -> None:
    """Writes a file whole or not at all; `replacing` says what that means."""
    with replacing(path, mode=mode) as file:
        file.write(data)


@contextmanager
def replacing(path: Path, *, mode: int = PRIVATE_MODE) -> Iterator[BufferedRandom]:
    """An empty file to be written, which then takes the place of `path`: after a crash at any moment, what was there
    before is still there, or all that was written is. Its mode is `mode`, less what the umask takes away.

    The folder is never made: one that was moved away must not come back with a single file in it. Raises OSError that
    names a path; `path` is then as it was, unless only the folder could not be synchronized.
    """
    part = temporary(path)
    try:
        with open(part, "x+b", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and str(error.filename or part) == str(part):  # a full disk does not name one
            error.filename = str(path)
        raise
    _synchronize(path.parent)


def _synchronize(folder: Path) -> None:
    """Makes renames in the folder survive a power failure."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_FSYNC:
            error.filename = str(folder)
            raise
    finally:
        os.close(handle)


def _clock(folder: Path) -> float:
    """Seconds since the epoch by the clock of the file system, which is not that of this host on a network."""
    probe = temporary(folder / "clock")
    try:
        probe.touch(exist_ok=False)
        os.utime(probe)
        return probe.stat().st_mtime
    finally:
        probe.unlink(missing_ok=True)


def _alive(match: re.Match[str]) -> bool | None:
    here = this_process()
    if match["machine"] != _short(here.machine):
        return None
    return alive(Owner(match["host"], int(match["pid"]), match["start"], here.machine))


def _short(machine: str) -> str:
    return hashlib.sha256(machine.encode()).hexdigest()[:8] if machine else ""
