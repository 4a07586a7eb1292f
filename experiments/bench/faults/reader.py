"""A process that reads runs and runs commands, where a torn file may do what it does: crash, hang, or fill memory."""

import resource
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event
from typing import Any

from experiments.bench.faults.command import Done, StoppedError

Reads = Mapping[str, tuple[bool, str]]  # what is read -> whether it could be, and a digest of it or the message
LOGS = ("turns", "updates", "feedback", "learning")
_MEMORY = 16 * 2**30  # bytes of address space: a length that was changed may ask for any


class Reader:
    """Starts with the first request, and again after one that ended it."""

    def __init__(self, limit: float, stop: Event) -> None:
        self._limit, self._stop = limit, stop
        self._process: Any = None
        self._pipe: Connection | None = None

    def reads(self, folder: Path, arms: Sequence[str], *, compare: bool = True) -> Reads:
        """Logs of these arms, the table of `compare`, and the summary."""
        answer: Reads | str = self._asked(("reads", (str(folder), tuple(arms), compare)))
        return {"a reader": (False, answer)} if isinstance(answer, str) else answer

    def command(self, words: Sequence[str]) -> Done:
        """A command."""
        answer: tuple[int, str, str] | str = self._asked(("command", (tuple(words),)))
        if isinstance(answer, str):
            return Done(None if answer == "hung" else -1, "", answer)
        return Done(*answer)

    def close(self) -> None:
        """End its process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

    def _asked(self, request: tuple[str, tuple[Any, ...]]) -> Any:
        """The answer, or `hung`, or how the process ended."""
        if self._process is None:
            here, remote = get_context("spawn").Pipe()
            self._process = get_context("spawn").Process(target=_serve, args=(remote,), daemon=True)
            self._process.start()
            remote.close()
            self._pipe = here
        assert self._pipe is not None  # noqa: S101
        try:
            self._pipe.send(request)
            deadline = time.monotonic() + self._limit
            while time.monotonic() < deadline:
                if self._pipe.poll(0.2):
                    return self._pipe.recv()
                if self._stop.is_set():
                    raise StoppedError
            ending = "hung"
        except (EOFError, OSError):
            self._process.join()
            ending = f"the process ended with code {self._process.exitcode}"
        self.close()
        return ending


def _serve(pipe: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    kinds: Mapping[str, Callable[..., Any]] = {"reads": _reads, "command": _command}
    with suppress(EOFError, OSError):
        while True:
            kind, arguments = pipe.recv()
            pipe.send(kinds[kind](*arguments))


def _command(words: Sequence[str]) -> tuple[int, str, str]:
    import traceback

    from typer.testing import CliRunner

    from skg_bench.app.cli import app

    result = CliRunner().invoke(app, list(words))
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        return 1, result.stdout, f"Traceback: {''.join(traceback.format_exception(error)[-3:])}"
    return result.exit_code, result.stdout, result.stderr


def _reads(folder: str, arms: Sequence[str], compare: bool) -> Reads:
    from skg_bench.core.errors import UsageError
    from skg_bench.runfolder.run import Run

    values: dict[str, tuple[bool, str]] = {}

    def read(name: str, action: Any) -> None:
        try:
            values[name] = True, action()
        except UsageError as error:
            values[name] = False, str(error)
        except Exception as error:  # noqa: BLE001  it is an outcome
            values[name] = False, f"Traceback: {type(error).__name__}: {error}"

    for log in LOGS:
        for arm in arms:
            read(f"{log} of {arm}", lambda log=log, arm=arm: digest(getattr(Run(folder), log)(arm)))
    read("the summary", lambda: Run(folder).to_pandas().to_csv())
    if compare:
        code, out, err = _command(["compare", folder])
        values["the table of compare"] = (True, out) if code == 0 else (False, err)
    return values


def digest(table: Any) -> str:
    """Digest of the values of a table, however it is cut and encoded."""
    from hashlib import sha256

    import pyarrow as pa

    columns = {}
    for name in sorted(table.column_names):
        column, kind = table[name], table.schema.field(name).type
        columns[name] = (column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column).combine_chunks()
    plain, sink = pa.table(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, plain.schema) as stream:
        stream.write_table(plain)
    return sha256(sink.getvalue()).hexdigest()
