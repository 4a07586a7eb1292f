"""Shards hold what was logged, and nothing else that was in the memory of the process."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@given(st.lists(st.sampled_from(("", "a", "b", "é", "a longer name")), max_size=6), st.data())
def test_a_dictionary_has_each_word_once_and_codes_keep_their_words(words: list[str], data: st.DataObject) -> None:
    codes = data.draw(st.lists(st.integers(-1, len(words) - 1), max_size=12))
    column = encoded(np.array(codes, np.int32), pa.array(words, pa.string()))
    assert column.to_pylist() == [None if code < 0 else words[code] for code in codes]
    distinct = column.dictionary.to_pylist()
    assert len(set(distinct)) == len(distinct)
