"""Trackers: beside a run, each place in a process of its own, which may refuse, hang or die; and later, by `export`.

A run waits for them no longer than `WAIT` after its own end. What they have not delivered then is counted and said, and
is still in the run directory.
"""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from skg_bench.core.errors import UsageError
from skg_bench.core.run import Run
from skg_bench.core.tracking import Place, Stage
from skg_bench.tracker.address import without_secrets

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

WAIT = 4.0  # seconds; with starting and stopping processes a tracker costs a run at most 5
_SLOW = "the run did not wait for it any longer"
_LONGEST = 300  # characters of somebody else's error message


@dataclass
class _Delivery:
    """A place at work, the pipe to it, and what was heard from it."""

    place: Place
    process: "SpawnProcess"
    pipe: Connection
    told: tuple[int, int | None] = (0, None)
    line: str = ""  # what to say of it, once it is done

    def hear(self, out: Path) -> bool:
        """Take its next message; returns whether it was the last."""
        try:
            kind, said = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            kind, said = "failed", f"its process ended with code {self.process.exitcode}"
        if kind == "told":
            self.told = said
        else:
            self.line = failed(self.place, out, said, *self.told) if kind == "failed" else f"{self.place.name}: {said}"
        return bool(self.line)


class Deliveries:
    """What is under way beside a run in folder `out`."""

    def __init__(self, places: Sequence[Place], out: Path) -> None:
        self._out, self._running = out, list[_Delivery]()
        for place in places:
            here, there = get_context("spawn").Pipe()
            process = get_context("spawn").Process(target=_work, args=(place, out, there), daemon=True)
            process.start()
            there.close()
            self._running.append(_Delivery(place, process, here))

    def reached(self, stage: Stage) -> None:
        """Say what is in the run directory now."""
        for one in self._running:
            with suppress(OSError):  # it has died; `lines` says so
                one.pipe.send(stage)

    def lines(self) -> list[str]:
        """Wait for all of them, `WAIT` seconds at most; returns what to say of each."""
        deadline = monotonic() + WAIT
        waiting = {one.pipe: one for one in self._running}
        while waiting and (ready := wait(list(waiting), max(0.0, deadline - monotonic()))):
            for pipe in ready:
                if waiting[pipe].hear(self._out):  # type: ignore[index]
                    del waiting[pipe]  # type: ignore[arg-type]
        return [one.line or failed(one.place, self._out, _SLOW, *one.told) for one in self._running]

    def end(self) -> None:
        """Nothing is left running."""
        for one in self._running:
            one.process.kill()
            one.process.join()
            one.pipe.close()


@contextmanager
def beside(places: Sequence[Place], out: Path) -> Iterator[Deliveries]:
    """Deliveries that start now, and end with the block at the latest."""
    deliveries = Deliveries(places, out)
    try:
        yield deliveries
    finally:
        deliveries.end()


def _work(place: Place, out: Path, pipe: Connection) -> None:
    """What the process of a place does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run is interrupted, and ends this
    try:
        place.open(out)
        said = ""
        for stage in place.reads:
            while pipe.recv() != stage:
                pass
            said = _deliver(place, Run(out), lambda *told: pipe.send(("told", told)))
        pipe.send(("done", said))
    except Exception as error:  # noqa: BLE001  whatever a tracker does, the run goes on, and says it
        with suppress(OSError):  # the run is gone
            pipe.send(("failed", reason(error)))


def reason(error: Exception) -> str:
    """Somebody else's error in one line."""
    own = type(error).__module__.startswith("skg_bench.")
    text = without_secrets(" ".join(str(error).split())) or "no message"
    text = text if own else f"{type(error).__name__}: {text}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def failed(place: Place, out: Path, why: str, known: int, total: int | None) -> str:
    """What to say of a place that does not have everything."""
    count = "nothing" if total is None else f"{known:,} of {total:,}"
    return f"{place.name}: {count} delivered ({why}); the rest, once: skg-bench export {place.name} {out}"


def deliver(place: Place, run: Run) -> tuple[str, bool]:
    """Deliver here and now, however long it takes; returns what to say, and whether all is there."""
    told = [(0, None)]
    try:
        return f"{place.name}: {_deliver(place, run, lambda *said: told.append(said))}", True
    except Exception as error:  # noqa: BLE001  whatever a tracker does, it is said
        return failed(place, run.path, reason(error), *told[-1]), False


def _deliver(place: Place, run: Run, told: Callable[[int, int], None]) -> str:
    """Deliver; to those who show tables also the main curves as a figure, `curves.svg`."""
    figure = run.path / "curves.svg"
    if "tables" in place.reads and not figure.is_file():
        from skg_bench.analysis.report import picture
        from skg_bench.analysis.summary import replace_text

        replace_text(figure, picture.svg(run))
    return without_secrets(place.deliver(run, told))


def chosen(name: str, run: Run, texts: Sequence[str]) -> Sequence[Place]:
    """The places of `tracker=name`: as given in overrides of `tracker.`, else as in the run's own configuration.

    Raises UsageError for an unknown tracker, other overrides, and a run that is not finished.
    """
    from skg_bench.app.components import build
    from skg_bench.app.compose import Composer
    from skg_bench.app.overrides import parse

    if run.manifest.get("incomplete") or not (run.path / "report.html").is_file():
        raise UsageError(f"{run.path} is not finished; the same command that began it goes on with it")
    overrides = parse([f"tracker={name}", *texts])
    for one in overrides[1:]:
        if one.head != "tracker" or one.choice:
            raise UsageError(f"{one.text}: an export takes tracker.KEY=VALUE and nothing else")
    node: Mapping[str, Any] = Composer().root(overrides)["tracker"]
    own = _own(run.config.get("tracker") or {}, node["_target_"])
    given = {one.path.split(".")[1] for one in overrides[1:]}
    made = build("tracker", {**node, **{key: own[key] for key in node.keys() & own.keys() if key not in given}})
    places: Sequence[Place] = made.places
    if not places:
        raise UsageError(f"tracker={name} delivers nowhere; export to mlflow or opik")
    return places


def _own(tracker: Mapping[str, Any], target: str) -> Mapping[str, Any]:
    """The node of this target in the tracker of a run's configuration."""
    nodes = [tracker, *(node for node in tracker.values() if isinstance(node, Mapping))]
    return next((node for node in nodes if node.get("_target_") == target), {})
