"""Replay of an update log with its state hashes: a book of 100 skills, most of whose batches are uses and renewals."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from skg_bench.assistant.pipeline.skillbook_table import SkillbookTable, Stamp, Stored
from skg_bench.core.batch import ADD, TAG, UPDATE, Batch, blank
from skg_bench.core.content import NAMES, Content
from skg_bench.core.grid import SCALE
from skg_bench.core.texts import Texts
from skg_bench.engine.vectors import Rows
from skg_bench.skillbook.skillbook import rebuild

SKILLS, BATCHES = 100, 100_000
MARK = 15.0  # seconds
MINUTE = 60


def log(batches: int) -> list[dict[str, Any]]:
    """Rows of an update log, an operation a batch, with the hashes that the skillbook table has after each."""
    texts = Texts([f"message {i}" for i in range(SKILLS)], ["name"], None)
    table = SkillbookTable(1).open(texts, Rows(np.eye(SKILLS, dtype=np.int16) * np.int16(SCALE)))
    rows = []
    for t in range(batches):
        batch, row = _operation(t, texts)
        now = np.array([t * MINUTE])
        stamp = Stamp(now, now, np.array([-1], np.int32), np.array([t], np.int32))
        table.apply(batch, stamp, Stored(now, np.array([t], np.int32)))
        state = {"book_version": int(table.version[0]), "book_hash": table.hash[0].astype("<u8").tobytes()}
        rows.append(
            {**row, "turn": t, "time": t * MINUTE, "after": -1, "born": None, "reason": "", "about": -1, **state}
        )
    return rows


def _operation(t: int, texts: Texts) -> tuple[Batch, dict[str, Any]]:
    """The batch of turn `t`, and what the log says of it."""
    skill = t if t < SKILLS else t * 7 % SKILLS
    op = ADD if t < SKILLS else UPDATE if t % 10 == 0 else TAG
    batch = blank(1)
    batch.row[:], batch.op[:], batch.skill[:] = 0, op, -1 if op == ADD else skill
    row: dict[str, Any] = dict.fromkeys(("name", "message", "rating", *NAMES))
    row |= {"op": ("ADD", "UPDATE", "TAG")[op], "skill": skill, "uses": 0, "source_turn": -1}
    if op == TAG:
        batch.rating[:], batch.uses[:] = 0, 1
        return batch, {**row, "rating": "ok", "uses": 1}
    content = Content("context", f"asked at {t}", "answer shortly", ("asked",))
    batch.source[:], batch.content[:] = t, texts.contents.add(content)
    row |= {"section": content.section, "issue": content.issue, "insight": content.insight, "keywords": "asked"}
    if op == ADD:
        batch.text[:], batch.name[:] = t, texts.names.start
        row |= {"name": "name", "message": f"message {t}"}
    return batch, {**row, "source_turn": t}


def rows(batches: int = BATCHES) -> Iterator[tuple[str, str, str, str]]:
    """Figure, measured, mark, ratio to the mark: for the table of all that is timed."""
    logged = log(batches)
    begun = time.perf_counter()
    rebuild(logged)
    seconds = time.perf_counter() - begun
    mark = MARK * batches / BATCHES
    yield f"replay of {batches:,} batches, {SKILLS} skills", f"{seconds:.2f} s", f"{mark:.2f}", f"{seconds / mark:.2f}x"
