"""A run directory read back: what is no run, of another version, or torn is said with its name."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skg_bench.core import schema
from skg_bench.core.errors import UsageError
from skg_bench.core.run import Run, ratings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two feedback shards, the later users first; a torn shard of turns."""
    known = {"schema": schema.VERSION, "arms": ["skg", "skg2", "idle"], "config": {"seed": 3}}
    (tmp_path / "manifest.json").write_text(json.dumps(known))
    for log in ("turns", "updates", "feedback", "learning"):
        (tmp_path / log).mkdir()
    for shard, users in (("skg.0000000-2", [5, 1]), ("skg.0000002-2", [2, 4]), ("skg2.0000000-1", [9])):
        rows = {f.name: [0] * 4 for f in schema.FEEDBACK} | {
            "arm": ["skg"] * 4, "kind": ["rating", "agrees", "rating", "rating"],
            "value": ["ok", "same", "ok", "partial"], "user": [users[0]] * 2 + [users[-1]] * 2,
            "turn": [7, 1, 3, 2],
        }  # fmt: skip
        pq.write_table(pa.table(rows, schema=schema.FEEDBACK), tmp_path / "feedback" / f"{shard}.parquet")
    (tmp_path / "turns" / "skg.0000000-4.parquet").write_bytes(b"PAR1 cut off")
    (tmp_path / "updates" / "skg.0000000-4.parquet").write_bytes(b"")
    return tmp_path


def test_rows_come_by_user_and_turn_from_the_shards_of_that_arm_only(folder: Path) -> None:
    table = Run(folder).feedback("skg")
    assert list(zip(table["user"].to_pylist(), table["turn"].to_pylist(), strict=True)) == [
        (1, 2), (1, 3), (2, 1), (2, 7), (4, 2), (4, 3), (5, 1), (5, 7),
    ]  # fmt: skip
    assert Run(folder).feedback("skg", ["value"], users=[4]).to_pydict() == {
        "value": ["partial", "ok"], "user": [4, 4], "turn": [2, 3],
    }  # fmt: skip


def test_ratings_are_the_feedback_of_that_kind_alone(folder: Path) -> None:
    table = ratings(Run(folder).feedback("skg", ["kind", "value"]))
    assert table.to_pydict() == {
        "rating": ["partial", "ok", "ok", "partial", "ok", "ok"], "user": [1, 1, 2, 4, 4, 5],
        "turn": [2, 3, 7, 2, 3, 7],
    }  # fmt: skip


def test_configuration_and_arms_come_from_the_manifest(folder: Path) -> None:
    assert Run(folder).arms == ["skg", "skg2", "idle"]
    assert Run(folder).config == {"seed": 3}


@pytest.mark.parametrize("log", ["turns", "updates"])
def test_a_torn_or_empty_shard_is_named(folder: Path, log: str) -> None:
    with pytest.raises(UsageError, match=r"skg\.0000000-4\.parquet is torn or unreadable .* delete it and run again"):
        getattr(Run(folder), log)("skg")


def test_unknown_arms_and_missing_shards_are_said(folder: Path) -> None:
    with pytest.raises(UsageError, match="has no arm 'sgk'; it has skg, skg2, idle"):
        Run(folder).turns("sgk")
    with pytest.raises(UsageError, match="has no feedback of arm 'idle' yet; finish it"):
        Run(folder).feedback("idle")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not valid json"),
        ('{"schema": 99}', "schema version 99, this is version 8"),
        ("{}", "schema version None"),
    ],
)
def test_a_manifest_of_another_kind_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=r"it has no manifest\.json"):
        Run(tmp_path)
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(UsageError, match=says):
        Run(tmp_path)


@pytest.mark.parametrize("text", ["[]", "null", "3"])
def test_a_manifest_that_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(UsageError, match="manifest"):
        Run(tmp_path)
