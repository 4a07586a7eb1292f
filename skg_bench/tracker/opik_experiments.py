"""Experiments of Opik: one for each arm, named by its verdict, with scores over all users of the run.

Each event is an item of one dataset, so that Opik shows the traced turns of all arms at an event side by side.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any
from uuid import UUID

from skg_bench.core.foreign import json_of, lines_of, text_of
from skg_bench.runfolder.run import Run
from skg_bench.tracker.events import trace_key
from skg_bench.tracker.verdict_words import verdicts_in_words

MOST_PARTS = 1000  # parts of a request: Opik takes no more
WINDOW = 6 * 3600 * 1000  # milliseconds
_LEVELS = 5  # of an arm: the first figures of a run, such as utility and the share of right answers
_LEARNING = "learning:"  # prefix of names of traces that are no turns


@dataclass(frozen=True, slots=True)
class OpikRequest:
    """A request that writes to Opik."""

    method: str
    path: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TracedTurn:
    """A turn of an arm, by the key of its trace."""

    key: int
    arm: str
    user: int
    turn: int
    message: str


def traced_turns(path: Path) -> list[TracedTurn]:
    """Traced turns of an event file."""
    turns = []
    for _, line in lines_of(path):
        event = json.loads((line or b"").decode())
        trace, about = event["trace"], event["trace"]["metadata"]
        if not trace["name"].startswith(_LEARNING):
            message = str(trace["input"]["message"])
            turns.append(TracedTurn(int(event["key"], 16), about["arm"], about["user"], about["turn"], message))
    return turns


def arm_experiments(run: Run, project: str) -> dict[str, dict[str, Any]]:
    """Bodies of experiments by arm, without ids: name, verdict and scores, from the run's summary.json."""
    summary = json_of(text_of(run.path / "summary.json"), run.path / "summary.json")
    words, bodies = verdicts_in_words(summary), dict[str, dict[str, Any]]()
    for arm in run.arms:
        says = words.get(arm) or ("the reference" if arm == summary["reference"] else "no verdict")
        gap = summary["differences"].get(arm, {}).get("utility", {})
        scores = {
            "difference in utility": gap.get("mean"),
            "difference in utility, low": gap.get("low_new"),
            "difference in utility, high": gap.get("high_new"),
        }
        levels = ((name, figure["mean"]) for name, figure in summary["arms"][arm].items())
        scores |= dict(islice(((name, mean) for name, mean in levels if _finite(mean)), _LEVELS))
        bodies[arm] = {
            "name": f"{arm}: {says}",
            "dataset_name": project,
            "status": "completed",
            "metadata": {"arm": arm, "verdict": says, "users": run.manifest["users"], **_origin(run)},
            "experiment_scores": [{"name": name, "value": value} for name, value in scores.items() if _finite(value)],
        }
    return bodies


def _origin(run: Run) -> dict[str, str]:
    return {"question": str(run.manifest["question"]), "identity": str(run.manifest["identity"])}


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and isfinite(value)


def requests(
    run: Run, project: str, turns: Sequence[TracedTurn], traces: Mapping[int, str], begins: int
) -> Iterator[OpikRequest]:
    """Requests that write the dataset with its items, the experiments, and their items, in this order.

    `traces`: ids of the turns' traces by key. `begins`: see `identifier`.
    """
    identity = str(run.manifest["identity"])

    def made(arm: str, user: int, turn: int, name: str, number: int = 0) -> str:
        return identifier(begins, number, int(trace_key(identity, arm, user, turn, name), 16))

    events = {(each.user, each.turn): each.message for each in turns}
    items = [
        {"id": made("", user, turn, "event", n), "source": "sdk", "data": {"user": user, "turn": turn, "message": text}}
        for n, ((user, turn), text) in enumerate(sorted(events.items()))
    ]
    places = {(item["data"]["user"], item["data"]["turn"]): item["id"] for item in items}  # type: ignore[index]
    for some in _cut(items):
        yield OpikRequest("PUT", "datasets/items", {"dataset_name": project, "items": some})
    ids = {arm: made(arm, -1, -1, "experiment", n) for n, arm in enumerate(run.arms)}
    for arm, body in arm_experiments(run, project).items():
        yield OpikRequest("POST", "experiments", {"id": ids[arm], **body})
    links = [
        {
            "id": made(each.arm, each.user, each.turn, "item", number),
            "experiment_id": ids[each.arm],
            "dataset_item_id": places[each.user, each.turn],
            "trace_id": traces[each.key],
        }
        for number, each in enumerate(turns)
    ]
    for some in _cut(links):
        yield OpikRequest("POST", "experiments/items", {"experiment_items": some})


def _cut(parts: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (parts[first : first + MOST_PARTS] for first in range(0, len(parts), MOST_PARTS))


def identifier(begins: int, number: int, key: int) -> str:
    """A UUID of version 7: milliseconds, a count in the order of the file (RFC 9562, 6.2, method 1), the key."""
    milliseconds, count = begins + (number >> 12), number & 0xFFF
    return str(UUID(int=milliseconds << 80 | 7 << 76 | count << 64 | 2 << 62 | key))
