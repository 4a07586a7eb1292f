"""Spending of all processes of a run: a file of JSON lines, of which the last has the totals."""

import fcntl
import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from skg_bench.asking.asking import Completion
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import check_regular
from skg_bench.core.reach import Reach, Reaches

_TAIL = 4096  # bytes of the file's end that hold its last line


@dataclass(frozen=True, slots=True)
class Spending:
    """Totals."""

    asks: int = 0
    tokens: int = 0  # read and written
    usd: float = 0.0

    def plus(self, completions: Collection[Completion]) -> "Spending":
        """Spending with these asks more."""
        tokens = sum(completion.tokens_in + completion.tokens_out for completion in completions)
        usd = sum((completion.cost_usd for completion in completions), self.usd)
        return Spending(self.asks + len(completions), self.tokens + tokens, usd)


@dataclass(frozen=True, slots=True)
class SpendingFile:
    """The file. A line that a killed process left unfinished does not count, and the next one takes its place.

    It is not forced onto the disk each time: the end of a process loses nothing, the end of the machine the lines of
    some seconds.
    """

    path: Path
    reaches: ClassVar[Reaches] = {"path": Reach(("reads", "writes"))}

    def total(self) -> Spending:
        """Sum spent up to now.

        Raises UsageError for a file that cannot be read.
        """
        with self._locked() as file:
            return self._last(file)[0]

    def add(self, completions: Collection[Completion]) -> Spending:
        """Count asks, and give the new total.

        Raises UsageError for a file that cannot be read or written.
        """
        with self._locked() as file:
            total, end = self._last(file)
            total = total.plus(completions)
            os.ftruncate(file, end)
            os.pwrite(file, json.dumps(asdict(total)).encode() + b"\n", end)
            return total

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_regular(self.path)
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file
            finally:
                os.close(file)
        except OSError as error:
            raise UsageError(
                f"what is spent cannot be kept in {self.path}: {error}; mend that and run the same command again"
            ) from error

    def _last(self, file: int) -> tuple[Spending, int]:
        """The totals, and where the last whole line ends."""
        size = os.fstat(file).st_size
        start = max(0, size - _TAIL)
        tail = os.pread(file, _TAIL, start)
        end = tail.rfind(b"\n") + 1
        if not end:
            if start:
                raise UsageError(self._unreadable("it has no line break near its end"))
            return Spending(), 0
        try:
            fields = json.loads(tail[tail.rfind(b"\n", 0, end - 1) + 1 : end])
            total = Spending(int(fields["asks"]), int(fields["tokens"]), float(fields["usd"]))
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(self._unreadable(f"its last line is not one of totals ({error})")) from error
        return total, start + end

    def _unreadable(self, reason: str) -> str:
        return f"{self.path} does not say what is spent: {reason}; move it away, and the run counts from 0 again"
