"""The run that meets faults, undisturbed; and what a trial has at hand."""

import shutil
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from threading import Event, Lock

import numpy as np

from experiments.bench.faults.command import Done, Running
from experiments.bench.faults.outcomes import End, Outcome, general, instructs, worst
from experiments.bench.faults.reader import LOGS, Reader
from skg_bench.core.draws import fold, key
from skg_bench.core.errors import UsageError

ARMS = {  # the last two are the anchors of a gate
    "learns": "[]", "forks": "[fork=learns@5,router=exact]", "never": "[policy=never,curator=none]",
    "oracle": "[router=oracle,curator=oracle]",
}  # fmt: skip
_WORDS = (
    "run", "profile=smoke", "weeks=1", "simulator.messages_per_day=2", "contrasts=[]",
    f"arms={{{', '.join(f'{name}: {overrides}' for name, overrides in ARMS.items())}}}",
)  # fmt: skip
COMPARED = ("summary.json", "curves.csv")  # beside all shards
_UNFINISHED = (1, 3, 6)  # shards of turns after which a run is killed


@dataclass
class Lab:
    """Makes each thing that trials share once, in folder `home`."""

    home: Path
    seed: int
    limit: float  # seconds that a command may take
    stop: Event = field(default_factory=Event)
    mounts: bool = True  # a full disk may be a file system of its own
    users: int = 600  # in one week: three shards of each arm, and two cohorts a shard
    base: Path = field(init=False)  # the undisturbed run
    seconds: float = field(init=False)  # that it takes
    bytes: dict[str, str] = field(init=False)  # digests of it
    known: dict[str, object] = field(default_factory=dict)  # what rows measured of undisturbed commands
    _lock: Lock = field(default_factory=Lock)
    _locks: dict[str, Lock] = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        """The command, without its folder."""
        return [*_WORDS, f"users={self.users}", f"cohort={self.users // 2}"]

    def once(self, name: str) -> Lock:
        """Lock to hold while something of this name is made that trials share."""
        with self._lock:
            return self._locks.setdefault(name, Lock())

    def start(self, words: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Running:
        """A command in a folder, with these variables beside those of this process."""
        folder.mkdir(parents=True, exist_ok=True)
        return Running(words, folder, self.limit, self.stop, environment)

    def _run(self, name: str, *more: str) -> tuple[Path, float]:
        """An undisturbed run, and the seconds that it took."""
        out = self.home / name / "run"
        running = self.start([*self.words, f"out={out}", *more], out.parent)
        try:
            done = running.wait()
            seconds = time.monotonic() - running.began
        finally:
            running.close()
        if done.code != 0:
            raise UsageError(f"the undisturbed run failed with code {done.code}: {done.message}; try with more --limit")
        return out, seconds

    def prepare(self, *, twice: bool = True) -> None:
        """Make the undisturbed run. The second one is timed, as nothing is read from a cold disk, and has to be equal.

        Raises UsageError where it fails or is not.
        """
        self.base, self.seconds = self._run("undisturbed")
        self.bytes = digests(self.base)
        if twice:
            again, self.seconds = self._run("again")
            if self.bytes != digests(again):
                raise UsageError("two undisturbed runs have different bytes; there is nothing to hold faults against")

    def other_seed(self) -> Path:
        """The run of another seed."""
        with self._lock:
            return self.home / "other" / "run" if (self.home / "other").exists() else self._run("other", "seed=1")[0]

    def unfinished(self, number: int) -> Path:
        """A run that was killed in its midst."""
        with self._lock:
            shards = _UNFINISHED[number % len(_UNFINISHED)]
            out = self.home / f"unfinished{shards}" / "run"
            while not (out / "manifest.json").exists():
                running = self.start([*self.words, f"out={out}"], out.parent)
                try:
                    if running.until(lambda: turn_shards(out) >= shards, self.limit):
                        running.kill()
                    if turn_shards(out) == turn_shards(self.base):  # it was too quick
                        shutil.rmtree(out)
                finally:
                    running.close()
            return out

    def knows(self, *words: str) -> bool:
        """Does this version have an option, or an override?"""
        running = self.start(words, self.home)
        try:
            return running.wait().code == 0
        finally:
            running.close()

    @cached_property
    def checks(self) -> bool:
        """Is there `run --check`?"""
        with self._lock:
            return self.knows("run", "--check", str(self.base))

    @cached_property
    def parts(self) -> bool:
        """Is there `part=I/N`?"""
        with self._lock:
            return self.knows(*self.words, "part=0/3", "--dry-run")


def turn_shards(out: Path) -> int:
    """Shards of turns that are there."""
    return len(list((out / "turns").glob("*.parquet")))


def digests(out: Path) -> dict[str, str]:
    """Digests of all that must come out the same, by its path in the folder."""
    files = [file for log in LOGS for file in sorted((out / log).glob("*")) if file.is_file()]
    files += [out / name for name in COMPARED if (out / name).is_file()]
    return {str(file.relative_to(out)): sha256(file.read_bytes()).hexdigest() for file in files}


@dataclass
class Bench:
    """Bench of a trial: a folder, draws of its own, commands, and notes of how they ended."""

    lab: Lab
    reader: Reader
    row: str
    trial: int
    folder: Path
    stack: ExitStack
    ends: list[tuple[End, str]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    inner: str = "run"  # the run, below the folder
    environment: Mapping[str, str] = field(default_factory=dict)  # of commands, beside that of this process

    @cached_property
    def rng(self) -> np.random.Generator:
        """Keyed, so that a trial can be repeated alone."""
        folded = fold(key(self.lab.seed, self.trial), zlib.crc32(self.row.encode()))
        return np.random.Generator(np.random.Philox(key=int(folded)))

    @property
    def out(self) -> Path:
        """The folder of the run."""
        return self.folder / self.inner

    def words(self, *more: str) -> list[str]:
        """The command."""
        return [*self.lab.words, f"out={self.out}", *more]

    def start(self, *more: str) -> Running:
        """Start the command; its processes end with the trial at the latest."""
        running = self.lab.start(self.words(*more), self.folder, self.environment)
        self.stack.callback(running.close)
        return running

    def clear(self) -> None:
        """Begin without a run."""
        for entry in self.folder.iterdir():
            if not entry.name.startswith("."):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def note(self, done: Done, what: str = "the command") -> None:
        """How a command ended. It may refuse, as long as it says what to do."""
        self.messages += [self._general(text) for text in ([done.message] if done.message else done.remarks)]
        if done.code is None:
            self.ends.append(("hung", f"{what} took more than {self.lab.limit:.0f} s: {done.err[-200:]}"))
        elif done.code != 0 and (not instructs(done.message) or "Traceback" in done.message):
            self.ends.append(("wordless", f"{what}, exit code {done.code}: {done.message[-400:]}"))

    def say(self, message: str) -> None:
        """A message to show in the table."""
        self.messages.append(self._general(message))

    def _general(self, message: str) -> str:
        return general(message, {str(self.out): "RUN", str(self.folder): "FOLDER", str(self.lab.home): "HOME"})

    def same_figures(self, out: Path, what: str) -> bool:
        """Does a run that ended with exit code 0 have the bytes of the undisturbed run? Noted if not."""
        if (made := digests(out)) == self.lab.bytes and (out / "report.html").is_file():
            return True
        reads, undisturbed = (self.reader.reads(folder, list(ARMS)) for folder in (out, self.lab.base))
        changed = [name for name in undisturbed if reads.get(name) != undisturbed[name]]
        files = sorted(set(made.items()) ^ set(self.lab.bytes.items()))
        where = ", ".join(changed[:4]) or ", ".join(dict.fromkeys(file for file, _ in files[:4])) or "no page"
        reason = f"{what} ended with exit code 0 and differs in: {where}"
        self.ends.append(("lost" if changed else "other bytes", reason))
        return False

    def finish(self, *more: str, real: bool = True) -> None:
        """The same command goes on, and has to end with the same bytes."""
        done = self.start(*more).wait() if real else self.reader.command(self.words(*more))
        self.note(done, "the same command")
        if done.code == 0:
            self.same_figures(self.out, "the same command")
        elif done.code is not None:
            self.ends.append(("refused", f"exit code {done.code}: {done.message}"))

    def outcome(self, fault: str, where: str = "") -> Outcome:
        """Outcome of the trial."""
        end, reason = worst(self.ends)
        return Outcome(self.row, fault, self.trial, end, self._general(reason), where, tuple(self.messages))


Trial = Callable[[Bench], Outcome | None]  # None: the fault came too late
