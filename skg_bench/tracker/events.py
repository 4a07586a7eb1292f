"""`events.jsonl` of a run directory: one line for each turn, each learning step and each learning job of some users, as
Opik takes them.

A line is `{"key": hex, "trace": {...}}`. The key is a hash of (identity of the run, arm, user, turn, kind), so that a
line can be told from all others wherever it was delivered. The same run and the same choice give the same bytes.
"""

import json
import os
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from hashlib import blake2b
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import numpy as np

from skg_bench.core import draws
from skg_bench.core.content import NAMES
from skg_bench.core.grid import I32
from skg_bench.core.run import Run

Texts = Literal["full", "hash"]
Row = dict[str, Any]
FILE = "events.jsonl"
TURN, LEARNING, JOB = "turn", "learning:skillbook_update", "learning:job"  # names of traces
_OWN = "skg_bench.simulator.assistant."  # its messages are a corpus: nobody said them
_SPOKEN = (  # columns that hold what somebody said, or what a model made of it
    "message", "matched_skill", "name", "intent", "request_type", "reflection", "refusals", *NAMES,
)  # fmt: skip
_OUTPUT = ("serving", "matched_skill", "source_turn", "user_satisfaction", "offer", "skill_learned")
_METADATA = (
    "arm", "user", "turn", "max_sim", "skill_score", "propensity", "explored", "tokens_in", "tokens_out", "cost_usd",
    "latency_ms", "book_size", "book_version", "answer_correct", "skill_correct", "intent", "request_type",
)  # fmt: skip
_COST = ("tokens_in", "tokens_cached", "tokens_out", "cost_usd", "latency_ms")
_OPERATION = ("op", "skill", "name", "message", "source_turn", "rating", "uses", "reason")
_READ = ("message", "fallback_to_llm", "time", *_OUTPUT, *_METADATA)
_AT_ONCE = 64  # users whose rows are in memory


def write(run: Run, users: int | None, texts: Texts | None) -> tuple[Path, int]:
    """Write the file, whole or not at all; returns where it is and the number of its lines.

    `users`: how many, chosen by key, so that fewer are among more; None: all. `texts` None: full where the messages are
    those of a corpus, hashed where somebody said them.
    """
    path, identity = run.path / FILE, str(run.manifest["identity"])
    hides = _hides(run) if texts is None else texts == "hash"
    temporary, lines = path.with_name(f".{FILE}.{os.getpid()}"), 0
    try:
        with temporary.open("w", encoding="utf-8") as file:
            for arm in run.arms:
                for trace in _traces(run, arm, sample(run, users), _hasher(identity) if hides else None):
                    about, name = trace["metadata"], trace["name"]
                    if name == JOB:  # a turn may have several
                        name = f"{name}/{about['about']}/{about['channel']}"
                    line = {"key": key(identity, arm, about["user"], about["turn"], name), "trace": trace}
                    file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n")
                    lines += 1
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path, lines


def sample(run: Run, users: int | None) -> I32:
    """The users that are traced, in order: those whom the page shows are among the first of them."""
    everyone = np.arange(run.manifest["users"], dtype=np.int32)
    uniform = draws.draw(draws.key(run.manifest["seed"], everyone), 0, draws.Purpose.SAMPLE)
    chosen: I32 = np.sort(everyone[np.argsort(uniform, kind="stable")][:users])
    return chosen


def key(identity: str, arm: str, user: int, turn: int, name: str) -> str:
    """62 bits that tell one trace from all others, as 16 hex digits."""
    whole = blake2b(f"{identity}/{arm}/{user}/{turn}/{name}".encode(), digest_size=8).digest()
    return f"{int.from_bytes(whole, 'big') >> 2:016x}"


def _hides(run: Run) -> bool:
    return not str(run.config["simulator"]["_target_"]).startswith(_OWN)


def _hasher(identity: str) -> Callable[[str], str]:
    """A pseudonym, not anonymity: who knows the run and guesses a text can confirm the guess."""
    return lambda text: blake2b(text.encode(), key=identity[:64].encode(), digest_size=8).hexdigest()


def _traces(run: Run, arm: str, users: I32, hashed: Callable[[str], str] | None) -> Iterator[Row]:
    """Bodies of traces: each turn, and what was learned from it, by user and turn."""
    for first in range(0, len(users), _AT_ONCE):
        some = [int(user) for user in users[first : first + _AT_ONCE]]
        tables = run.turns(arm, _READ, some), run.updates(arm, None, some), run.learning(arm, None, some)
        turns, updates, jobs = (table.to_pylist() for table in tables)
        for row in [*turns, *updates, *jobs]:
            row.update({name: _plain(value) for name, value in row.items() if isinstance(value, float)})
            if hashed is not None:
                row.update({name: hashed(row[name]) for name in _SPOKEN if row.get(name) is not None})
        if hashed is not None:
            for row in jobs:  # an error may quote the model, and the model a user
                row["reason"] = row["reason"] and hashed(row["reason"])
        steps, attempts = (
            {at: list(rows) for at, rows in groupby(log, key=lambda row: (row["user"], row["turn"]))}
            for log in (updates, jobs)
        )
        for row in turns:
            yield _turn(row)
            yield from map(_job, attempts.get((row["user"], row["turn"]), ()))
            if (operations := steps.get((row["user"], row["turn"]))) is not None:
                yield _learning(row, operations)


def _plain(value: float) -> float | None:
    """Six digits are all that float32 holds; json has no NaN."""
    return round(value, 6) if isfinite(value) else None


def _turn(row: Row) -> Row:
    hit, right = not row["fallback_to_llm"], row["answer_correct"]
    verdict = [] if right is None else ["right" if right else "wrong"]
    return {
        **_frame(row, TURN, row["time"], row["latency_ms"]),
        "input": {"message": row["message"]},
        "output": {name: row[name] for name in _OUTPUT},
        "metadata": {name: row[name] for name in _METADATA},
        "tags": [row["arm"], "hit" if hit else "fallback", *verdict],
    }


def _learning(row: Row, operations: list[Row]) -> Row:
    """The skillbook before and after, and every operation in between."""
    ops = [operation["op"] for operation in operations]
    delta, after = ops.count("ADD") - ops.count("REMOVE"), row["book_size"]
    return {
        **_frame(row, LEARNING, row["time"] + timedelta(milliseconds=row["latency_ms"]), 0.0),
        "input": {"skills": after - delta},
        "output": {
            "skills": after,
            "operations": [_operation(operation) for operation in operations],
        },
        "metadata": {
            **{name: row[name] for name in ("arm", "user", "turn", "book_version")},
            "operations": len(operations), "delta": delta,
            "reasons": sorted({operation["reason"] for operation in operations}),
        },
        "tags": [row["arm"], *sorted(set(ops))],
    }  # fmt: skip


def _job(row: Row) -> Row:
    """What a model was asked to learn from a turn, what came of it, and what it cost."""
    milliseconds = (row["end"] - row["start"]) / timedelta(milliseconds=1)
    return {
        **_frame(row, JOB, row["start"], milliseconds),
        "input": {name: row[name] for name in ("about", "channel", "version_read")},
        "output": {
            name: row[name]
            for name in ("result", "reason", "reflection", "operations", "refused", "refusals", "version_written")
        },
        "metadata": {name: row[name] for name in ("arm", "user", "turn", "about", "channel", *_COST)},
        "tags": [row["arm"], row["result"]],
    }


def _operation(row: Row) -> Row:
    """What was done, with what the skill says from then on, if that changed (P38)."""
    says = () if row["section"] is None else NAMES
    return {name: row[name] for name in (*_OPERATION, *says)}


def _frame(row: Row, name: str, begins: datetime, milliseconds: float) -> Row:
    """A thread is a user's life under one arm. Times of a run are local times without a zone; here they get UTC's."""
    ends = begins + timedelta(milliseconds=milliseconds)
    return {
        "name": name,
        "start_time": f"{begins.isoformat(timespec='milliseconds')}Z",
        "end_time": f"{ends.isoformat(timespec='milliseconds')}Z",
        "thread_id": f"{row['arm']}/u{row['user']}",
    }
