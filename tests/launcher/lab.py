"""A job that does what its tasks say. It imports no pytest, which takes longer than all else that a worker needs."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from skg_bench.core.errors import BudgetReached, UsageError
from skg_bench.core.launching import Tick

LARGE = bytes(1 << 20)  # 16 times what a pipe holds


class OwnError(Exception):
    """Cannot be unpickled."""

    def __init__(self, record: str, other: str) -> None:
        super().__init__(record + other)


@dataclass(frozen=True)
class Lab:
    """Each task is what to do, and a number, which is given back negative; files say which tasks were begun."""

    folder: Path
    ballast: bytes = LARGE

    def begin(self) -> Callable[[tuple[str, int, bytes], Tick], int]:
        """Takes a second, or for ever, if there is a file of this name."""
        if (self.folder / "slow").exists():
            time.sleep(1)
        if (self.folder / "hang").exists():
            time.sleep(600)
        return self.run

    def run(self, task: tuple[str, int, bytes], tick: Tick) -> int:
        what, number, _ = task
        again = (self.folder / f"begun {number}").exists()
        (self.folder / f"begun {number}").touch()
        tick(1)
        if what == "die" or (what == "die once" and not again):
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "fail":
            raise UsageError(f"task {number} is wrong; give another one")
        if what == "fail oddly":
            raise OwnError("one", "other")
        if what == "spend":
            while not (self.folder / "begun 1").exists():
                time.sleep(0.01)
            raise BudgetReached("nothing is left")
        if what == "wait":
            time.sleep(600)
        if what == "be asking":
            time.sleep(1)
            (self.folder / "answered").touch()
        tick(3)
        return -number
