"""The logs of one cohort under one arm: filled step by step, then written as three shards."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skg_bench.core import schema
from skg_bench.core.assistant import Applied
from skg_bench.core.batch import OPERATIONS, Batch
from skg_bench.core.content import NAMES, Content
from skg_bench.core.feedback import KINDS, Feedback
from skg_bench.core.grid import I32, I64, U64
from skg_bench.core.texts import Texts
from skg_bench.core.types import CAUSES, RATINGS
from skg_bench.core.world import OFFERS, hits

EPOCH = 1_767_571_200  # Monday 2026-01-05 00:00, seconds of the Unix clock
_SERVINGS = ("llm", "stored", "prompted", "procedure", "procedure_failed")
_LEVELS = tuple(level for levels in KINDS.values() for level in levels)
_FIRST_LEVEL = np.cumsum([0, *(len(levels) for levels in KINDS.values())])


@dataclass(frozen=True)
class Labels:
    """The words behind the ids in the logs. Two ids may have the same word, as two skills may have the same name."""

    texts: Texts
    messages: pa.Array  # of the world
    names: pa.Array  # of the world
    intents: pa.Array
    types: pa.Array
    reasons: pa.Array

    def message(self, text: I32) -> pa.DictionaryArray:
        """Texts in words, as a rule messages of the world; of negative ids: null."""
        return self._text(text, 0, self.messages)

    def name(self, text: I32) -> pa.DictionaryArray:
        """Texts in words, as a rule names of the world; of negative ids: null."""
        return self._text(text, self.texts.names.start, self.names)

    def contents(self, key: U64) -> dict[str, pa.DictionaryArray]:
        """What skills say, one column for each field; of key 0: null."""
        distinct, index = np.unique(key, return_inverse=True)
        shown = self.texts.contents.shown(distinct)
        return {name: _sorted([_field(content, name) for content in shown], index) for name in NAMES}

    def _text(self, text: I32, first: int, words: pa.Array) -> pa.DictionaryArray:
        """Where others are among them, the dictionary is in order of the words: ids depend on the process's past."""
        some = text >= 0
        ids, codes = text[some], np.full(len(text), -1, np.int32)
        if not len(ids) or (ids.min() >= first and ids.max() < first + len(words)):
            codes[some] = ids - first
            return _word(codes, words)
        used, index = np.unique(ids, return_inverse=True)
        shown = self.texts.shown(used)
        rank = {word: i for i, word in enumerate(sorted(set(shown)))}
        codes[some] = np.array([rank[word] for word in shown])[index]
        return _word(codes, pa.array(list(rank), pa.string()))


class TurnWriter(Protocol):
    """Where a step writes."""

    def turn(self, t: int, **values: np.ndarray) -> None: ...

    def update(self, t: int, batch: Batch, applied: Applied) -> None: ...

    def feedback(self, t: int, feedback: Feedback, time: I64, skill: I32) -> None: ...


class NullWriter:
    """Discards everything: for runs whose logs are not needed."""

    def turn(self, t: int, **values: np.ndarray) -> None:
        """Discarded."""

    def update(self, t: int, batch: Batch, applied: Applied) -> None:
        """Discarded."""

    def feedback(self, t: int, feedback: Feedback, time: I64, skill: I32) -> None:
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
            "max_sim": table(np.float32), "matched_skill": table(np.int32), "skill_score": table(np.float32),
            "user_satisfaction": table(np.int8), "skill_learned": table(np.bool_), "skill": table(np.int32),
            "source_turn": table(np.int32), "propensity": table(np.float64), "explored": table(np.bool_),
            "serving": table(np.int8), "offer": table(np.int8), "agrees": table(np.int8), "tokens_in": table(np.int32),
            "tokens_out": table(np.int32), "cost_usd": table(np.float64), "latency_ms": table(np.float64),
            "book_size": table(np.int32), "book_version": table(np.int32), "book_hash": table(np.uint64, 2),
            "shortlist": table(np.int32, top_k), "similarity": table(np.float32, top_k),
            "preference": table(np.float32, top_k), "score": table(np.float32, top_k),
            "combined": table(np.float32, top_k), "answer_correct": table(np.int8),
            "cause": table(np.int8),
        }  # fmt: skip
        return cls(arm, seed, user, n, top_k, labels, start, columns, [], [])

    def split(self, arms: Sequence[str]) -> list["Logbook"]:
        """The logbooks of the arms of a stack: row `u * A + j` is user u under `arms[j]`."""
        n, updates, feedbacks = len(arms), _joined(self.updates), _joined(self.feedbacks)
        parts = []
        for j, arm in enumerate(arms):
            columns = {name: column[j::n] for name, column in self.columns.items()}
            logs = _own(updates, j, n), _own(feedbacks, j, n)
            rows = self.user[j::n], self.n[j::n]
            flat = self.start // n
            parts.append(Logbook(arm, self.seed, *rows, self.top_k, self.labels, flat, columns, *logs, self.filled))
        return parts

    def turn(self, t: int, **values: np.ndarray) -> None:
        """Values of turn `t` of the rows still there, one array a column; a shortlist may be shorter than `top_k`."""
        at = slice(self.start[t], self.start[t + 1])
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
             "content": batch.content, "reason": batch.reason, "book_version": applied.version[r],
             "book_hash": applied.hash[r]}
        )  # fmt: skip

    def feedback(self, t: int, feedback: Feedback, time: I64, skill: I32) -> None:
        """What was said of turn `t`; `time` of the turn and `skill` that answered are of all rows, `[B]`."""
        row, f = feedback.row, feedback
        self.feedbacks.append(
            {"row": row, "turn": np.full(len(row), t, np.int32), "time": time[row], "known_at": time[row] + f.delay,
             "skill": skill[row], "kind": f.kind, "value": f.value}
        )  # fmt: skip

    def write(self, out: Path, shard: str) -> None:
        """The three shards; that of the turns comes last, and its being there means that all are."""
        _save(self._update_table(), out / "updates" / f"{self.arm}.{shard}.parquet")
        _save(self._feedback_table(), out / "feedback" / f"{self.arm}.{shard}.parquet")
        _save(self._turn_table(), out / "turns" / f"{self.arm}.{shard}.parquet")

    def _turn_table(self) -> pa.Table:
        labels = self.labels
        row, turn = np.nonzero(np.arange(len(self.start) - 1)[None, :] < self.n[:, None])
        user = self.user[row]

        at = self.start[turn] + row

        def flat(name: str) -> np.ndarray:
            column: np.ndarray = self.columns[name][at]
            return column

        hit = hits(flat("serving"))
        names = np.char.add(np.char.add("u", user.astype("U9")), np.char.add("-t", turn.astype("U9")))
        shortlists = {
            k: _lists(flat(k), self.top_k) for k in ("shortlist", "similarity", "preference", "score", "combined")
        }
        values = {
            "user_msg_id": pa.array(names, pa.string()),
            "message": labels.message(flat("message")),
            "matched_skill": labels.name(flat("matched_skill")),
            "fallback_to_llm": ~hit,
            "user_satisfaction": _word(flat("user_satisfaction"), pa.array(RATINGS)),
            "arm": _word(np.zeros(len(row), np.int32), pa.array([self.arm])),
            "seed": np.full(len(row), self.seed, np.int64),
            "user": user,
            "turn": turn.astype(np.int32),
            "event": flat("event"),
            "time": _time(flat("time")),
            "serving": _word(flat("serving"), pa.array(_SERVINGS)),
            "offer": _word(flat("offer"), pa.array(OFFERS)),
            "agrees": pa.array(flat("agrees") == 1, mask=flat("agrees") < 0),
            "book_hash": _hash(flat("book_hash")),
            **shortlists,
            "skill_correct": pa.array(flat("answer_correct") > 0, mask=~hit | (flat("answer_correct") < 0)),
            "answer_correct": pa.array(flat("answer_correct") > 0, mask=flat("answer_correct") < 0),
            "cause": _word(flat("cause"), pa.array(CAUSES)),
            "intent": _word(flat("intent"), labels.intents),
            "request_type": _word(flat("request_type"), labels.types),
            "answerable": pa.array(flat("answerable"), mask=flat("answerable") < 0),
        }
        wanted = schema.turns(self.top_k)
        empty = self.columns.keys() - self.filled if len(row) else set()
        values |= {name: _nulls(wanted.field(name).type, len(row)) for name in empty & set(wanted.names)}
        arrays = [values[f.name] if f.name in values else flat(f.name) for f in wanted]
        return pa.table([pa.array(a, f.type) for a, f in zip(arrays, wanted, strict=True)], schema=wanted)

    def _update_table(self) -> pa.Table:
        flat = _gather(self.updates, self.user)
        n, labels = len(flat["row"]), self.labels
        values = {
            "arm": _word(np.zeros(n, np.int32), pa.array([self.arm])),
            "user": self.user[flat["row"]],
            "turn": flat["turn"],
            "time": _time(flat["time"]),
            "op": _word(flat["op"], pa.array(OPERATIONS)),
            "skill": flat["skill"],
            "name": labels.name(flat["name"]),
            "message": labels.message(flat["message"]),
            "source_turn": flat["source_turn"],
            "rating": _word(flat["rating"], pa.array(RATINGS)),
            "uses": flat["uses"],
            "after": flat["after"],
            "born": _time(flat["born"], none=flat["source_turn"] < 0),
            **labels.contents(flat["content"].astype(np.uint64)),
            "reason": _word(flat["reason"], labels.reasons),
            "book_version": flat["book_version"],
            "book_hash": _hash(flat["book_hash"]),
        }
        return pa.table([pa.array(values[f.name], f.type) for f in schema.UPDATES], schema=schema.UPDATES)

    def _feedback_table(self) -> pa.Table:
        flat = _gather(self.feedbacks, self.user)
        values = {
            "arm": _word(np.zeros(len(flat["row"]), np.int32), pa.array([self.arm])),
            "user": self.user[flat["row"]],
            "turn": flat["turn"],
            "time": _time(flat["time"]),
            "known_at": _time(flat["known_at"]),
            "skill": flat["skill"],
            "kind": _word(flat["kind"], pa.array(list(KINDS))),
            "value": _word(_FIRST_LEVEL[flat["kind"]] + flat["value"], pa.array(_LEVELS)),
        }
        return pa.table([pa.array(values[f.name], f.type) for f in schema.FEEDBACK], schema=schema.FEEDBACK)


_UPDATE_KEYS = (
    "row", "turn", "time", "op", "skill", "name", "message", "source_turn", "rating", "uses", "after", "born",
    "content", "reason", "book_version", "book_hash", "known_at", "kind", "value",
)  # fmt: skip


def _joined(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """All parts one after the other; empty if there are none."""
    return {k: np.concatenate([p[k] for p in parts]) for k in parts[0]} if parts else {}


def _own(flat: dict[str, np.ndarray], arm: int, n_arms: int) -> list[dict[str, np.ndarray]]:
    """What belongs to one arm of a stack."""
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


def _field(content: Content | None, name: str) -> str | None:
    """A field of a content as logs have it."""
    if content is None:
        return None
    word: str | None = " ".join(content.keywords) if name == "keywords" else getattr(content, name)
    return word


def _sorted(words: Sequence[str | None], index: np.ndarray) -> pa.DictionaryArray:
    """`words[index]`, whose dictionary is in order of the words; None is null."""
    ordered = sorted({word for word in words if word is not None})
    rank = {word: i for i, word in enumerate(ordered)}
    codes = np.array([-1 if word is None else rank[word] for word in words], np.int32)
    return _word(codes[index], pa.array(ordered, pa.string()))


def _word(codes: np.ndarray, words: pa.Array) -> pa.DictionaryArray:
    """Codes to words; negative codes are null.

    The dictionary has each word once. Where a word stands twice, Arrow's Parquet writer reserves room for both, writes
    one, and fills the page with whatever the process had in memory there.
    """
    none, distinct = codes < 0, words.dictionary_encode()  # costs nothing for words that are encoded already
    codes, words = codes.astype(np.int32), distinct.dictionary
    codes[~none] = distinct.indices.to_numpy()[codes[~none]]
    if len(codes) < len(words):  # a small shard holds only the words that it uses, or they would be most of its bytes
        used, index = np.unique(codes[~none], return_inverse=True)
        codes[~none], words = index, words.take(pa.array(used))
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=none) if none.any() else pa.array(codes), words)


def _time(seconds: I64, none: np.ndarray | None = None) -> pa.Array:
    return pa.array(((seconds + EPOCH) * 1000).astype("datetime64[ms]"), pa.timestamp("ms"), mask=none)


def _hash(state: U64) -> pa.Array:
    raw = np.ascontiguousarray(state.astype("<u8")).tobytes()
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(state), [None, pa.py_buffer(raw)])


def _nulls(kind: pa.DataType, n: int) -> pa.Array:
    """A list of a fixed size is one of nulls: Arrow's Parquet reader refuses files where the list itself is null."""
    if not pa.types.is_fixed_size_list(kind):
        return pa.nulls(n)
    return pa.FixedSizeListArray.from_arrays(pa.nulls(n * kind.list_size, kind.value_type), kind.list_size)


def _lists(values: np.ndarray, size: int) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(values).reshape(-1)), size)


def _save(table: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            pq.write_table(table, file, compression="zstd", compression_level=1)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)
