"""The baseline file: the figures that a gate compares with, and how much worse is too much.

One line a user, so that a change of results is a readable diff. It is json (FORMAT 1):

    format, arm
    margins: metric -> the harm that is too much, in the metric's unit; these metrics block. A person edits them.
    cumulative: how many margins may be lost since the last release
    made: {commit, dirty, versions, config, compositions, data, code}          of the run, as in its manifest
    digests: {events, and every column of the turn log}
    counts: names of tally.COUNTS, in the order in which each user's totals stand
    users: id -> [turns, totals, outcomes]

`outcomes`: two bits a turn (answered from the skillbook, answered wrongly), first all of the one and then all of the
other, packed (numpy.packbits), compressed (zlib) and written in base 64. So flips can be named without the old run.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skg_bench.analysis.counts.tally import COUNTS
from skg_bench.analysis.gate.panel import EVENTS, Panel, needed
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import Bool

FORMAT = 1
# A hundredth of a right answer, and half a percentage point; what is wrong per hit scatters more, as hits are few.
MARGINS = {"utility": 0.01, "err_per_request": 0.005, "err_per_hit": 0.03, "hit_rate": 0.005}
CUMULATIVE = 2.0


@dataclass(frozen=True)
class Baseline:
    """A panel, and the policy of the gate."""

    panel: Panel
    margins: Mapping[str, float]
    cumulative: float


def read(path: Path) -> Baseline:
    """The baseline in a file.

    Raises UsageError when there is none, when it is corrupt or of another format.
    """
    if not path.is_file():
        raise UsageError(f"{path} is no baseline file; write one with `skg-bench gate --baseline {path} --update RUN`")
    again = f"take it from version control again, or delete it and write it with `--baseline {path} --update RUN`"
    try:
        content = json.loads(path.read_text("utf-8"))
        if content["format"] != FORMAT:
            raise UsageError(f"{path} has format {content['format']!r}, this version reads {FORMAT}; {again}")
        baseline = _read(content)
    except (KeyError, TypeError, ValueError, AttributeError, zlib.error) as error:
        raise UsageError(f"{path} is corrupt ({type(error).__name__}: {error}); {again}") from error
    for name, margin in baseline.margins.items():
        if not 0 < margin < float("inf"):
            raise UsageError(f"{path}: margins.{name}={margin!r} must be above 0: the harm that is too much")
    if not baseline.margins or not baseline.cumulative >= 1:
        raise UsageError(f"{path}: margins must name a metric, and cumulative={baseline.cumulative!r} be 1 or more")
    return baseline


def _read(content: Mapping[str, Any]) -> Baseline:
    names, users = list(content["counts"]), dict(content["users"])
    outcomes = [_unpacked(packed, turns) for turns, _, packed in users.values()]
    totals = np.array([total for _, total, _ in users.values()], np.float64).reshape(len(users), len(names))
    hit, wrong = (np.concatenate([outcome[column] for outcome in outcomes]) for column in (0, 1))
    turns = np.array([turns for turns, _, _ in users.values()], np.int64)
    counts = {name: totals[:, at] for at, name in enumerate(names)}
    start = np.cumsum(turns) - turns
    for name, mask in (("hit", hit), ("wrong", wrong), ("wrong_hit", hit & wrong)):
        if name in counts and not np.array_equal(np.add.reduceat(mask.astype(np.float64), start), counts[name]):
            raise ValueError(f"totals of {name} are not those of the outcomes")
    if not (np.isfinite(totals).all() and set(names) <= set(COUNTS) and EVENTS in content["digests"]):
        raise ValueError("totals or digests are not such")
    ids = np.array([int(user) for user in users], np.int64)
    if not (np.diff(ids) > 0).all():
        raise ValueError("users are not in order")
    panel = Panel(content["arm"], ids, turns, counts, hit, wrong, dict(content["digests"]), dict(content["made"]))
    margins = {str(name): float(margin) for name, margin in content["margins"].items()}
    return Baseline(panel, margins, float(content["cumulative"]))


def text(baseline: Baseline) -> str:
    """What the file holds."""
    panel = baseline.panel
    names = needed(baseline.margins, panel.utility)
    head = {
        "format": FORMAT, "arm": panel.arm, "margins": dict(baseline.margins), "cumulative": baseline.cumulative,
        "made": panel.made, "digests": dict(panel.digests), "counts": names,
    }  # fmt: skip
    totals = np.stack([panel.counts[name] for name in names], axis=1)
    ends = np.cumsum(panel.turns)
    lines = []
    for row, user in enumerate(panel.users.tolist()):
        span = slice(int(ends[row] - panel.turns[row]), int(ends[row]))
        numbers = [int(x) if x == int(x) else x for x in totals[row].tolist()]
        line = [int(panel.turns[row]), numbers, _packed(panel.hit[span], panel.wrong[span])]
        lines.append(f'  "{user}": {json.dumps(line)}')
    opened = json.dumps(head, indent=1, ensure_ascii=False, allow_nan=False).removesuffix("\n}")
    return opened + ',\n "users": {\n' + ",\n".join(lines) + "\n }\n}\n"


def _packed(hit: Bool, wrong: Bool) -> str:
    return base64.b64encode(zlib.compress(np.packbits(np.concatenate([hit, wrong])).tobytes(), 9)).decode()


def _unpacked(packed: str, turns: int) -> tuple[Bool, Bool]:
    bits = np.frombuffer(zlib.decompress(base64.b64decode(packed, validate=True)), np.uint8)
    if turns < 1 or bits.size != -(-2 * turns // 8):
        raise ValueError("outcomes are not of as many turns as said")
    both = np.unpackbits(bits, count=2 * turns).astype(np.bool_)
    return both[:turns], both[turns:]
