"""The command line as a process of its own. Only processes that are started here are ever killed."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from skg_bench.core.package import EXPERIMENTS

_POLL = 0.003  # s
_REMARK = re.compile(r"\bagain\b|\btaken over\b|\btorn\b|\btakes over\b")
_ENVIRONMENT = {"PYTHONPATH": str(EXPERIMENTS.parent), "COLUMNS": "400", "MLFLOW_DISABLE_TELEMETRY": "true"}


class StoppedError(Exception):
    """The experiment was interrupted."""


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int | None  # None: it did not end in time; negative: the signal that ended it
    out: str
    err: str

    @property
    def message(self) -> str:
        """Message on standard error, from the error on; empty where it succeeded."""
        if self.code == 0:
            return ""
        starts = [at for word in ("Traceback", "error: ", "stopped: ") if (at := self.err.find(word)) >= 0]
        return self.err[min(starts, default=0) :].strip() or f"(nothing, exit code {self.code})"

    @property
    def remarks(self) -> list[str]:
        """Lines of a command that succeeded about what it makes again or takes over."""
        lines = (self.out + self.err).splitlines() if self.code == 0 else []
        return [line.strip() for line in lines if _REMARK.search(line)]


class Running:
    """A command that has been started in a session of its own; `close` leaves none of its processes."""

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        limit: float,
        stop: Event,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.began, self._limit, self._stop = time.monotonic(), limit, stop
        self._out, self._err = (
            folder / f".{stream}-{time.monotonic_ns()}" for stream in ("out", "err")
        )  # files: a pipe fills up, and is held open by processes that outlive the command
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "skg_bench", *words], cwd=folder,
                env={**os.environ, **_ENVIRONMENT, **(environment or {})},
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
            )  # fmt: skip
        self.pid = self._process.pid

    @property
    def seconds(self) -> float:
        """Since it was started."""
        return time.monotonic() - self.began

    def limit_files(self, size: int) -> None:
        """No file of this process may grow beyond so many bytes."""
        with suppress(ProcessLookupError):
            resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (size, size))

    @property
    def ended(self) -> bool:
        """Has it ended? It is left to be reaped, so that nobody else can get its process id."""
        if self._process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until the condition holds, for so many seconds at most; False: the command ended before.

        Raises StoppedError.
        """
        deadline = time.monotonic() + seconds
        while not self.ended:
            if self._stop.is_set():
                raise StoppedError
            if condition() or time.monotonic() > deadline:
                return True
            time.sleep(_POLL)
        return False

    def kill(self) -> None:
        """Kill this process with -9, and none of its children."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)

    def workers(self) -> list[int]:
        """Ids of its worker processes, the oldest first."""
        pids = []
        for task in Path(f"/proc/{self.pid}/task").glob("*/children"):
            with suppress(OSError):  # it has just ended
                pids += [int(pid) for pid in task.read_text().split() if _spawned(pid)]
        return sorted(pids)

    def kill_worker(self, pid: int) -> bool:
        """Kill a worker process with -9; False: it has ended."""
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        try:
            if pid not in self.workers():  # the id has been given to another process
                return False
            signal.pidfd_send_signal(handle, signal.SIGKILL)  # type: ignore[attr-defined,unused-ignore]
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True

    def wait(self) -> Done:
        """Waits for its end; kills it where that does not come in time.

        Raises StoppedError.
        """
        if self.until(lambda: False, self.began + self._limit - time.monotonic()):
            self.close()
            return Done(None, self._text(self._out), self._text(self._err))
        return Done(self._code(), self._text(self._out), self._text(self._err))

    def close(self) -> None:
        """Kill what is left of its session."""
        if self._process.returncode is None:  # it is not reaped, so that its group is still its own
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()

    def _code(self) -> int:
        info = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        if info is None:
            raise RuntimeError(f"process {self.pid} was reaped by somebody else")
        return info.si_status if info.si_code == os.CLD_EXITED else -info.si_status

    def _text(self, file: Path) -> str:
        return file.read_text("utf-8", "replace")


def _spawned(pid: str) -> bool:
    return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
