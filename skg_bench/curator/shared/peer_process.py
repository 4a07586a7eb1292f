"""Process of another program that reads and writes JSON lines, in an environment of its own; it ends with the run."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import mkdtemp
from typing import Any, TypeVar

from skg_bench.asking import supervisor
from skg_bench.core.bodies import LARGEST_BODY
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import open_file
from skg_bench.core.processes import environment

E = TypeVar("E")
PEERS = Path(__file__).parents[2] / "peers"
_OUTPUT = "output.txt"
_TAIL = 2_000  # bytes of its output in an error
_END = 10.0  # seconds that its end may take
_UNREAD, _PAUSE = 100, 0.01  # most events that wait; seconds until the next try to read beyond them
# Environment variables that the program gets: no secret, no proxy, no home.
_SEEN = (
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT",
    "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE",
)  # fmt: skip
# A fixed hash seed gives sets one order, so that prompts that print a set are the same at each start.
_FIXED = {"PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore", "PYTHONDONTWRITEBYTECODE": "1"}


def found_program(name: str, makes: str | None) -> str:
    """Path of a program. If it is missing, raises UsageError with the command that installs it."""
    if (path := shutil.which(name)) is not None:
        return str(Path(path).absolute())
    remedy = "correct curator.command" if makes is None else f"to install it: {makes}"
    raise UsageError(f"curator.command: there is no program {name}; {remedy}")


class PeerProcess:
    """A program that exchanges lines with this process, from `start` to `close`."""

    def __init__(self, process: "subprocess.Popen[bytes]", folder: Path, ends: tuple[int, int]) -> None:
        """`ends`: descriptors at this process's side, to write to the program and to read from it."""
        self.events: SimpleQueue[Any] = (
            SimpleQueue()
        )  # lines as bytes; None: the program ended; and requests that the gateway puts
        self._process, self._folder, self._closed = process, folder, False
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        for work, end in ((self._write, ends[0]), (self._read, ends[1])):
            threading.Thread(target=work, args=(end,), name="peer", daemon=True).start()

    @staticmethod
    def start(command: Sequence[str], makes: str | None) -> "PeerProcess":
        """Starts a command in an empty folder. `{peers}` in it is the folder of the packaged peers, `{python}` the
        interpreter of this process, and `makes` the command that installs what is missing.

        Raises UsageError where there is no such program.
        """
        words = {"{peers}": str(PEERS), "{python}": sys.executable}
        filled = [_with_words(word, words) for word in command]
        program = found_program(filled[0], makes)
        folder = Path(mkdtemp(prefix="skg_bench_peer_"))
        seen = {name: value for name, value in environment().items() if name in _SEEN}
        seen |= {**_FIXED, "HOME": str(folder), "TMPDIR": str(folder)}
        source, to_peer = os.pipe()
        from_peer, target = os.pipe()
        output = os.open(folder / _OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            process = subprocess.Popen(  # noqa: S603  the configuration names it
                [sys.executable, "-I", supervisor.__file__, str(folder), str(source), program, *filled[1:]],
                stdin=subprocess.PIPE, stdout=target, stderr=output, env=seen, cwd=folder, pass_fds=(source,),
                start_new_session=True,
            )  # fmt: skip
        finally:
            for descriptor in (source, target, output):
                os.close(descriptor)
        return PeerProcess(process, folder, (to_peer, from_peer))

    def send(self, line: bytes) -> None:
        """Queue a line for the program."""
        self._lines.put(line)

    def next(self, until: float) -> Any:
        """The next event. Raises TimeoutError if none comes before `until`, a time of the monotonic clock."""
        try:
            return self.events.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            raise TimeoutError from None

    def last_words(self, secrets: Mapping[str, str]) -> str:
        """Last lines of the program's standard error, without secrets."""
        try:
            with open_file(self._folder / _OUTPUT) as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
                text = _with_words(file.read().decode(errors="replace"), secrets).strip()
        except OSError:
            text = ""
        return f"the end of what it wrote to standard error:\n{text}" if text else "it wrote nothing to standard error"

    def close(self) -> None:
        """Stop the program and all processes that it started, and remove its folder."""
        self._closed = True
        self._lines.put(None)
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _write(self, descriptor: int) -> None:
        try:
            while (line := self._lines.get()) is not None:
                left = memoryview(line)
                while left:
                    left = left[os.write(descriptor, left) :]
        except OSError:  # the program has ended; the reader reports it
            return
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb") as file:
            while line := file.readline(LARGEST_BODY + 1):
                while self.events.qsize() > _UNREAD and not self._closed:
                    time.sleep(_PAUSE)
                self.events.put(line)
        self.events.put(None)


def _with_words(text: str, words: Mapping[str, str]) -> str:
    for name, word in words.items():
        text = text.replace(name, word)
    return text
