"""Log of one arm of a run, by user and event: what was answered, how users reacted, and whether it was right. No other
column of truth is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.core.calendar import EPOCH
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I8, I32, I64
from skg_bench.core.types import RATINGS
from skg_bench.core.world import FALLBACK, OFFERS, PROMPTED, STORED
from skg_bench.runfolder.run import Run, ratings

SERVINGS: Mapping[str, int] = {"llm": FALLBACK, "stored": STORED, "prompted": PROMPTED}
"""Ways to serve that can be replayed, by their word in the log."""
RIGHT_ANSWER = "answer_correct"
"""Column of truth that is read."""
NAMELESS = "unnamed"
"""Name of a skill to which no user gave one."""
_NEVER = np.iinfo(np.int32).max
_TURNS = (
    "user", "turn", "event", "time", "message", "skill", "source_turn", "propensity", "serving", "offer", "cost_usd",
    "latency_ms", "learning_cost_usd",
)  # fmt: skip


@dataclass(frozen=True)
class ArmLog:
    """N turns of a log, by user and in order. `text` and `name` are places in `messages` and `names`."""

    messages: tuple[str, ...]
    names: tuple[str, ...]  # of skills; the last is NAMELESS
    start: I64  # [U + 1] place of the first turn of each user id; start[u] == start[u + 1]: user u has no turn
    user: I32  # [N]
    event: I32  # [N] number of the event; answers are referred to by it
    time: I64  # [N] seconds since the first Monday
    text: I32  # [N]
    how: I8  # [N] a value of SERVINGS
    skill: I32  # [N] -1: the LLM answered
    source_turn: I32  # [N] turn whose stored answer was given, -1: none
    source: I32  # [N] event whose answer was given or was in the prompt, -1: none
    propensity: F64  # [N]
    right: F64  # [N] 1 or 0; NaN: missing
    judged: F64  # [N] chance that `right` is not missing; NaN: nobody knows it
    expected: F64  # [N] `right`; where it is missing, what a model expects, or NaN
    estimated: F64  # [N] `right` if all were judged, else an estimate without bias; NaN: there is none
    rating: I8  # [N] index into RATINGS, -1: none was given
    delay: I64  # [N] seconds until the rating came
    offer: I8  # [N] index into OFFERS, -1: no offer
    name: I32  # [N] of the skill that stored this turn's answer, -1: none did
    kept: I32  # [N] turn at which a skill stored it; the largest int32: none did
    until: I32  # [N] turn at which the last skill dropped it; the largest int32: one holds it to the end
    cost_usd: F64  # [N]
    latency_ms: F64  # [N]
    learning_usd: F64  # [N]

    @cached_property
    def turn(self) -> I32:
        """Turn of the user `[N]`."""
        turns: I32 = (np.arange(len(self.user)) - self.start[self.user]).astype(np.int32)
        return turns

    @cached_property
    def place(self) -> I64:
        """Places `[U, E]` of turns among all N, by user and event; -1: the user has no such event."""
        width = int(self.event.max(initial=0)) + 1
        place = np.full((len(self.start) - 1, width), -1, np.int64)
        place[self.user, self.event] = np.arange(len(self.user))
        return place

    @property
    def audit(self) -> F64:
        """Variance `[N]` that `estimated` has as not all turns are judged, estimated from those that are."""
        some = ~np.isnan(self.right) & (self.judged < 1.0)
        spread: F64 = np.zeros(len(self.right))
        spread[some] = (self.estimated[some] - self.right[some]) ** 2 / (1.0 - self.judged[some])
        return spread

    @property
    def counts(self) -> I32:
        """Turns of each user id `[U]`."""
        counts: I32 = np.diff(self.start).astype(np.int32)
        return counts


def arm_log(run: Run, arm: str) -> ArmLog:
    """The log of an arm.

    Raises UsageError for answers that cannot be replayed, and for times out of order.
    """
    table = run.turns(arm, [*_TURNS, RIGHT_ANSWER])
    user, event = (table[name].to_numpy().astype(np.int32) for name in ("user", "event"))
    time = table["time"].cast(pa.int64()).to_numpy() // 1000 - EPOCH
    start = np.searchsorted(user, np.arange(int(run.manifest["users"]) + 1)).astype(np.int64)
    inner = np.flatnonzero((np.diff(time) < 0) & (np.diff(user) == 0))
    if len(inner):
        raise UsageError(
            f"{run.path}: arm {arm!r}, {_turn(table, int(inner[0]) + 1)}: its time is before that of "
            "the turn before; run it again"
        )
    texts = table["message"].combine_chunks()
    how, offer = _codes(table["serving"], list(SERVINGS)), _codes(table["offer"], OFFERS)
    if (how < 0).any():
        at = int((how < 0).argmax())
        raise UsageError(
            f"{run.path}: arm {arm!r}, {_turn(table, at)}: served as {table['serving'][at].as_py()!r}, and only "
            "answers of the LLM and of skills with serving=stored or prompted can be replayed; use --estimand step"
        )
    source_turn = table["source_turn"].to_numpy().astype(np.int32)
    skill = table["skill"].to_numpy().astype(np.int32)
    held = np.where(how == PROMPTED, _prompted(run, arm, table), source_turn)
    source = np.where(held >= 0, event[start[user] + np.maximum(held, 0)], -1).astype(np.int32)
    right: F64 = pc.cast(table[RIGHT_ANSWER], pa.float64()).combine_chunks().to_numpy(zero_copy_only=False)
    rating, delay = _ratings(run, arm, start, len(user))
    names, name, kept, until = _names(run, arm, start, len(user))
    return ArmLog(
        tuple(texts.dictionary.to_pylist()), names, start, user, event, time, texts.indices.to_numpy().astype(np.int32),
        how, skill, source_turn, source, table["propensity"].to_numpy(),
        right, np.where(np.isnan(right), nan, 1.0), right, right, rating, delay, offer, name, kept, until,
        *(table[name].to_numpy() for name in ("cost_usd", "latency_ms", "learning_cost_usd")),
    )  # fmt: skip


def _codes(column: pa.ChunkedArray, words: Sequence[str]) -> I8:
    codes: I8 = pc.index_in(column.cast(pa.string()), pa.array(words)).fill_null(-1).to_numpy().astype(np.int8)
    return codes


def _ratings(run: Run, arm: str, start: I64, n: int) -> tuple[I8, I64]:
    """Rating of each turn, and the seconds until it came."""
    table = ratings(run.feedback(arm, ["user", "turn", "time", "known_at", "kind", "value"]))
    at = start[table["user"].to_numpy()] + table["turn"].to_numpy()
    rating, delay = np.full(n, -1, np.int8), np.zeros(n, np.int64)
    rating[at] = _codes(table["rating"], RATINGS)
    given, known = (table[name].cast(pa.int64()).to_numpy() for name in ("time", "known_at"))
    delay[at] = (known - given) // 1000
    return rating, delay


def _prompted(run: Run, arm: str, turns: pa.Table) -> I64:
    """Turn whose answer the chosen skill held at each turn, from the log of updates; -1: none."""
    table = run.updates(arm, ["user", "turn", "skill", "source_turn"])
    table = table.filter(pc.greater_equal(table["source_turn"], 0))
    user, skill, turn, source = (
        table[name].to_numpy().astype(np.int64) for name in ("user", "skill", "turn", "source_turn")
    )
    whose, chosen, now = (turns[name].to_numpy().astype(np.int64) for name in ("user", "skill", "turn"))
    skills, width = max(int(skill.max(initial=0)), int(chosen.max(initial=0))) + 1, int(now.max(initial=0)) + 2
    order = np.argsort((user * skills + skill) * width + turn, kind="stable")
    keys, wanted = ((user * skills + skill) * width + turn)[order], (whose * skills + chosen) * width + now
    before = np.searchsorted(keys, wanted) - 1
    if not len(keys):
        return np.full(len(now), -1)
    same = (chosen >= 0) & (before >= 0) & (keys[np.maximum(before, 0)] // width == wanted // width)
    return np.where(same, source[order][np.maximum(before, 0)], -1)


def _names(run: Run, arm: str, start: I64, n: int) -> tuple[tuple[str, ...], I32, I32, I32]:
    """Names of skills; by turn, the name of the skill that stored its answer, and when it did and dropped it."""
    table = run.updates(arm, ["user", "turn", "op", "skill", "name", "source_turn"])
    words = table["name"].combine_chunks()
    user, skill, turn = (table[name].to_numpy().astype(np.int64) for name in ("user", "skill", "turn"))
    codes = words.indices.fill_null(-1).to_numpy().astype(np.int32)
    given = np.full((len(start), int(skill.max(initial=0)) + 1), -1, np.int32)  # by the operation that added the skill
    given[user[codes >= 0], skill[codes >= 0]] = codes[codes >= 0]
    source = table["source_turn"].to_numpy().astype(np.int64)
    held = source >= 0
    at = start[user[held]] + source[held]
    name, kept = np.full(n, -1, np.int32), np.full(n, _NEVER, np.int32)
    name[at] = given[user[held], skill[held]]
    np.minimum.at(kept, at, turn[held].astype(np.int32))
    until = np.full(n, -1, np.int32)
    changes = np.flatnonzero(held | pc.equal(table["op"].cast(pa.string()), "REMOVE").to_numpy())
    changes = changes[np.lexsort((changes, turn[changes], skill[changes], user[changes]))]
    first, later = changes[:-1], changes[1:]
    same = (user[first] == user[later]) & (skill[first] == skill[later])
    ends = np.full(len(held), _NEVER, np.int32)  # of what each operation stored
    ends[first[same]] = turn[later[same]]
    np.maximum.at(until, at, ends[held])
    return (*words.dictionary.to_pylist(), NAMELESS), name, kept, until


def _turn(table: pa.Table, at: int) -> str:
    return f"user {table['user'][at].as_py()}, turn {table['turn'][at].as_py()}"
