"""Sinks for tests, each of which fails in its own way; they are unpickled in a process of their own."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import ClassVar, Literal

from skg_bench.runfolder.run import Run
from skg_bench.runfolder.tracking import Sink, Stage


@dataclass(frozen=True)
class Mood:
    """Opens, tells of three of ten, and then does what it is in the mood for."""

    mood: Literal["well", "refuses", "hangs", "hangs early", "opens slowly", "dies", "floods"]
    reads: Sequence[Stage] = ("tables", "page")
    place: str | None = None

    name: ClassVar[str] = "mood"
    parameter: ClassVar[str] = "place"
    variables: ClassVar[Sequence[str]] = ("MOOD_",)

    @property
    def sinks(self) -> Sequence[Sink]:
        return (self,)

    def address(self, run: Path) -> str | None:
        return self.place

    def local(self, run: Path) -> bool:
        return self.mood == "opens slowly"

    def open(self, run: Path) -> None:
        if self.mood == "hangs early":
            sleep(600)
        if self.mood == "opens slowly":
            sleep(3)
            (run / "opened").touch()

    def deliver(self, run: Run, progress: Callable[[int, int], None]) -> str:
        progress(3, 10)
        if self.mood == "refuses":
            raise ConnectionError("nobody\nis at home")
        if self.mood == "hangs":
            sleep(600)
        if self.mood == "dies":
            os.kill(os.getpid(), 9)
        if self.mood == "floods":
            for n in range(3_000):  # more than a pipe holds
                progress(n, 3_000)
        files = sorted(file.name for file in run.path.iterdir() if file.suffix in (".html", ".svg"))
        return f"10 of 10, {run.manifest['incomplete']}, {files}"

    def forget(self, run: Run, user: int, noted: str | None = None) -> str:
        return f"user {user} is gone"
