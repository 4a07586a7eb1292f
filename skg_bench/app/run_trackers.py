"""Trackers: beside a run, each sink in a process of its own that may refuse, hang or die; and later, by `deliver_all`.

A run waits for a place no longer than `LONGEST_WAIT` after its own end, or after the place is open where that is a file
of this machine. What is not delivered then is counted and said, and is still in the run directory.
"""

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, get_args

from skg_bench.core import processes
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.deliveries import NotedDelivery, note_delivery
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.tracking import Sink, Stage
from skg_bench.tracker.address import noted_address, without_secrets

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

DEADLINE = 600  # seconds that a delivery of a finished run may take
LONGEST_WAIT = 4.0  # seconds; with starting and stopping processes a tracker costs a run at most 5
_SLOW = "the run did not wait for it any longer"
_LONGEST = 300  # characters of somebody else's error message


@dataclass
class _Delivery:
    """A sink at work, the pipe to it, and what was heard from it."""

    sink: Sink
    process: "SpawnProcess"
    pipe: Connection
    local: bool
    opened: float | None = None  # when that was heard, on the monotonic clock
    told: tuple[int, int | None] = (0, None)
    line: str = ""  # what to say of it, once it is done
    complete: bool = False

    def hear(self, out: Path) -> bool:
        """Take its next message; returns whether it was the last."""
        try:
            kind, message = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            why = f"its process ended with code {self.process.exitcode}"
            kind, message = "done", (failed(self.sink, out, why, *self.told), False)
        if kind == "opened":
            self.opened = monotonic()
        elif kind == "told":
            self.told = message
        else:
            self.line, self.complete = message
        return bool(self.line)


class Deliveries:
    """Deliveries of the run in folder `out` that are under way."""

    def __init__(self, out: Path) -> None:
        self._out, self._running = out, list[_Delivery]()

    def start(self, sink: Sink) -> None:
        """Begin to deliver to this sink."""
        local, remote = processes.pipe()
        process = get_context("spawn").Process(target=_work, args=(sink, self._out, remote), daemon=True)
        place = sink.local(self._out)
        with processes.starting(sink.variables):  # the run is interrupted, and ends this process
            process.start()
            self._running.append(_Delivery(sink, process, local, place))
        remote.close()

    def reached(self, stage: Stage) -> None:
        """Say what is in the run directory now."""
        for delivery in self._running:
            with suppress(OSError):  # it has died; `lines` says so
                delivery.pipe.send(stage)

    def lines(self, deadline: int | None = None) -> Iterator[str]:
        """Wait for all of them, `deadline` seconds at most; yields what to say of each.

        None is how a run waits: `LONGEST_WAIT` seconds, which begin when a place that is a file of this machine is
        open. That needs no server, so it ends by itself.
        """
        begun = monotonic()

        def limit(place: _Delivery) -> float:
            if deadline is not None:
                return begun + deadline
            if place.local:
                return inf if place.opened is None else place.opened + LONGEST_WAIT
            return begun + LONGEST_WAIT

        self._listen(lambda _: begun)
        for delivery in self._running:
            if delivery.local and delivery.opened is None and not delivery.line:
                address = without_secrets(str(delivery.sink.address(self._out)))
                yield f"{delivery.sink.name}: waiting until {address} is open; a new database takes some seconds"
        self._listen(limit)
        why = _SLOW if deadline is None else f"the deadline of {deadline} s passed; --deadline SECONDS sets another"
        for delivery in self._running:
            yield delivery.line or failed(delivery.sink, self._out, why, *delivery.told)

    def _listen(self, limit: Callable[[_Delivery], float]) -> None:
        """Hear from each place until it is done or its limit, a time of the monotonic clock, has passed."""
        waiting = {delivery.pipe: delivery for delivery in self._running if not delivery.line}
        while waiting:
            seconds = min(map(limit, waiting.values())) - monotonic()
            ready = wait(list(waiting), max(0.0, min(seconds, 60.0)))
            for pipe, delivery in list(waiting.items()):
                if (pipe in ready and delivery.hear(self._out)) or monotonic() >= limit(delivery):
                    del waiting[pipe]

    @property
    def complete(self) -> bool:
        """Have all of them said that everything is there?"""
        return all(delivery.complete for delivery in self._running)

    def end(self) -> None:
        """Stops all delivery processes."""
        for delivery in self._running:
            delivery.process.kill()
            delivery.process.join()
            delivery.pipe.close()


@contextmanager
def beside(sinks: Sequence[Sink], out: Path) -> Iterator[Deliveries]:
    """Deliveries that start now, and end with the block at the latest."""
    deliveries = Deliveries(out)
    try:
        for sink in sinks:
            deliveries.start(sink)
        yield deliveries
    finally:
        deliveries.end()


def _work(sink: Sink, out: Path, pipe: Connection) -> None:
    """Work of the process of a sink."""
    try:
        sink.open(out)
        pipe.send(("opened", None))
        line, complete = "", False
        for stage in sink.reads:
            while pipe.recv() != stage:
                pass
            line, complete = deliver(sink, Run(out), lambda *known: pipe.send(("told", known)))
            if not complete:
                break
    except Exception as error:  # noqa: BLE001  whatever a tracker does, the run goes on, and says it
        line, complete = failed(sink, out, reason(error), 0, None), False
    with suppress(OSError):  # the run is gone
        pipe.send(("done", (line, complete)))


def reason(error: Exception) -> str:
    """Error of another package in one line."""
    internal = type(error).__module__.startswith("skg_bench.")
    text = without_secrets(" ".join(str(error).split())) or "no message"
    text = text if internal else f"{type(error).__name__}: {text}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def failed(sink: Sink, out: Path, why: str, known: int, total: int | None) -> str:
    """Error message for an incomplete delivery."""
    count = "nothing" if total is None else f"{known:,} of {total:,}"
    command = _command(sink, out, getattr(sink, sink.parameter))
    return f"{sink.name}: {count} delivered ({why}); the rest, once: {command}"


def _command(sink: Sink, out: Path, address: str | None) -> str:
    """The command that delivers to this address; None: to that of the environment, or beside the run."""
    overrides = [f"tracker.{sink.parameter}={address}"] if address else []
    return shlex.join(["skg-bench", "export", sink.name, str(out), *overrides])


def _unheard(_known: int, _total: int) -> None:
    """Ignores the end of a delivery."""


def deliver(sink: Sink, run: Run, counts: Callable[[int, int], None] = _unheard) -> tuple[str, bool]:
    """Deliver here and now, however long it takes; returns what to say, and whether all is there."""
    count: tuple[int, int | None] = (0, None)

    def tell(known: int, total: int) -> None:
        nonlocal count
        count = known, total
        counts(known, total)

    try:
        return f"{sink.name}: {_deliver(sink, run, tell)}", True
    except Exception as error:  # noqa: BLE001  whatever a tracker does, it is said
        return failed(sink, run.path, reason(error), *count), False


def _deliver(sink: Sink, run: Run, progress: Callable[[int, int], None]) -> str:
    """Deliver; to those who show the page also the main curves as a figure, `curves.svg`."""
    figure = run.path / "curves.svg"
    if "page" in sink.reads and not figure.is_file():
        from skg_bench.analysis.report import picture
        from skg_bench.analysis.summary import replace_text

        replace_text(figure, picture.picture_svg(run))
    with owner_only():
        if address := sink.address(run.path):  # before anything is sent: `forget` has to find it
            note_delivery(run.path, NotedDelivery(sink.name, noted_address(address)))
        return without_secrets(sink.deliver(run, progress))


@contextmanager
def owner_only() -> Iterator[None]:
    """Files and folders that are made in this block, by whatever library, are open to their owner only."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def deliver_all(sinks: Sequence[Sink], run: Run, deadline: int, say: Callable[[str], None]) -> bool:
    """Deliver a finished run within `deadline` seconds; returns whether all of it is there."""
    with beside(sinks, run.path) as deliveries:
        for stage in get_args(Stage):
            deliveries.reached(stage)
        for line in deliveries.lines(deadline):
            say(line)
        return deliveries.complete


def chosen_sinks(name: str, run: Run, texts: Sequence[str]) -> Sequence[Sink]:
    """The sinks of `tracker=name`: as given in overrides of `tracker.`, else as in the run's own configuration.

    What reaches something, such as an address, is never taken from there: who wrote a manifest must not choose where
    the reader's keys are sent.
    Raises UsageError for an unknown tracker, other overrides, and a run that is not finished.
    """
    from skg_bench.app.building import build
    from skg_bench.app.compose import composer
    from skg_bench.app.overrides import parse
    from skg_bench.app.trust import COMMAND_LINE

    if run.manifest.get("incomplete") or not (run.path / "report.html").is_file():
        raise UsageError(f"{run.path} is not finished; give its `skg-bench run` command again, which continues it")
    overrides = parse([f"tracker={name}", *texts])
    for override in overrides[1:]:
        if override.head != "tracker" or override.choice:
            raise UsageError(f"{override.text}: an export takes tracker.KEY=VALUE and nothing else")
    node: Mapping[str, Any] = composer().root(overrides)["tracker"]
    known = {_target(place): type(place) for place in build("tracker", node, COMMAND_LINE).sinks}
    given = [override.path.removeprefix("tracker.") for override in overrides[1:]]
    sinks: Sequence[Sink] = build("tracker", _with_settings(node, run, known, given), COMMAND_LINE).sinks
    if not sinks:
        raise UsageError(f"tracker={name} delivers nowhere; export to mlflow or opik")
    return sinks


def default_sink(name: str) -> Sink:
    """The sink of `tracker=name` without overrides: its address comes from the environment, or lies beside a run."""
    from skg_bench.app.building import build
    from skg_bench.app.compose import composer
    from skg_bench.app.overrides import parse
    from skg_bench.app.trust import COMMAND_LINE

    sink: Sink
    (sink,) = build("tracker", composer().root(parse([f"tracker={name}"]))["tracker"], COMMAND_LINE).sinks
    return sink


def _with_settings(
    node: Mapping[str, Any], run: Run, known: Mapping[str, type], given: Sequence[str], above: str = ""
) -> dict[str, Any]:
    """A tracker's node with what the run's own says, except for what reaches something and for what was given."""
    from skg_bench.app.trust import harmless

    made, filled = known.get(node["_target_"]), dict(node)
    settings = {} if made is None else harmless(made, _own(run, node["_target_"]))
    for key, value in node.items():
        if isinstance(value, Mapping):
            filled[key] = _with_settings(value, run, known, given, f"{above}{key}.")
        elif key in settings and f"{above}{key}" not in given:
            filled[key] = settings[key]
    return filled


def _target(sink: Sink) -> str:
    return f"{type(sink).__module__}.{type(sink).__qualname__}"


def _own(run: Run, target: str) -> Mapping[str, Any]:
    """The node of this target in the tracker of a run's configuration."""
    tracker = run.config.get("tracker")
    inner = tracker.values() if isinstance(tracker, Mapping) else ()
    return next(
        (node for node in (tracker, *inner) if isinstance(node, Mapping) and node.get("_target_") == target), {}
    )


def not_taken(sinks: Sequence[Sink], run: Run) -> Iterator[str]:
    """Message about addresses that the run's manifest names and that an export does not use."""
    for sink in sinks:
        named = _own(run, _target(sink)).get(sink.parameter)
        if isinstance(named, str) and named and named != sink.address(run.path):
            shown = without_secrets("".join(sign if sign.isprintable() else "?" for sign in named))
            yield (
                f"{sink.name}: the run's manifest names {shown}, and an export takes no address from a manifest; to "
                f"deliver there: {_command(sink, run.path, shown)}"
            )
