"""Shards: whatever happens to a file, no reader takes it for what was written."""

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.errors import UsageError
from skg_bench.runfolder import schema, shards

RUN = "a run"


def turns(users: list[int], words: list[str | None], order: list[int] | None = None) -> pa.Table:
    """A turn each, in any order of rows, whose dictionary is in the order of the first use."""
    rows = range(len(users)) if order is None else order
    return pa.table({
        "user": pa.array([users[i] for i in rows], pa.int32()), "turn": pa.array([0 for _ in rows], pa.int32()),
        "message": pa.array([words[i] for i in rows], pa.string()).dictionary_encode(),
    })  # fmt: skip


def logs(table: pa.Table, updates: pa.Table | None = None) -> Callable[[shards.LogName], pa.Table]:
    """With empty logs beside."""
    made: dict[shards.LogName, pa.Table] = {
        "turns": table, "updates": schema.UPDATES.empty_table() if updates is None else updates,
        "feedback": schema.FEEDBACK.empty_table(), "learning": schema.LEARNING_LOG.empty_table(),
    }  # fmt: skip
    return made.__getitem__


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A shard of two users."""
    for log in shards.LOGS:
        (tmp_path / log).mkdir()
    shards.write_shard(tmp_path, RUN, "skg", 0, logs(turns([0, 1], ["b", "a"])))
    return tmp_path


def test_a_shard_is_a_parquet_file_that_any_reader_reads(folder: Path) -> None:
    file = shards.path(folder, "turns", "skg", 0)
    assert pq.read_table(file, partitioning=None)["message"].to_pylist() == ["b", "a"]
    assert pq.read_table(file, partitioning=None, page_checksum_verification=True).num_rows == 2
    assert shards.fault(folder, RUN, "skg", 0) == ""


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["a", "b", "é", None])), max_size=30), st.randoms())
@settings(max_examples=40, deadline=None)
def test_the_bytes_depend_on_the_rows_alone(rows: list[tuple[int, str | None]], random: Random) -> None:
    users, words = [user for user, _ in rows], [word for _, word in rows]
    one_each = sorted(dict(zip(users, words, strict=True)).items())
    order = list(range(len(one_each)))
    random.shuffle(order)
    label = shards.Label(RUN, "turns", "skg", 0, len(one_each), {})
    tables = [turns([u for u, _ in one_each], [w for _, w in one_each], o) for o in (None, order)]
    cut = pa.concat_tables([tables[1].slice(0, len(order) // 2), tables[1].slice(len(order) // 2)])
    made = [io.BytesIO() for _ in range(3)]
    for table, file in zip((*tables, cut), made, strict=True):
        shards.encode(shards.canonical(table), label, file)
    assert made[0].getvalue() == made[1].getvalue() == made[2].getvalue()


def test_every_flipped_bit_is_found(folder: Path) -> None:
    file = shards.path(folder, "turns", "skg", 0)
    whole = file.read_bytes()
    rng = np.random.default_rng(5)
    for bit in rng.choice(8 * len(whole), 300, replace=False).tolist():
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        file.write_bytes(data)
        shards._verified.cache_clear()
        with pytest.raises(UsageError, match=r"skg\.0000000\.parquet is torn or was changed .*makes this file again"):
            shards.belonging(folder, RUN, "turns", "skg", 0)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.99])
def test_a_cut_file_is_found(folder: Path, part: float) -> None:
    file = shards.path(folder, "updates", "skg", 0)
    file.write_bytes(file.read_bytes()[: int(part * file.stat().st_size)])
    assert "skg.0000000.parquet is torn or was changed" in shards.fault(folder, RUN, "skg", 0)


@pytest.mark.parametrize("log", shards.LOGS)
def test_a_lost_file_is_found(folder: Path, log: shards.LogName) -> None:
    shards.path(folder, log, "skg", 0).unlink()
    assert f"{log}/skg.0000000.parquet is missing; run the same command again" in shards.fault(folder, RUN, "skg", 0)


def test_a_file_of_another_place_is_found(folder: Path) -> None:
    shards.write_shard(folder, "another run", "frozen", 0, logs(turns([0, 1], ["b", "c"])))
    shards.write_shard(folder, RUN, "skg", 1, logs(turns([256], ["b"])))
    assert "belongs to another run" in shards.fault(folder, RUN, "frozen", 0)
    shutil.copy(shards.path(folder, "turns", "skg", 1), shards.path(folder, "turns", "skg", 0))
    assert "belongs to turns of arm 'skg', shard 1" in shards.fault(folder, RUN, "skg", 0)


def test_a_log_of_the_same_place_that_belongs_to_other_turns_is_found(folder: Path) -> None:
    rows = {f.name: pa.nulls(1, f.type) for f in schema.UPDATES} | {"user": [1], "turn": [0]}
    updates = pa.table(rows, schema=pa.schema([f.with_nullable(True) for f in schema.UPDATES]))
    before = shards.path(folder, "updates", "skg", 0).read_bytes()
    shards.write_shard(folder, RUN, "skg", 0, logs(turns([0, 1], ["b", "a"]), updates))
    shards.path(folder, "updates", "skg", 0).write_bytes(before)
    assert "does not belong to the turns beside it" in shards.fault(folder, RUN, "skg", 0)


def test_a_folder_that_is_gone_is_not_made_again(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))
    with pytest.raises(FileNotFoundError):
        shards.write_shard(folder, RUN, "skg", 1, logs(turns([256], ["b"])))
    assert not folder.exists()


def test_users_are_in_the_shard_of_their_number() -> None:
    assert (shards.count(0), shards.count(1), shards.count(256), shards.count(257)) == (0, 1, 1, 2)
    assert (shards.users_of(0, 300), shards.users_of(1, 300)) == (range(256), range(256, 300))
