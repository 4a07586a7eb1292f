"""A folder where asks and their answers are recorded: a file of JSON lines for each process, in zstd frames.

An answer is on the disk before it is handed on. Writers take turns and read what others wrote meanwhile, so that a
folder never holds two answers to one ask, and a replay gives what the run was given: the first answer counts.
"""

import fcntl
import logging
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from skg_bench.asking import frames
from skg_bench.asking.asking import Completion
from skg_bench.asking.recorded_asks import Ask, completion_of, fields_of, line
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import open_file
from skg_bench.core.reach import Reach, Reaches

_ENDING = ".jsonl.zst"
_LARGEST = 2**28  # bytes of a file: ten million asks
KeyedAsk = tuple[bytes, Ask, Completion]  # by the key of the ask


@dataclass
class _Progress:
    """How far a file is read."""

    size: int = 0  # when it was read last [bytes]
    end: int = 0  # of the last whole frame [bytes]
    lines: int = 0


@cache
def opened_recording(folder: Path) -> "Recording":
    """The recording in a folder: read once in each process."""
    return Recording(folder)


class Recording:
    """The answers of a folder."""

    reaches: ClassVar[Reaches] = {"folder": Reach(("reads", "writes"))}

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._start()
        self._writer: tuple[int, Path, int] = (0, folder, -1)  # process, file, descriptor
        self._warned: set[str] = set()

    def _start(self) -> None:
        self._answers: dict[bytes, Completion] = {}
        self._progress: dict[str, _Progress] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: bytes) -> Completion | None:
        """The answer that is recorded, without its value."""
        return self._answers.get(key)

    def refresh(self) -> None:
        """Read what was written since the last time.

        Raises UsageError for files that cannot be read, that were damaged or edited, and that contradict each other.
        """
        if self._changed():
            with self._locked(fcntl.LOCK_SH):
                self._read_all()

    def add(self, answers: Sequence[KeyedAsk]) -> list[tuple[bytes, Completion]]:
        """Record answers, as one frame that is on the disk when this returns. What is given back for each is the answer
        that counts: where another one is recorded already, that.

        Raises UsageError where it cannot be written.
        """
        new: dict[bytes, Completion] = {}
        lines = []
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # recordings hold messages
            with self._locked(fcntl.LOCK_EX):
                self._read_all()
                for key, ask, completion in answers:
                    first = self._answers.get(key) or new.get(key)
                    if first is None:
                        new[key] = replace(completion, value=None)
                        lines.append(line(key, ask, completion))
                    elif _differ(first, completion):
                        self._warn(
                            f"an ask has another answer than the one recorded in {self.folder}; the first counts"
                        )
                if lines:
                    self._append(b"".join(lines), len(lines))
        except OSError as error:
            raise UsageError(
                f"{len(answers)} answers cannot be recorded in {self.folder}: {error}; mend that and run the same "
                "command again: what is recorded is not asked again"
            ) from error
        self._answers |= new
        return [(key, self._answers[key]) for key, _, _ in answers]

    def asks(self) -> Iterator[dict[str, Any]]:
        """All asks of the lines, read from the files, as messages are not kept in memory."""
        for name in sorted(self._progress):
            for _, fields in self._fields(self.folder / name, _Progress()):
                yield fields

    def _files(self) -> dict[str, int]:
        try:
            with os.scandir(self.folder) as entries:
                return {entry.name: entry.stat().st_size for entry in entries if entry.name.endswith(_ENDING)}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise UsageError(f"the recording {self.folder} cannot be read: {error}") from error

    def _changed(self) -> bool:
        return {name: progress.size for name, progress in self._progress.items()} != self._files()

    def _read_all(self) -> None:
        files = self._files()
        if any(files.get(name, 0) < progress.size for name, progress in self._progress.items()):
            self._start()  # files were taken away
        for name, size in sorted(files.items()):
            if size > self._progress.setdefault(name, _Progress()).size:
                self._read(self.folder / name, self._progress[name])

    def _read(self, path: Path, progress: _Progress) -> None:
        for number, fields in self._fields(path, progress):
            key, completion = bytes.fromhex(fields["key"]), completion_of(fields)
            first = self._answers.setdefault(key, completion)
            if _differ(first, completion):
                raise UsageError(
                    f"{path}, line {number}: its ask has another answer in this folder ({_shown(first)} and "
                    f"{_shown(completion)}), so that no replay is the run; keep the files of one run in a folder"
                )

    def _fields(self, path: Path, progress: _Progress) -> Iterator[tuple[int, dict[str, Any]]]:
        """Number and fields of each line of a file, from where `progress` is."""
        start = progress.end
        try:
            with open_file(path) as file:
                file.seek(start)
                data = file.read(_LARGEST + 1)
            if len(data) > _LARGEST:
                raise ValueError(f"it has more than {_LARGEST:,} bytes")  # noqa: TRY301  said with the others
            for end, text in frames.whole(data):
                for written in text.splitlines():
                    progress.lines += 1
                    yield progress.lines, _checked(path, progress.lines, written)
                progress.end = start + end
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{path} cannot be read after line {progress.lines}: {error}; take the file from a copy, or move it "
                "away and its asks are sent again"
            ) from error
        progress.size = start + len(data)
        if progress.end < progress.size:
            self._warn(f"{path} is torn after line {progress.lines}; what follows was never handed on and is ignored")

    def _append(self, data: bytes, lines: int) -> None:
        path, descriptor = self._own_file()
        size = os.fstat(descriptor).st_size
        frame = frames.frame(data)
        try:
            written = 0
            while written < len(frame):
                written += os.write(descriptor, frame[written:])
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)  # nothing may follow a torn frame
            raise
        progress = self._progress.setdefault(path.name, _Progress())
        progress.size = progress.end = size + len(frame)
        progress.lines += lines

    def _own_file(self) -> tuple[Path, int]:
        """The file of this process, which a fork does not share."""
        process, path, descriptor = self._writer
        if process != os.getpid() or not path.exists():
            if descriptor >= 0:
                os.close(descriptor)
            path = self.folder / f"{os.getpid()}-{secrets.token_hex(4)}{_ENDING}"
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o600)
            self._writer = os.getpid(), path, descriptor
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            os.fsync(folder)  # the file's name is on the disk, too
            os.close(folder)
        return path, descriptor

    @contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        """While others do not write. Who only reads can do so in a folder that cannot be written."""
        flags = os.O_CREAT | os.O_RDWR if kind == fcntl.LOCK_EX else os.O_RDONLY | os.O_NONBLOCK
        try:
            descriptor = os.open(self.folder / "lock", flags, 0o600)
        except OSError:
            if kind == fcntl.LOCK_EX:
                raise
            yield
            return
        try:
            fcntl.flock(descriptor, kind)
            yield
        finally:
            os.close(descriptor)

    def _warn(self, words: str) -> None:
        if words not in self._warned:
            self._warned.add(words)
            logging.getLogger("skg_bench").warning(words)


def _checked(path: Path, number: int, written: bytes) -> dict[str, Any]:
    try:
        return fields_of(written)
    except ValueError as error:
        raise UsageError(
            f"{path}, line {number} {error}; take the file from a copy, or move it away and its asks are sent again"
        ) from error


def _differ(first: Completion, other: Completion) -> bool:
    return (first.text, first.end) != (other.text, other.end)


def _shown(completion: Completion) -> str:
    text = completion.text[:60]
    return f"{completion.end}: {text!r}"
