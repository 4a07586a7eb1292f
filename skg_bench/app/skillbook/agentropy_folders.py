"""Skillbooks of a run, written as agentropy keeps them: a folder for each user."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from shutil import copy
from typing import Any

import numpy as np

from skg_bench.app.building import build
from skg_bench.app.progress import console
from skg_bench.app.skillbook.rebuilt import book, everybody, updates
from skg_bench.app.trust import FromFile, admitted
from skg_bench.core.abilities import AnswersInWords
from skg_bench.core.calendar import FIRST_MONDAY, first_monday, offsets_of
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import SCALE
from skg_bench.core.text import plural
from skg_bench.core.types import Embedder
from skg_bench.core.world import World
from skg_bench.runfolder.run import Run, made_here, ratings
from skg_bench.skillbook.agentropy import MODEL, TABLE, AgentropyIndex, write_agentropy
from skg_bench.skillbook.skillbook import Operation, Skillbook, apply


def convert_to_agentropy(
    path: Path, arm: str, users: Sequence[int], out: Path, *, trust: bool = False
) -> Mapping[str, int]:
    """Write `out/user-U` for each of `users`, or for all. Returns what is lost, by kinds.

    Raises UsageError for a folder that is there, and for what `write_folders` refuses.
    """
    run, screen = Run(path), console()
    chosen = users or everybody(run, arm)
    if clashes := [str(out / f"user-{user}") for user in chosen if (out / f"user-{user}").exists()]:
        raise UsageError(f"{clashes[0]} is there already; name another folder with --out")
    losses = write_folders(run, arm, dict.fromkeys(chosen, ()), out, trust=trust)
    count = plural(len(chosen), "skillbook")
    screen.print(f"{count} of arm {arm}, with vectors and signals: {out}/user-*", soft_wrap=True)
    pooled = _shared_scorer(run, arm).is_file()
    kept = f"{MODEL}: the pool's scorer" if pooled else f"no {MODEL}: a user's own scorer is not kept in a run"
    screen.print(kept, soft_wrap=True)
    return losses


def write_folders(
    run: Run, arm: str, changed: Mapping[int, Sequence[Operation]], out: Path, *, trust: bool = False
) -> Mapping[str, int]:
    """Write `out/user-U` for each user in `changed`: the skillbook at the end, after these operations. Returns what is
    lost, by kinds.

    Raises UsageError for an unknown arm or user, a redacted log, one that was changed since, and for a run whose
    simulator or embedder reaches something, unless that is trusted.
    """
    made_here(run, "a folder of skills")
    path, log = run.path, run.manifest.get("log") or {}
    if log.get("redacted"):
        raise UsageError(f"{path} has hashes in place of messages, of which no vectors can be made; run without redact")
    origin, seams = FromFile(str(path), trust), ("simulator", "embedder")
    admitted(origin, [(seam, seam, run.config[seam]) for seam in seams])
    simulator, embedder = (build(seam, run.config[seam], origin) for seam in seams)
    if simulator.digest != run.manifest["data"]["simulator"]:
        raise UsageError(f"{path} was made from other data than {run.config['simulator']['path']} now holds")
    monday = first_monday(run.manifest)
    if offsets := offsets_of(run.manifest):
        monday = monday.replace(tzinfo=timezone(timedelta(seconds=offsets[0][1])))
    shared, lost = _shared_scorer(run, arm), Counter[str]()
    for user, operations in changed.items():
        folder, skillbook = out / f"user-{user}", book(run, arm, user)
        if operations:
            skillbook = apply(skillbook, operations)
        made = _index(run, arm, user, skillbook, simulator=simulator, embedder=embedder, monday=monday)
        write_agentropy(folder, made, monday)
        lost.update("answers without words" for answers in made.answers if None in answers)
        if shared.is_file():
            copy(shared, folder / MODEL)  # and its mode
    return dict(lost)


def _shared_scorer(run: Run, arm: str) -> Path:
    """File of the scorer that an arm's users share, which need not be there."""
    return run.path / "pool" / f"{arm}.json"


def _index(
    run: Run, arm: str, user: int, skillbook: Skillbook, *, simulator: World[Any], embedder: Embedder, monday: datetime
) -> AgentropyIndex:
    """A user's skillbook, and all that was logged on the way to it. `monday`: when the run's first one was."""
    turns = run.turns(arm, users=[user]).to_pylist()
    replies = _answers(turns, simulator)
    sources: dict[int, list[int]] = {skill.id: [] for skill in skillbook.skills}
    for row in updates(run, arm, user):
        if row["message"] is not None:
            sources[row["skill"]].append(row["source_turn"])
    answers = tuple(tuple(replies[t] if t >= 0 else None for t in sources[skill.id]) for skill in skillbook.skills)
    messages = [message for skill in skillbook.skills if skill.active for message in skill.examples]
    at = {message: i for i, message in enumerate(dict.fromkeys(messages))}
    vectors = embedder.embed(list(at))[[at[m] for m in messages]] if messages else np.zeros((0, 0))
    late = {row["turn"]: row["rating"] for row in ratings(run.feedback(arm, users=[user])).to_pylist()}
    signals = tuple(_signal(row, replies, late, monday) for row in turns)
    return AgentropyIndex(skillbook, answers, (vectors / SCALE).astype(np.float32), signals)


def _answers(turns: Sequence[Mapping[str, Any]], simulator: World[Any]) -> list[str | None]:
    """Answers of the LLM at each turn, in words; None where a skill did, or nobody wrote it down: wrong answers
    of a simulated LLM have no words.
    """
    words: Sequence[str | None] = (
        simulator.answers if isinstance(simulator, AnswersInWords) else [None] * len(simulator.types)
    )
    answer_by_type = dict(zip(simulator.types, words, strict=True))
    return [
        answer_by_type[row["request_type"]]
        if row["fallback_to_llm"] and row["request_type"] is not None and row["answer_correct"] is not False
        else None
        for row in turns
    ]


def _signal(
    row: Mapping[str, Any], replies: Sequence[str | None], late: Mapping[int, str], monday: datetime
) -> dict[str, Any]:
    """A line of the signal table: the rating is the one known at the end."""
    source = row["source_turn"] if row["source_turn"] >= 0 else row["turn"]
    when: datetime = monday + (row["time"] - FIRST_MONDAY)
    known = {"user_satisfaction": row["user_satisfaction"] or late.get(row["turn"])}
    return {
        **{name: row[name] for name in TABLE}, **known, "answer": replies[source],
        "time": (when - timedelta(microseconds=when.microsecond)).isoformat(),
    }  # fmt: skip
