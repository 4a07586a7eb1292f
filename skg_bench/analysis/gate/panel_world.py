"""Parts of a panel that belong to the world, and what to run when two worlds differ.

A gate judges systems, so both have to meet the same world: users and their reactions, what is true, prices, and the
simulated LLM. A real model, prompts, router and all else that an arm is composed of are the system.

What is declared (parameters, data, columns of truth) has digests. What the code does with it shows in the turns before
a user's first hit: there every system leaves the user to the LLM, so its answers and the ratings of these may differ
between two systems only if the world or a real model does.
"""

import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from skg_bench.analysis.gate.panel import EVENTS_DIGEST, SIMULATED, Panel, before_hits
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import flat

TRUTH = ("intent", "request_type", "answerable", "used_up")  # columns of the turn log, the same for every arm
_GROUPS = ("simulator", "llm")  # groups of components of which the world consists


def world_parts(panel: Panel) -> dict[str, str]:
    """The digest of each part of a panel's world, 16 hex digits."""
    parameters = _parameters(panel)
    declared: dict[str, Any] = {
        "simulator": {key: parameters[key] for key in parameters if key.startswith(("simulator", "data"))},
        "events": panel.digests[EVENTS_DIGEST],
        "truth": [panel.digests.get(name) for name in TRUTH],
        "llm": {key: parameters[key] for key in parameters if key.startswith("llm")},
        "prices": {key: parameters[key] for key in parameters if key.startswith(("utility", "hit_latency"))},
    }
    return {
        name: hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]
        for name, value in declared.items()
    }


def differing(base: Panel, new: Panel) -> list[str]:
    """Differences between the worlds of two panels of the same users: `key: old -> new`."""
    before, after = _parameters(base), _parameters(new)
    keys = [f"{key}: {_shown(before, key)} -> {_shown(after, key)}" for key in _changed(before, after)]
    named = {EVENTS_DIGEST: "events: what users bring", **{name: f"truth: the column {name}" for name in TRUTH}}
    keys += [text for name, text in named.items() if base.digests.get(name) != new.digests.get(name)]
    return keys or list(_behaviour(base, new))


def _behaviour(base: Panel, new: Panel) -> Iterator[str]:
    """Turns that the LLM answered before any hit, and that are nevertheless otherwise."""
    if not np.array_equal(base.turns, new.turns):
        yield "numbers of turns"
        return
    owner = np.repeat(np.arange(len(base.turns)), base.turns)
    both = before_hits(base.hit, owner) & before_hits(new.hit, owner)
    answers, ratings = (both & (getattr(base, name) != getattr(new, name)) for name in ("wrong", "rated"))
    if _simulated(new) and answers.any():
        yield f"what the LLM answers rightly: {answers.sum():,} of {both.sum():,} turns before a user's first hit"
    if (ratings := ratings & (base.wrong == new.wrong)).any():
        yield f"how users rate: {ratings.sum():,} of {both.sum():,} turns before a user's first hit"


def same_world(base: Panel, new: Panel, name: str, run: str | None = None) -> None:
    """Check that both are of one world; `name` is what `base` was read from, `run` the folder of `new`.

    Raises UsageError naming the keys that differ, and the runs that would answer: both systems in the new world.
    """
    if not (keys := differing(base, new)):
        return
    shown = "\n  ".join(keys)
    if base.imported and new.imported:
        raise UsageError(
            f"{name} is of other requests, so that no verdict is possible; it differs in\n  {shown}\n"
            "Import results at the same events of the same users, with the same texts, kinds and prices"
        )
    raise UsageError(
        f"{name} is of another world, so that no verdict on the system is possible; it differs in\n  {shown}\n"
        "These two runs would answer, the old system and the new one, both in the new world:\n  "
        + "\n  ".join(commands(base, new, name))
        + (f"\n(the second run is {run}, if nothing was changed since)" if run else "")
    )


def commands(base: Panel, new: Panel, name: str) -> list[str]:
    """Lines for a shell in the root of the checkout: both runs, and the verdict on them."""
    old_system = shlex.join([*_kept(base, new), *_overrides(base, new), "out=runs/old_system"])
    new_system = shlex.join([*new.made.get("overrides", ()), "out=runs/new_system"])
    update = "--update --move-anchor runs/old_system"
    old = [
        f"python -m skg_bench run {old_system}",
        f"python -m skg_bench gate --baseline new_world.json {update}",
    ]
    if base.made.get("code") != new.made.get("code") and base.made.get("commit"):
        update = f'python -m skg_bench gate --baseline "$OLDPWD/new_world.json" {update}'
        old = [
            f"git worktree add ../old_system {base.made['commit']}",
            f"(cd ../old_system && {old[0]} && {update})",
        ]
    return [
        f"cp {shlex.join([name])} new_world.json",
        *old,
        f"python -m skg_bench run {new_system}",
        "python -m skg_bench gate --baseline new_world.json runs/new_system",
    ]


def _kept(base: Panel, new: Panel) -> list[str]:
    """Overrides of the old run, without those that the new world replaces."""
    replaced = {_head(text) for text in _overrides(base, new)}
    others = tuple(f"{group}." for group in _other_components(base, new))
    texts: list[str] = base.made.get("overrides") or []
    return [text for text in texts if _head(text) not in replaced and not f"{_head(text)}.".startswith(others)]


def _overrides(base: Panel, new: Panel) -> list[str]:
    """Overrides that turn the world of `base` into that of `new`: other components first, then parameters."""
    before, after = _parameters(base), _parameters(new)
    chosen = [text for text in new.made.get("overrides") or () if _head(text) in _other_components(base, new)]
    return chosen + [
        f"{key}={json.dumps(after[key], ensure_ascii=False)}"
        for key in _changed(before, after)
        if key in after and not key.startswith("data.") and not key.endswith("._target_")
    ]


def _other_components(base: Panel, new: Panel) -> list[str]:
    changed = _changed(_parameters(base), _parameters(new))
    return [group for group in _GROUPS if f"{group}._target_" in changed]


def _head(override: str) -> str:
    return override.partition("=")[0].lstrip("+~")


def _parameters(panel: Panel) -> dict[str, Any]:
    """Declared parameters of the world, flat: `simulator.rated_share`."""
    config, arm = panel.made["config"], panel.made["compositions"][panel.arm]
    nodes: dict[str, Any] = {"simulator": config.get("simulator"), "utility": config["utility"]}
    nodes["data"] = {"simulator": (panel.made.get("data") or {}).get("simulator")}
    nodes["hit_latency_ms"] = arm.get("hit_latency_ms")
    nodes["mood"] = arm.get("mood", "own")  # how users react is theirs
    if _simulated(panel):
        nodes["llm"] = arm["llm"]
    return flat(nodes)


def _simulated(panel: Panel) -> bool:
    llm: Mapping[str, Any] = panel.made["compositions"][panel.arm].get("llm") or {}
    return llm.get("_target_") == SIMULATED


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return sorted(key for key in {**before, **after} if before.get(key) != after.get(key))


def _shown(values: Mapping[str, Any], key: str) -> str:
    return json.dumps(values[key], ensure_ascii=False) if key in values else "absent"
