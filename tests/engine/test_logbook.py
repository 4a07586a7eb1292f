"""Shards hold what was logged, and nothing else that was in the memory of the process."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.feedback import RATING, Feedback
from skg_bench.engine.cohort import Setting
from skg_bench.engine.logbook import Logbook
from skg_bench.runfolder.encoding import encoded
from tests.laws import world

SECRET = b"sk-never-to-be-shared "


def leave_secrets() -> None:
    """Fill memory with the secret and free it, as a process does that has held messages and keys: blocks of all sizes
    that a page may have, from the allocators of Arrow, of NumPy and of Python.
    """
    blocks: list[Any] = []
    for size in [2**power + step * 2**power // 8 for power in range(8, 20) for step in range(8)]:
        text = SECRET * (size // len(SECRET) + 1)
        buffer = pa.allocate_buffer(size)
        np.frombuffer(buffer, np.uint8)[:] = np.frombuffer(text, np.uint8, size)
        blocks += [buffer, np.frombuffer(text, np.uint8, size).copy(), bytearray(text)]


def test_shards_hold_no_memory_that_was_freed_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain(pq.ParquetWriter):  # type: ignore[misc]
        """Writes the same pages, which compression would hide."""

        def __init__(self, *given: Any, **how: Any) -> None:
            leave_secrets()
            super().__init__(*given, **how | {"compression": "none", "compression_level": None})

    monkeypatch.setattr(pq, "ParquetWriter", Plain)
    run = world.run(tmp_path / "run", world.MANY, 250, 1, world.LARGE)
    shards = world.shards(run)
    assert len(shards) == 12
    assert [name for name in shards if SECRET[:8] in (run.path / name).read_bytes()] == []


@settings(deadline=None)
@given(st.lists(st.sampled_from(("", "a", "b", "é", "a longer name")), max_size=6), st.data())
def test_a_dictionary_has_each_word_once_and_codes_keep_their_words(words: list[str], data: st.DataObject) -> None:
    codes = data.draw(st.lists(st.integers(-1, len(words) - 1), max_size=12))
    column = encoded(np.array(codes, np.int32), pa.array(words, pa.string()))
    assert column.to_pylist() == [None if code < 0 else words[code] for code in codes]
    distinct = column.dictionary.to_pylist()
    assert len(set(distinct)) == len(distinct)


def test_each_row_of_feedback_of_a_turn_is_in_the_log() -> None:
    plan = world.plan(2, ("skg",))
    labels = Setting(plan.seed, plan.simulator, lambda: pytest.fail("nothing is routed"), plan.weeks).labels(())
    users, skill = np.array([9, 5], np.int32), np.array([3, -1], np.int32)
    book = Logbook.empty("skg", 0, users, np.array([2, 2], np.int32), top_k=1, labels=labels)
    some = Feedback(np.arange(2), np.full(2, RATING, np.int32), np.array([2, 0], np.int32), np.array([0, 60]))
    for turn in (0, 1):
        book.feedback(turn, some, np.array([100, 200]) + turn, skill)
    rows = book.table("feedback").sort_by([("user", "ascending"), ("turn", "ascending")]).to_pylist()
    assert [(row["user"], row["turn"], row["value"], row["skill"]) for row in rows] == [
        (5, 0, "ok", -1), (5, 1, "ok", -1), (9, 0, "miss", 3), (9, 1, "miss", 3),
    ]  # fmt: skip
    assert [(row["known_at"] - row["time"]).total_seconds() for row in rows] == [60, 60, 0, 0]
