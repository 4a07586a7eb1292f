"""`events.jsonl` of a run directory: one line for each turn, each change of a skillbook and each learning job of some
users, as Opik takes them.

A line is `{"key": hex, "trace": {...}}`. The key is a hash of (identity of the run, arm, user, turn, kind), so that a
line can be told from all others wherever it was delivered. The same run and the same choice give the same bytes.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import Literal

import numpy as np

from skg_bench.core import draws
from skg_bench.core.content import NAMES
from skg_bench.core.domain import Domain
from skg_bench.core.grid import I32
from skg_bench.core.temporary import private, temporary
from skg_bench.runfolder.hidden_hits import arms_without_hits
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.schema import REPLAYED_COLUMNS
from skg_bench.runfolder.telling import TraceNames
from skg_bench.tracker import learning_traces
from skg_bench.tracker.learning_traces import TraceRow

Texts = Literal["full", "hash"]
EVENTS_FILE = "events.jsonl"
TURN = "turn"  # the name of a trace, where the domain has none
# their messages are corpora: nobody said them
_OWN = "skg_bench.simulator.answers.world."
_SPOKEN = (  # columns that hold what somebody said, or what a model made of it
    "message", "matched_skill", "name", "intent", "request_type", "reflection", "refusals", *NAMES,
    "logged_user", "logged_id", "logged_answer", "stored_answer",
)  # fmt: skip
_OUTPUT = ("serving", "matched_skill", "source_turn", "user_satisfaction", "offer", "skill_learned")
_METADATA = (
    "arm", "user", "turn", "max_sim", "skill_score", "propensity", "explored", "tokens_in", "tokens_out", "cost_usd",
    "latency_ms", "book_size", "book_version", "answer_correct", "skill_correct", "intent", "request_type",
)  # fmt: skip
_READ = ("message", "fallback_to_llm", "time", "skill", "book_hash", *_OUTPUT, *_METADATA)
_LOGGED = tuple(field.name for field in REPLAYED_COLUMNS)
_AT_ONCE = 64  # users whose rows are in memory


def write_events(run: Run, users: int | None, texts: Texts | None) -> tuple[Path, int]:
    """Write the file, whole or not at all; returns where it is and the number of its lines.

    `users`: how many, chosen by key, so that fewer are among more; None: all. `texts` None: full where the messages are
    those of a corpus, hashed where somebody said them.
    """
    path, identity = run.path / EVENTS_FILE, str(run.manifest["identity"])
    hides = _hides(run) if texts is None else texts == "hash"
    half, lines = temporary(path), 0
    try:
        with open(half, "w", encoding="utf-8", opener=private) as file:
            for arm in run.arms:
                for trace in _traces(run, arm, traced_users(run, users), _hasher(identity) if hides else None):
                    about, name = trace["metadata"], trace["name"]
                    if "about" in about:  # a turn may have several
                        name = f"{name}/{about['about']}/{about.get('channel')}"
                    line = {"key": trace_key(identity, arm, about["user"], about["turn"], name), "trace": trace}
                    file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n")
                    lines += 1
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)
    return path, lines


def traced_users(run: Run, users: int | None) -> I32:
    """The users that are traced, in order: those whom the page shows are among the first of them."""
    everyone = np.arange(run.manifest["users"], dtype=np.int32)
    uniform = draws.draw(draws.key(run.manifest["seed"], everyone), 0, draws.Purpose.SAMPLE)
    chosen: I32 = np.sort(everyone[np.argsort(uniform, kind="stable")][:users])
    return chosen


def trace_key(identity: str, arm: str, user: int, turn: int, name: str) -> str:
    """Id of a trace: 62 bits as 16 hex digits."""
    whole = blake2b(f"{identity}/{arm}/{user}/{turn}/{name}".encode(), digest_size=8).digest()
    return f"{int.from_bytes(whole, 'big') >> 2:016x}"


def _hides(run: Run) -> bool:
    return not (run.telling.invented or str((run.config.get("simulator") or {}).get("_target_")).startswith(_OWN))


def _hasher(identity: str) -> Callable[[str], str]:
    """A pseudonym, not anonymity: who knows the run and guesses a text can confirm the guess."""
    return lambda text: blake2b(text.encode(), key=identity[:64].encode(), digest_size=8).hexdigest()


def _traces(run: Run, arm: str, users: I32, hashed: Callable[[str], str] | None) -> Iterator[TraceRow]:
    """Bodies of traces: each turn, and what was learned from it, by user and turn."""
    seen = not run.telling.imported and arm not in arms_without_hits(run)
    for first in range(0, len(users), _AT_ONCE):
        some = [int(user) for user in users[first : first + _AT_ONCE]]
        more = ("shortlist",) if run.telling.trace else _LOGGED if run.manifest.get("log") else ()
        columns = (*_READ, *(each.name for each in run.domain.outcome), *more)
        tables = run.turns(arm, columns, some), run.updates(arm, None, some), run.learning(arm, None, some)
        turns, updates, jobs = (table.to_pylist() for table in tables)
        for row in [*turns, *updates, *jobs]:
            row.update({name: _plain(value) for name, value in row.items() if isinstance(value, float)})
            if hashed is not None:
                row.update({name: hashed(row[name]) for name in _SPOKEN if row.get(name) is not None})
        if hashed is not None:
            for row in jobs:  # an error may quote the model, and the model a user
                row["reason"] = row["reason"] and hashed(row["reason"])
        lives, steps, attempts = (
            {key: list(rows) for key, rows in groupby(log, key=lambda row: row["user"])}
            for log in (turns, updates, jobs)
        )
        for user in some:
            yield from _life(run, lives.get(user, []), steps.get(user, []), attempts.get(user, []), hits_seen=seen)


def _life(
    run: Run, turns: Sequence[TraceRow], updates: Sequence[TraceRow], jobs: Sequence[TraceRow], *, hits_seen: bool
) -> Iterator[TraceRow]:
    """Events of one user: books that were given first, then turn by turn. `hits_seen`: it is known who answered."""
    steps = _by_turn(updates)
    attempts = _by_turn(jobs)
    later = _kind(run.domain, run.domain.later)
    acts = {row["turn"]: row.get(_kind(run.domain, run.domain.acted)) for row in turns}
    contents: dict[int, TraceRow] = {}  # by skill, what it says
    skills = 0
    begun = [(turn, steps[turn][0]) for turn in sorted(steps) if turn < 0]
    for turn, row in [*begun, *((row["turn"], row) for row in turns)]:
        operations, tried = steps.get(turn, []), attempts.get(turn, [])
        if turn >= 0:
            yield _turn(run, row, contents.get(row["skill"]), hits_seen=hits_seen)
        for job in tried:
            yield learning_traces.reflection(job)
            if job["channel"] == later:
                yield learning_traces.later_feedback(run.domain, job, acts.get(job["about"]))
        if operations or tried:
            change = learning_traces.update_trace(row, operations, tried, skills)
            skills = change["output"]["skills"]
            yield change
        contents |= {
            step["skill"]: learning_traces.content_fields(step) for step in operations if step["section"] is not None
        }


def _kind(domain: Domain, number: int) -> str:
    """Name of a kind of feedback; empty: none."""
    return domain.kind(number).name if number >= 0 else ""


def _by_turn(rows: Sequence[TraceRow]) -> dict[int, list[TraceRow]]:
    return {turn: list(some) for turn, some in groupby(rows, key=lambda row: row["turn"])}


def _plain(value: float) -> float | None:
    """Six digits are all that float32 holds; json has no NaN."""
    return round(value, 6) if isfinite(value) else None


def _turn(run: Run, row: TraceRow, content: TraceRow | None, *, hits_seen: bool) -> TraceRow:
    """Event of a turn: what somebody brought, what was done, what the served skill says; by the domain's names."""
    hit, right = not row["fallback_to_llm"], row["answer_correct"]
    answered = ["hit" if hit else "fallback"] if hits_seen else []
    verdict = [] if right is None else ["right" if right else "wrong"]
    trace = {
        **learning_traces.trace_frame(row, TURN, row["time"], row["latency_ms"]),
        "input": {"message": row["message"]},
        "output": {name: row[name] for name in _OUTPUT},
        "metadata": {name: row[name] for name in _METADATA},
        "tags": [row["arm"], *answered, *verdict],
    }
    if "logged_row" in row:
        known = {name: row[name] for name in _LOGGED if row[name] is not None}
        trace["metadata"] |= {**known, "logged_time": row["logged_time"].isoformat()}
    truth = {each.name: row[each.name] for each in run.domain.outcome if each.truth}
    if not run.telling.trace:
        open_fields = {each.name: row[each.name] for each in run.domain.outcome if not each.truth}
        trace["metadata"] |= {**open_fields, **({"truth": truth} if truth else {})}
        return trace
    (names,) = run.telling.trace
    output, metadata = ({name: row[name] for name in some} for some in (names.output, names.metadata))
    return {
        **trace,
        "name": trace_name(names, row),
        "output": {**trace["output"], **output, "shown": _shown(row), "says": content},
        "metadata": {**trace["metadata"], **metadata, "skill": row["skill"], "truth": truth},
        "tags": [row["arm"], *metadata.values(), *output.values(), names.hit if hit else row["serving"]],
    }


def _shown(row: TraceRow) -> list[int]:
    """The skills that could be chosen."""
    return [skill for skill in row["shortlist"] or () if skill >= 0]


def trace_name(names: TraceNames, row: TraceRow) -> str:
    """Name of a turn's trace, as the domain has it."""

    def level(match: re.Match[str]) -> str:
        return str(names.short.get(row[match[1]], row[match[1]]))

    return re.sub(r"\{(\w+)\}", level, names.name)
