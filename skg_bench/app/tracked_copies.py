"""Copies of a run at trackers, from which `forget` removes a user, and in stores of skillbooks, which it names.

A place is known from the environment, from a database that lies beside the run, from the deliveries that the run's
folder notes, and from its manifest. The keys of whoever reads the run go to places of the environment only.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from skg_bench.app.run_trackers import default_sink, owner_only, reason
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.deliveries import STORE, noted_deliveries
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.tracking import Sink
from skg_bench.tracker.address import noted_address, without_secrets

_TRACES = {
    "mlflow": ("../mlflow.db", "MLFLOW_TRACKING_URI"),
    "opik": ("events.jsonl", "OPIK_URL_OVERRIDE"),
}
"""Signs of a copy by tracker: a file, as seen from the run's folder, and a variable with an address."""


def forget_copies(run: Run, user: int) -> Iterator[tuple[str, bool]]:
    """Remove a user from the copies of a run; says of each place what became of it, and whether nothing is left there.

    The place of the environment, or beside the run, is asked as it is. One that only the run's folder notes is asked
    if that needs no keys; one that only the manifest names is not asked.
    """
    try:
        deliveries, faults = noted_deliveries(run.path)
    except UsageError as error:
        deliveries, faults = [], [str(error)]
    for fault in faults:
        yield fault, False
    for delivery in deliveries:
        if delivery.tracker == STORE:
            what = f"skillbooks of this run were pushed to {delivery.address}, which forget does not change"
            yield f"{STORE}: {what}; what to delete there: the skillbook of user-{user}", False
        elif delivery.tracker not in _TRACES:
            yield f"{delivery.tracker}: this run was delivered to {delivery.address}, which forget cannot ask", False
    for name in _TRACES:
        noted = [delivery.address for delivery in deliveries if delivery.tracker == name]
        yield from _forget_at(name, run, user, noted)


def _forget_at(name: str, run: Run, user: int, noted: list[str]) -> Iterator[tuple[str, bool]]:
    """Remove a user from the copies at one tracker. `noted`: addresses to which the run was delivered."""
    file, variable = _TRACES[name]
    named = _named(run.config.get("tracker"), name)
    signs = (run.path / file).exists()
    if not (noted or named or os.environ.get(variable) or signs):
        return
    known = set[str]()
    try:
        sink = default_sink(name)
    except Exception as error:  # noqa: BLE001  the user is removed here all the same
        for place in noted or [""]:
            yield _left(name, run, user, f"{place}: {reason(error)}" if place else reason(error))
        return
    address = sink.address(run.path)
    if os.environ.get(variable) or (signs and (address or not noted)) or (named and not noted):
        known.add(noted_address(address or ""))
        yield _forgotten(sink, run, user, None)
    for place in noted:
        if place not in known:
            known.add(place)
            yield _forgotten(sink, run, user, place)
    if named and noted_address(named) not in known:
        other = f"the manifest names {without_secrets(named)}, which is not asked ({variable} says what is)"
        yield _left(name, run, user, other)


def _forgotten(sink: Sink, run: Run, user: int, noted: str | None) -> tuple[str, bool]:
    """Remove a user at one place; None: at the sink's own. Returns what became of it, and whether nothing is left."""
    try:
        with owner_only():
            line = sink.forget(run, user, noted)
    except Exception as error:  # noqa: BLE001  the user is removed here all the same
        place = f"this run was delivered to {noted}: " if noted else ""
        return _left(sink.name, run, user, f"{place}{reason(error)}")
    return f"{sink.name}: {without_secrets(line)}", True


def _left(name: str, run: Run, user: int, why: str) -> tuple[str, bool]:
    return f"{name}: {why}; what to delete there: {_copy(name, run, user)}", False


def _named(node: Any, name: str) -> str | None:
    """Address of a tracker in a run's configuration."""
    if not isinstance(node, Mapping):
        return None
    if str(node.get("_target_")).startswith(f"skg_bench.tracker.{name}."):
        address = node.get("uri" if name == "mlflow" else "url")
        return address if isinstance(address, str) else None
    return next(filter(None, (_named(inner, name) for inner in node.values())), None)


def _copy(name: str, run: Run, user: int) -> str:
    """Words for what a tracker holds of a user, so that a person finds it."""
    identity = str(run.manifest["identity"])
    if name == "mlflow":
        return f"the runs with the tag skg_bench.identity={identity}"
    threads = ", ".join(f"{arm}/u{user}" for arm in run.arms)
    return f"the threads {threads} of project, and the dataset, {run.config['experiment']}-{identity[:8]}"
