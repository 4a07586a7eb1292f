"""Bodies of traces of learning: reflections, later feedback, and what became of the skillbook.

A learning job has a `learning:reflection`; one that later feedback began also has a `learning:KIND_feedback`. A turn at
which a skillbook changed, or a job ended, has a `learning:skillbook_update`, which names the jobs behind it: the
operations of a turn are one batch, applied at once, and each says about which turn it is, as the jobs do. They come
with all that a state hash covers, so that the file alone rebuilds every book.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from skg_bench.core.content import NAMES
from skg_bench.core.domain import Domain

TraceRow = dict[str, Any]
REFLECTION_TRACE, UPDATE_TRACE = (f"learning:{name}" for name in ("reflection", "skillbook_update"))  # names of traces
_COST = ("tokens_in", "tokens_cached", "tokens_out", "cost_usd", "latency_ms")
_JOB = ("about", "channel", "value", "result", "reason", "operations", "refused", "refusals", "version_read",
        "version_written")  # fmt: skip
_OPERATION = ("op", "skill", "name", "message", "source_turn", "rating", "uses", "after", "reason", "about")


def reflection(row: TraceRow) -> TraceRow:
    """Event of a reflection: what a model was asked to learn from a turn, what it made of that, and the cost (P37)."""
    return {
        **trace_frame(row, REFLECTION_TRACE, row["start"], _milliseconds(row)),
        "input": {name: row[name] for name in ("about", "channel", "value", "version_read")},
        "output": {**_reflected(row["reflection"]), "result": row["result"], "reason": row["reason"]},
        "metadata": {name: row[name] for name in ("arm", "user", "turn", "about", "channel", "served", *_COST)},
        "tags": [row["arm"], row["channel"], row["result"]],
    }


def later_feedback(domain: Domain, row: TraceRow, act: str | None) -> TraceRow:
    """Event of a later answer about a turn at which the user did `act`, and what was made of it (P39)."""
    later, acted = domain.kind(domain.later), domain.kind(domain.acted)
    before = -1 if act is None else acted.levels.index(act)
    return {
        **trace_frame(row, f"learning:{later.name}_feedback", row["start"], _milliseconds(row)),
        "input": {"about": row["about"], acted.name: act, later.name: row["value"]},
        "output": {
            "signal": domain.signal(domain.later, later.levels.index(row["value"]), before),
            "analysis": _reflected(row["reflection"])["analysis"],
        },
        "metadata": {name: row[name] for name in ("arm", "user", "turn", "about", "result")},
        "tags": [row["arm"], row["value"]],
    }


def update_trace(row: TraceRow, operations: Sequence[TraceRow], jobs: Sequence[TraceRow], skills: int) -> TraceRow:
    """A skillbook before and after a batch, every operation in between, and why (P38). `row`: of the turn log; of a
    book that was given before the first turn, one of the update log, and `skills` is how many there were.
    """
    ops = [operation["op"] for operation in operations]
    delta = ops.count("ADD") - ops.count("REMOVE")
    before = skills if row.get("book_size") is None else row["book_size"] - delta
    batch = operations[-1] if operations else row
    return {
        **trace_frame(row, UPDATE_TRACE, row["time"] + timedelta(milliseconds=row.get("latency_ms") or 0.0), 0.0),
        "input": {"skills": before},
        "output": {"skills": before + delta, "operations": [_operation(operation) for operation in operations]},
        "metadata": {
            **{name: row[name] for name in ("arm", "user", "turn")},
            "operations": len(operations), "delta": delta,
            "reasons": sorted({operation["reason"] for operation in operations}),
            "applied": trace_time(batch["time"]), "book_version": batch["book_version"],
            "book_hash": None if batch["book_hash"] is None else batch["book_hash"].hex(),
            **({"jobs": [{name: job[name] for name in _JOB} for job in jobs]} if jobs else {}),
        },
        "tags": [row["arm"], *sorted(set(ops))],
    }  # fmt: skip


def trace_frame(row: Mapping[str, Any], name: str, begins: datetime, milliseconds: float) -> TraceRow:
    """A thread is a user's life under one arm. Times of a run are local times without a zone; here they get UTC's."""
    return {
        "name": name,
        "start_time": trace_time(begins),
        "end_time": trace_time(begins + timedelta(milliseconds=milliseconds)),
        "thread_id": f"{row['arm']}/u{row['user']}",
    }


def trace_time(time: datetime) -> str:
    """As all traces write a time."""
    return f"{time.isoformat(timespec='milliseconds')}Z"


def content_fields(content: TraceRow) -> TraceRow:
    """Content of a skill, of a row that has it."""
    return {name: content[name] for name in NAMES}


def _operation(row: TraceRow) -> TraceRow:
    """Event of an operation, with what the skill says from then on, if that changed."""
    born = row["born"] and trace_time(row["born"])
    return (
        {name: row[name] for name in _OPERATION}
        | {"born": born}
        | ({} if row["section"] is None else content_fields(row))
    )


def _reflected(text: str | None) -> TraceRow:
    """The fields of a reflection; of one in other words, or hashed, these alone."""
    try:
        fields = json.loads(text or "")
    except ValueError:
        fields = None
    if not isinstance(fields, Mapping):
        fields = {"analysis": text}
    learnings = fields.get("new_learnings") or []
    return {
        "analysis": fields.get("analysis"),
        "helpful_skill_ids": fields.get("helpful_skill_ids") or [],
        "harmful_skill_ids": fields.get("harmful_skill_ids") or [],
        "new_learnings": len(learnings),
        "learnings": learnings,
    }


def _milliseconds(row: TraceRow) -> float:
    return float((row["end"] - row["start"]) / timedelta(milliseconds=1))
