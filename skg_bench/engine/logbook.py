"""The logs of one cohort under one arm: filled step by step, then made tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.core.assistant import Applied
from skg_bench.core.batch import OPERATIONS, TAG_RATINGS, TAKEN_BACK, Batch
from skg_bench.core.calendar import EPOCH
from skg_bench.core.feedback import Feedback
from skg_bench.core.grid import I32, I64, U64
from skg_bench.core.learning_jobs import COURSE_COUNTS, RESULTS, Course, Jobs
from skg_bench.core.types import CAUSES, RATINGS
from skg_bench.core.world import OFFERS, hit_mask
from skg_bench.engine.labels import Labels
from skg_bench.runfolder import schema
from skg_bench.runfolder.encoding import encoded
from skg_bench.runfolder.shards import LogName

_SERVINGS = ("llm", "stored", "prompted", "procedure", "procedure_failed", "silent", "leaked")
_HELD: Mapping[str, type[np.generic]] = {"words": np.int32, "bool": np.bool_, "int": np.int32, "float": np.float64}


class TurnWriter(Protocol):
    """Writer of a step."""

    def turn(self, t: int, **values: np.ndarray) -> None: ...

    def update(self, t: int, batch: Batch, applied: Applied) -> None: ...

    def feedback(self, t: int, feedback: Feedback, time: I64, skill: I32) -> None: ...

    def learning(self, t: int, jobs: Jobs, time: I64, course: Course | None) -> None: ...


class NullWriter:
    """Discards everything: for runs whose logs are not needed."""

    def turn(self, t: int, **values: np.ndarray) -> None:
        """Discarded."""

    def update(self, t: int, batch: Batch, applied: Applied) -> None:
        """Discarded."""

    def feedback(self, t: int, feedback: Feedback, time: I64, skill: I32) -> None:
        """Discarded."""

    def learning(self, t: int, jobs: Jobs, time: I64, course: Course | None) -> None:
        """Discarded."""


@dataclass
class Logbook:
    """Columns of turns, lists of updates and of feedback.

    Columns are flat: turn `t` of row `r` stands at `start[t] + r`, as the rows still there at a turn come first.
    """

    arm: str
    seed: int
    user: I32  # [B] ids
    n: I32  # [B] turns, falling
    top_k: int
    labels: Labels
    start: I64  # [T + 1]
    columns: dict[str, np.ndarray]
    updates: list[dict[str, np.ndarray]]
    feedbacks: list[dict[str, np.ndarray]]
    jobs: list[dict[str, np.ndarray]]
    filled: set[str] = field(default_factory=set)  # columns that were written to; the others are null

    @classmethod
    def empty(cls, arm: str, seed: int, user: I32, n: I32, *, top_k: int, labels: Labels) -> "Logbook":
        """A logbook with room for `n` `[B]` turns of each user, falling."""
        here = np.searchsorted(-n, -np.arange(n.max(initial=0)), side="left")
        start = np.concatenate([[0], np.cumsum(here)])

        def table(kind: type[np.generic], *more: int) -> np.ndarray:
            return np.zeros((int(start[-1]), *more), kind)

        columns = {
            "message": table(np.int32), "event": table(np.int32), "time": table(np.int64), "intent": table(np.int32),
            "request_type": table(np.int32), "answerable": table(np.int32), "used_up": table(np.bool_),
            "max_sim": table(np.float32), "matched_skill": table(np.int32),
            "skill_score": np.full(int(start[-1]), np.nan, np.float32),
            "user_satisfaction": table(np.int8), "skill_learned": table(np.bool_), "skill": table(np.int32),
            "source_turn": table(np.int32), "propensity": table(np.float64), "explored": table(np.bool_),
            "serving": table(np.int8), "offer": table(np.int8), "agrees": table(np.int8), "tokens_in": table(np.int32),
            "tokens_out": table(np.int32), "cost_usd": table(np.float64), "latency_ms": table(np.float64),
            "learning_tokens_in": table(np.int32), "learning_tokens_out": table(np.int32),
            "learning_cost_usd": table(np.float64),
            "book_size": table(np.int32), "book_version": table(np.int32), "book_hash": table(np.uint64, 2),
            "shortlist": table(np.int32, top_k), "similarity": table(np.float32, top_k),
            "preference": table(np.float32, top_k), "score": table(np.float32, top_k),
            "combined": table(np.float32, top_k), "answer_correct": table(np.int8),
            "cause": table(np.int8), **{each.name: table(_HELD[each.stored]) for each in labels.domain.outcome},
        }  # fmt: skip
        if labels.domain.in_words:
            columns["said"] = table(np.int32)
        return cls(arm, seed, user, n, top_k, labels, start, columns, [], [], [])

    def split(self, arms: Sequence[str]) -> list["Logbook"]:
        """The logbooks of the arms of a stack: row `u * A + j` is user u under `arms[j]`.

        This one is of no use afterwards: its lists are emptied, to make room for the new ones.
        """
        n, rest = len(arms), list[dict[str, np.ndarray]]()
        for log in (self.updates, self.feedbacks, self.jobs):
            rest.append(_joined(log))
            log.clear()
        parts = []
        for j, arm in enumerate(arms):
            columns = {name: column[j::n] for name, column in self.columns.items()}
            updates, feedbacks, jobs = (_own(log, j, n) for log in rest)
            user, turns, flat = self.user[j::n], self.n[j::n], self.start // n
            logbook = Logbook(
                arm, self.seed, user, turns, self.top_k, self.labels, flat, columns, updates, feedbacks, jobs,
                self.filled,
            )  # fmt: skip
            parts.append(logbook)
        return parts

    def turn(self, t: int, **values: np.ndarray) -> None:
        """Values of turn `t` of the rows still there, one array a column; a shortlist may be shorter than `top_k`."""
        self.put(slice(self.start[t], self.start[t + 1]), values)

    def put(self, at: slice, values: Mapping[str, np.ndarray]) -> None:
        """Values of the turns that stand at `at`."""
        self.filled.update(values)
        for name, value in values.items():
            column = self.columns[name]
            if value.ndim == 2 and value.shape[1] < column.shape[1]:
                column[at, value.shape[1] :] = -1 if name == "shortlist" else 0
                column[at, : value.shape[1]] = value
            else:
                column[at] = value

    def update(self, t: int, batch: Batch, applied: Applied) -> None:
        """A batch of turn `t`, with the skill of each operation, as it was applied."""
        r = batch.row
        self.updates.append(
            {"row": r, "turn": np.full(len(r), t, np.int32), "time": applied.time[r], "op": batch.op,
             "skill": batch.skill, "name": batch.name, "message": batch.text, "source_turn": batch.source,
             "rating": batch.rating, "uses": batch.uses, "after": applied.last_skill[r], "born": applied.born,
             "content": batch.content, "reason": batch.reason, "about": batch.about, "book_version": applied.version[r],
             "book_hash": applied.hash[r]}
        )  # fmt: skip

    def feedback(self, t: int, feedback: Feedback, time: I64, skill: I32) -> None:
        """Write feedback on turn `t`; `time` of the turn and `skill` that answered are of all rows, `[B]`."""
        row, f = feedback.row, feedback
        self.feedbacks.append(
            {"row": row, "turn": np.full(len(row), t, np.int32), "time": time[row], "known_at": time[row] + f.delay,
             "skill": skill[row], "kind": f.kind, "value": f.value}
        )  # fmt: skip

    def learning(self, t: int, jobs: Jobs, time: I64, course: Course | None) -> None:
        """Learning jobs that ended by turn `t`, or took no time at it; `time` of the turn is of all rows, `[B]`."""
        columns = {f.name: getattr(jobs, f.name) for f in fields(jobs) if f.name != "turn"}
        n, start = len(jobs.row), 1000 * time[jobs.row]
        if course is None:
            end = start + np.rint(jobs.latency_ms).astype(np.int64)
            nothing = np.full(n, -1, np.int32)
            course = Course(np.full(n, t, np.int32), start, end, *(nothing for _ in COURSE_COUNTS))
        when = {f.name: getattr(course, f.name) for f in fields(course) if f.name != "begun"}
        self.jobs.append({**columns, **when, "turn": course.begun, "about": jobs.turn})

    def table(self, log: LogName) -> pa.Table:
        """One of the four logs. It is made once: of the other logs than turns nothing is kept, as the turns need the
        room.
        """
        if log == "turns":
            return self._turn_table()
        make, parts = {
            "updates": (self._update_table, self.updates), "feedback": (self._feedback_table, self.feedbacks),
            "learning": (self._learning_table, self.jobs),
        }[log]  # fmt: skip
        table = make()
        parts.clear()
        return table

    def _turn_table(self) -> pa.Table:
        labels = self.labels
        row = np.repeat(by_user := np.argsort(self.user), self.n[by_user])
        turn = np.arange(len(row)) - np.repeat(np.cumsum(self.n[by_user]) - self.n[by_user], self.n[by_user])
        user = self.user[row]

        at = self.start[turn] + row

        def flat(name: str) -> np.ndarray:
            column: np.ndarray = self.columns[name][at]
            return column

        hit = hit_mask(flat("serving"))
        who, when = (pa.array(number).cast(pa.string()) for number in (user, turn))
        shortlists = {
            k: _lists(flat(k), self.top_k) for k in ("shortlist", "similarity", "preference", "score", "combined")
        }
        values = {
            "user_msg_id": pc.binary_join_element_wise("u", who, "-t", when, ""),
            "message": labels.message(flat("message")),
            "matched_skill": labels.name(flat("matched_skill")),
            "skill_score": _known(flat("skill_score")),
            "fallback_to_llm": ~hit,
            "user_satisfaction": encoded(flat("user_satisfaction"), pa.array(RATINGS)),
            "arm": encoded(np.zeros(len(row), np.int32), pa.array([self.arm])),
            "seed": np.full(len(row), self.seed, np.int64),
            "user": user,
            "turn": turn.astype(np.int32),
            "event": flat("event"),
            "time": _time(flat("time")),
            "serving": encoded(flat("serving"), pa.array(_SERVINGS)),
            "offer": encoded(flat("offer"), pa.array(OFFERS)),
            "agrees": pa.array(flat("agrees") == 1, mask=flat("agrees") < 0),
            "book_hash": _hash(flat("book_hash")),
            **{name: pa.array(flat(name), from_pandas=True) for name in ("cost_usd", "latency_ms")},  # NaN: not known
            **shortlists,
            "skill_correct": pa.array(flat("answer_correct") > 0, mask=~hit | (flat("answer_correct") < 0)),
            "answer_correct": pa.array(flat("answer_correct") > 0, mask=flat("answer_correct") < 0),
            "cause": encoded(flat("cause"), pa.array(CAUSES)),
            "intent": encoded(flat("intent"), labels.intents),
            "request_type": encoded(flat("request_type"), labels.types),
            "answerable": pa.array(flat("answerable"), mask=flat("answerable") < 0),
        }
        if labels.domain.in_words:
            values["said"] = labels.written(flat("said"))
        values |= {each.name: labels.outcome(each, flat(each.name)) for each in labels.domain.outcome}
        if labels.log is not None:
            source = flat("source_turn")
            stored = np.where(source >= 0, self.columns["event"][self.start[np.maximum(source, 0)] + row], -1)
            values |= labels.log.logged(user, flat("event"), stored.astype(np.int32))
        wanted = schema.turns(self.top_k, labels.domain.outcome, in_words=labels.domain.in_words)
        empty = self.columns.keys() - self.filled if len(row) else set()
        empty |= {field.name for field in schema.REPLAYED_COLUMNS} - values.keys()
        values |= {name: _nulls(wanted.field(name).type, len(row)) for name in empty & set(wanted.names)}
        arrays = [values[f.name] if f.name in values else flat(f.name) for f in wanted]
        return pa.table([pa.array(a, f.type) for a, f in zip(arrays, wanted, strict=True)], schema=wanted)

    def _update_table(self) -> pa.Table:
        flat = _gather(self.updates, self.user)
        n, labels = len(flat["row"]), self.labels
        ratings = TAG_RATINGS if (flat["rating"] >= TAKEN_BACK).any() else RATINGS
        values = {
            "arm": encoded(np.zeros(n, np.int32), pa.array([self.arm])),
            "user": self.user[flat["row"]],
            "turn": flat["turn"],
            "time": _time(flat["time"]),
            "op": encoded(flat["op"], pa.array(OPERATIONS)),
            "skill": flat["skill"],
            "name": labels.name(flat["name"]),
            "message": labels.message(flat["message"]),
            "source_turn": flat["source_turn"],
            "rating": encoded(flat["rating"], pa.array(ratings)),
            "uses": flat["uses"],
            "after": flat["after"],
            "born": _time(flat["born"], none=flat["source_turn"] < 0),
            **labels.contents(flat["content"].astype(np.uint64)),
            "reason": encoded(flat["reason"], labels.reasons),
            "about": flat["about"],
            "book_version": flat["book_version"],
            "book_hash": _hash(flat["book_hash"]),
        }
        return pa.table([pa.array(values[f.name], f.type) for f in schema.UPDATES], schema=schema.UPDATES)

    def _learning_table(self) -> pa.Table:
        flat, labels = _gather(self.jobs, self.user), self.labels
        n, trigger = len(flat["row"]), labels.feedback(flat["kind"], flat["value"])
        values = {
            "arm": encoded(np.zeros(n, np.int32), pa.array([self.arm])),
            "user": self.user[flat["row"]],
            "channel": trigger["kind"],
            "value": trigger["value"],
            **{name: _stamp(flat[name] + 1000 * EPOCH) for name in ("start", "end")},
            **{name: pa.array(flat[name].astype(np.int32), mask=flat[name] < 0) for name in COURSE_COUNTS},
            "result": encoded(flat["result"], pa.array(RESULTS)),
            **{name: labels.written(flat[name].astype(np.int32)) for name in ("reflection", "refusals", "reason")},
            "served": labels.plain(flat["served"].astype(np.int32)),
        }
        arrays = [values[f.name] if f.name in values else flat[f.name] for f in schema.LEARNING_LOG]
        wanted = zip(arrays, schema.LEARNING_LOG, strict=True)
        return pa.table([pa.array(a, f.type) for a, f in wanted], schema=schema.LEARNING_LOG)

    def _feedback_table(self) -> pa.Table:
        flat = _gather(self.feedbacks, self.user)
        values = {
            "arm": encoded(np.zeros(len(flat["row"]), np.int32), pa.array([self.arm])),
            "user": self.user[flat["row"]],
            "turn": flat["turn"],
            "time": _time(flat["time"]),
            "known_at": _time(flat["known_at"]),
            "skill": flat["skill"],
            **self.labels.feedback(flat["kind"], flat["value"]),
        }
        return pa.table([pa.array(values[f.name], f.type) for f in schema.FEEDBACK], schema=schema.FEEDBACK)


_UPDATE_KEYS = (
    "row", "turn", "time", "op", "skill", "name", "message", "source_turn", "rating", "uses", "after", "born",
    "content", "reason", "book_version", "book_hash", "known_at", "kind", "value", "about", "result", "operations",
    "refused", "tokens_in", "tokens_cached", "tokens_out", "cost_usd", "latency_ms", "reflection", "refusals",
    "served", "version_read", "version_written", "reason", "start", "end", *COURSE_COUNTS,
)  # fmt: skip


def _joined(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """All parts one after the other; empty if there are none."""
    return {k: np.concatenate([p[k] for p in parts]) for k in parts[0]} if parts else {}


def _own(flat: dict[str, np.ndarray], arm: int, n_arms: int) -> list[dict[str, np.ndarray]]:
    """Rows of one arm of a stack."""
    if not flat:
        return []
    mask = flat["row"] % n_arms == arm
    return [{k: v[mask] // n_arms if k == "row" else v[mask] for k, v in flat.items()}]


def _gather(parts: list[dict[str, np.ndarray]], user: I32) -> dict[str, np.ndarray]:
    """All parts by user, keeping the order within a user."""
    flat = _joined(parts)
    if not flat:
        empty = {k: np.zeros(0, np.int64) for k in _UPDATE_KEYS}
        return empty | {"book_hash": np.zeros((0, 2), np.uint64)}
    order = np.argsort(user[flat["row"]], kind="stable")
    return {k: v[order] for k, v in flat.items()}


def _time(seconds: I64, none: np.ndarray | None = None) -> pa.Array:
    return _stamp((seconds + EPOCH) * 1000, none)


def _stamp(milliseconds: I64, none: np.ndarray | None = None) -> pa.Array:
    return pa.array(milliseconds.astype("datetime64[ms]"), pa.timestamp("ms"), mask=none)


def _hash(state: U64) -> pa.Array:
    raw = np.ascontiguousarray(state.astype("<u8")).tobytes()
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(state), [None, pa.py_buffer(raw)])


def _known(values: np.ndarray) -> pa.Array:
    unknown = np.isnan(values)
    return pa.array(values, mask=unknown if unknown.any() else None)


def _nulls(kind: pa.DataType, n: int) -> pa.Array:
    """A list of a fixed size is one of nulls: Arrow's Parquet reader refuses files where the list itself is null."""
    if not pa.types.is_fixed_size_list(kind):
        return pa.nulls(n)
    return pa.FixedSizeListArray.from_arrays(pa.nulls(n * kind.list_size, kind.value_type), kind.list_size)


def _lists(values: np.ndarray, size: int) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(values).reshape(-1)), size)
