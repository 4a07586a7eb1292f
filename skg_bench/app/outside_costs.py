"""Costs of an assistant of somebody else before a run: messages, those of its controls, and how long they take."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from rich.console import Console

from skg_bench.app.prepared_run import PreparedRun
from skg_bench.app.run_identity import write_json
from skg_bench.assistant.python import Python
from skg_bench.core.arms import Arm
from skg_bench.core.assistant import Keeping
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import json_file
from skg_bench.engine.controls import control_turns

_PROBES = Path("runs") / ".probes"  # what `probe` measured here, by what it probed
_AS_FAST = ("controls", "scrambled", "shares", "frozen")  # parameters that change no time


def keep_time(node: Mapping[str, Any], assistant: Any, milliseconds: float) -> None:
    """Keep how long a message takes an assistant, which the node of a configuration describes, for `--dry-run`."""
    with suppress(OSError):  # a folder that nobody may write to: then it is not known
        _PROBES.mkdir(parents=True, exist_ok=True)
        write_json(_file(node, assistant), {"median_ms": milliseconds})


def _kept_time(node: Mapping[str, Any], assistant: Any) -> float | None:
    """Milliseconds of a message, as they were kept; None: it was not probed as it is now."""
    try:
        return float(json_file(_file(node, assistant))["median_ms"])
    except (UsageError, OSError, KeyError, TypeError, ValueError):
        return None


def _file(node: Mapping[str, Any], assistant: Any) -> Path:
    known = {key: value for key, value in node.items() if key not in _AS_FAST}
    text = assistant.source.digest() if isinstance(assistant, Python) else ""
    return _PROBES / f"{sha256(json.dumps([known, text], sort_keys=True, default=str).encode()).hexdigest()[:16]}.json"


def announce_outside(screen: Console, job: PreparedRun) -> None:
    """Print a line for each arm whose assistant is somebody else's."""
    for arm in job.plan.arms:
        for line in _lines(job, arm):
            screen.print(line, soft_wrap=True)


def _lines(job: PreparedRun, arm: Arm) -> Iterator[str]:
    match arm.assistant:
        case Keeping() as assistant:
            turns, controls = job.turns() // len(job.plan.arms), control_turns(job.plan, arm)
            before = f", and {controls:,} before and after for its controls" if controls else "; controls=false"
            took = _kept_time(job.composed.arms[arm.name]["assistant"], assistant)
            if took is None:
                time = "`skg-bench probe` with its overrides measures how long they take"
            else:
                time = f"{_duration(took * (turns + controls) / 1000)} at {took:.3g} ms each, as probe measured them"
            yield f"{arm.name}: about {turns:,} messages{before}; {time}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"about {max(seconds, 1):.0f} s"
    return f"about {seconds / 60:.0f} minutes" if seconds < 6000 else f"about {seconds / 3600:.1f} hours"
