"""Compositions to arms: components made, and forks tied to the arms that they fork from."""

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from skg_bench.app.arm_keys import PIPELINE
from skg_bench.app.building import build
from skg_bench.app.skillbook import seed_books
from skg_bench.app.trust import Origin, admitted
from skg_bench.asking.asking import naming_model
from skg_bench.assistant.pipeline.components import Components
from skg_bench.assistant.pipeline.pipeline import Pipeline
from skg_bench.core.arms import Arm, Fork
from skg_bench.core.errors import UsageError, nearest

Compositions = Mapping[str, Mapping[str, Any]]
_FORK = re.compile(r"(?P<arm>.*)@(?P<turn>[0-9]{1,9})")


def arms(compositions: Compositions, origin: Origin) -> tuple[Arm, ...]:
    """All arms, in order. `origin`: whose words the compositions are.

    Raises UsageError for parameters that a component refuses, and for a fork that leads nowhere.
    """
    made: dict[str, Arm] = {}
    for name in compositions:
        _make(name, compositions, origin, made, ())
    return tuple(made[name] for name in compositions)


def _check_keys(parts: Mapping[str, Any], pipeline: bool, where: str) -> None:
    """Compositions that come from files need not be ours."""
    known = {f.name: f.default is MISSING for f in fields(Arm) if f.name not in ("name", "fork")}
    if pipeline:
        known |= {f.name: f.default is MISSING for f in fields(Components)}
    if unknown := [key for key in parts if key not in known]:
        raise UsageError(f"{where}its composition has an unknown key {unknown[0]!r}; {nearest(unknown[0], known)}")
    if missing := [key for key, needed in known.items() if needed and key not in parts]:
        raise UsageError(f"{where}its composition lacks {', '.join(missing)}")


def _parts(config: Mapping[str, Any], origin: Origin, where: str) -> dict[str, Any]:
    """Components of an arm, its fork aside."""
    keys = [key for key in config if key != "fork"]
    nodes = admitted(origin, [(where + key, key, config[key]) for key in keys])
    made: dict[str, Any] = dict(zip(keys, nodes, strict=True))
    node = made.get("assistant")
    pipeline = isinstance(node, Mapping) and node.get("_target_") == PIPELINE
    for key, value in made.items():
        if isinstance(value, Mapping) and not (key == "assistant" and pipeline):
            with naming_model(f"{key}.llm"):
                made[key] = build(key, value, origin, where)
    _check_keys(made, pipeline, where)
    if pipeline:
        chosen = {f.name: made.pop(f.name) for f in fields(Components) if f.name in made}
        try:
            if chosen.get("seeds") is not None:
                chosen["seeds"] = seed_books.seed_book(str(chosen["seeds"]))
            made["assistant"] = Pipeline(Components(**chosen))
        except UsageError as error:
            raise UsageError(f"{where}{error}") from error
    return made


def _make(name: str, compositions: Compositions, origin: Origin, made: dict[str, Arm], above: tuple[str, ...]) -> Arm:
    """An arm and, before it, those that it forks from; `above` are those that fork from it."""
    if name in above:
        raise UsageError(f"arm {name!r} forks from itself: {' from '.join([*above, name])}; leave out one of the forks")
    if name not in made:
        where, config = f"arm {name!r}: ", compositions[name]
        parts = _parts(config, origin, where)
        fork: tuple[Arm, int] | None = None
        if (wanted := config.get("fork")) is not None:
            match = _FORK.fullmatch(str(wanted))
            if match is None:
                raise UsageError(f"{where}fork={wanted} must read ARM@TURN, such as fork=skg@200")
            if match["arm"] not in compositions:
                raise UsageError(
                    f"{where}fork={wanted}: there is no arm {match['arm']!r}; {nearest(match['arm'], compositions)}"
                )
            fork = _make(match["arm"], compositions, origin, made, (*above, name)), int(match["turn"])
            if config.get("assistant") == compositions[match["arm"]].get("assistant") and "router" not in config:
                parts["assistant"] = fork[0].assistant  # the same one goes on, whether or not its class has an equality
        try:
            made[name] = Arm(name=name, fork=fork and Fork(*fork), **parts)
        except UsageError as error:
            raise UsageError(f"{where}{error}") from error
    return made[name]
