"""A system as a process of its own: its files are written, it is started, and it ends with the run."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from skg_bench.asking import supervisor
from skg_bench.asking.http_client import BrokenExchangeError, LocalClient
from skg_bench.asking.http_server import LOOPBACK
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import open_file
from skg_bench.core.processes import SAFE, environment
from skg_bench.core.temporary import write_private

_OUTPUT = "output.txt"
_TAIL = 2_000  # bytes of its output in an error
_PAUSE = 0.05  # seconds between looks whether it is ready
_END = 10.0  # seconds that its end may take


@dataclass(frozen=True, slots=True)
class Start:
    """How a system is started."""

    command: Sequence[str]
    files: Mapping[str, str]
    ready: str
    seconds: float


Fill = Callable[[Path], object]


def _nothing(folder: Path) -> None:
    """Writes nothing."""


class ServedSystem:
    """A system that runs from `start` to `close`."""

    def __init__(self, process: "subprocess.Popen[bytes]", folder: Path, port: int, key: str) -> None:
        self.address = f"http://{LOOPBACK}:{port}"
        self._process, self.folder, self._key = process, folder, key

    @staticmethod
    def start(how: Start, upstream: str, key: str, fill: Fill = _nothing) -> "ServedSystem":
        """Writes the files, and starts the command. `upstream` and `key` are those of the gateway; `fill` writes into
        the folder what else stands there before.

        Raises UsageError where a file cannot be written, and for a name that leads out of the folder.
        """
        folder, port = Path(mkdtemp(prefix="skg_bench_system_")), _free_port()
        words = {"{folder}": str(folder), "{port}": str(port), "{upstream}": upstream, "{python}": sys.executable}
        try:
            for name, text in how.files.items():
                path = folder / name
                if not path.resolve().is_relative_to(folder.resolve()):
                    raise UsageError(f"assistant.files: {name!r} leads out of the folder of the system; name a file")
                path.parent.mkdir(parents=True, exist_ok=True)
                write_private(path, with_words(text, {**words, "{key}": key}))
            fill(folder)
            command = [with_words(word, words) for word in how.command]
            output = os.open(folder / _OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise UsageError(f"assistant.files cannot be written into {folder}: {error}") from error
        seen = {name: value for name, value in environment().items() if name not in SAFE}  # scripts import neighbours
        try:
            process = subprocess.Popen(  # noqa: S603  the command line names it
                [sys.executable, "-I", supervisor.__file__, str(folder), "-", *command],
                stdin=subprocess.PIPE, stdout=output, stderr=output, env=seen, start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(output)
        return ServedSystem(process, folder, port, key)

    async def until_ready(self, how: Start) -> None:
        """Waits until it answers at `ready`. Raises UsageError where it ends, or takes too long."""
        client, until = LocalClient(self.address), time.monotonic() + how.seconds
        try:
            while not await _answers(client, how.ready):
                if self.ended is not None:
                    raise UsageError(f"assistant.command does not start: {self.last_words()}")
                if time.monotonic() > until:
                    raise UsageError(
                        f"assistant.command did not answer at {self.address}{how.ready} within {how.seconds:g} s "
                        f"(assistant.ready, assistant.starts): {self.last_words()}"
                    )
                await asyncio.sleep(_PAUSE)
        finally:
            client.close()

    async def until_ended(self, seconds: float) -> None:
        """Waits so long for its end, if it comes."""
        until = time.monotonic() + seconds
        while self.ended is None and time.monotonic() < until:
            await asyncio.sleep(_PAUSE)

    @property
    def ended(self) -> int | None:
        """Exit code of the command; None: it runs."""
        text = ""
        with suppress(OSError), open_file(self.folder / "ended") as file:
            text = file.read().decode("ascii")
        return int(text) if text else self._process.poll()

    def last_words(self) -> str:
        """How it ended, if it did, and the end of its output, without the key."""
        try:
            with open_file(self.folder / _OUTPUT) as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
                text = file.read().decode(errors="replace").replace(self._key, "{key}").strip()
        except OSError:
            text = ""
        ended = "it runs" if self.ended is None else f"it ended with exit code {self.ended}"
        return f"{ended}, and said nothing" if not text else f"{ended}; the end of its output:\n{text}"

    def close(self) -> None:
        """End it, and all that it has started. Its folder is removed."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def with_words(text: str, words: Mapping[str, str]) -> str:
    """The text, with words for what stands in braces; other braces stay."""
    for name, word in words.items():
        text = text.replace(name, word)
    return text


async def _answers(client: LocalClient, path: str) -> bool:
    try:
        async with asyncio.timeout(5):
            return (await client.request("GET", path)).status < 300
    except (BrokenExchangeError, TimeoutError):
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        number: int = probe.getsockname()[1]
        return number
