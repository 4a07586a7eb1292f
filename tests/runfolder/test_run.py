"""A run directory read back: what is no run, of another version, or torn is said with its name."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.runfolder import manifest, schema
from skg_bench.runfolder.manifest import MANIFEST
from skg_bench.runfolder.run import Run, ratings
from tests.runs import save, write_logs

USERS = [5, 1, 2, 4, 270]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Feedback of five users in two shards; a torn shard of updates; an arm without turns."""
    save(
        tmp_path,
        {"schema": schema.SCHEMA_VERSION, "arms": ["skg", "skg2", "idle"], "config": {"seed": 3}, "users": 271},
    )
    for arm, users in (("skg", USERS), ("skg2", [9])):
        n = len(users)
        rows = {f.name: [0] * 2 * n for f in schema.FEEDBACK} | {
            "arm": [arm] * 2 * n, "kind": ["rating", "agrees", *["rating"] * 8][: 2 * n],
            "value": ["ok", "same", "ok", *["partial"] * 7][: 2 * n], "user": [user for user in users for _ in "ab"],
            "turn": [7, 1, *[3, 2] * (n - 1)],
        }  # fmt: skip
        logs = {log: kind.empty_table() for log, kind in _KINDS.items()}
        write_logs(tmp_path, arm, 271, logs | {"feedback": pa.table(rows, schema=schema.FEEDBACK)})
    (tmp_path / "updates" / "skg.0000000.parquet").write_bytes(b"PAR1 cut off")
    return tmp_path


_KINDS = {
    "turns": schema.turns(3), "updates": schema.UPDATES, "feedback": schema.FEEDBACK, "learning": schema.LEARNING_LOG,
}  # fmt: skip


def test_rows_come_by_user_and_turn_from_the_shards_of_that_arm_only(folder: Path) -> None:
    table = Run(folder).feedback("skg")
    assert list(zip(table["user"].to_pylist(), table["turn"].to_pylist(), strict=True)) == [
        (1, 2), (1, 3), (2, 2), (2, 3), (4, 2), (4, 3), (5, 1), (5, 7), (270, 2), (270, 3),
    ]  # fmt: skip


def test_an_unknown_column_is_no_torn_file(folder: Path) -> None:
    """Once, a misspelt column was said to be a torn file, which the same command would make again."""
    with pytest.raises(UsageError, match=r"has no column 'vlaue' of feedback; did you mean 'value'\? valid: .*kind"):
        Run(folder).feedback("skg", ["vlaue"])


def test_only_the_shard_of_the_users_is_read(folder: Path) -> None:
    file = folder / "feedback" / "skg.0000001.parquet"
    file.write_bytes(b"torn")
    assert Run(folder).feedback("skg", ["value"], users=[4]).to_pydict() == {
        "value": ["partial", "partial"], "user": [4, 4], "turn": [2, 3],
    }  # fmt: skip
    with pytest.raises(UsageError, match=r"skg\.0000001\.parquet is torn"):
        Run(folder).feedback("skg", ["value"], users=[270])
    assert Run(folder).feedback("skg", users=[3000]).num_rows == 0


def test_columns_of_a_replayed_log_are_there_if_one_was_replayed_or_if_they_are_named(folder: Path) -> None:
    replayed = [field.name for field in schema.REPLAYED_COLUMNS]
    simulated = schema.turns(3).names[: -len(replayed)]
    run = Run(folder)
    assert run.turns("skg").column_names == simulated
    assert list(run.turns("skg").to_pandas()) == simulated
    assert run.turns("skg", ["logged_id"]).column_names == ["logged_id", "user", "turn"]
    run.manifest["log"] = {"rows": 1}
    assert run.turns("skg").column_names == [*simulated, *replayed]


def test_ratings_are_the_feedback_of_that_kind_alone(folder: Path) -> None:
    table = ratings(Run(folder).feedback("skg", ["kind", "value"], users=[1, 5]))
    assert table.to_pydict() == {"rating": ["partial", "ok", "ok"], "user": [1, 1, 5], "turn": [2, 3, 7]}


def test_what_is_no_run_directory_says_what_it_is_instead(tmp_path: Path) -> None:
    def said(path: Path) -> str:
        with pytest.raises(UsageError) as raised:
            Run(path)
        return str(raised.value).removeprefix(f"{path} is no run directory: ")

    assert said(tmp_path / "gone").startswith("there is no such folder")
    (tmp_path / "file").touch()
    assert said(tmp_path / "file") == "it is a file; name the folder of a run"
    assert "If its manifest was lost" in said(tmp_path)
    for number in range(14):
        (tmp_path / f"run{number:02}").mkdir()
        (tmp_path / f"run{number:02}" / MANIFEST).touch()
    runs = ", ".join(str(tmp_path / f"run{number:02}") for number in range(12))
    assert said(tmp_path) == f"it has no manifest.json, and holds runs; name one of them: {runs} ..."


def test_configuration_and_arms_come_from_the_manifest(folder: Path) -> None:
    assert Run(folder).arms == ["skg", "skg2", "idle"]
    assert Run(folder).config == {"seed": 3}


def test_a_column_that_no_log_has_is_no_torn_file(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"has no column 'mesage' of turns; did you mean 'message'\?"):
        Run(folder).turns("skg", ["mesage"])


def test_a_torn_shard_is_named_with_what_to_do(folder: Path) -> None:
    with pytest.raises(
        UsageError, match=r"skg\.0000000\.parquet is torn or was changed .*; run the same command again"
    ):
        Run(folder).updates("skg")


def test_unknown_arms_and_missing_shards_are_said(folder: Path) -> None:
    with pytest.raises(UsageError, match="has no arm 'sgk'; it has skg, skg2, idle"):
        Run(folder).turns("sgk")
    with pytest.raises(UsageError, match=r"idle\.0000000\.parquet is missing; run the same command again"):
        Run(folder).feedback("idle")


def test_of_an_unfinished_run_what_is_there_is_read(folder: Path) -> None:
    save(folder, {**manifest.manifest_of(folder / "manifest.json"), "incomplete": True})
    (folder / "turns" / "skg.0000000.parquet").unlink()
    assert Run(folder).feedback("skg", ["value"])["user"].to_pylist() == [270, 270]
    with pytest.raises(UsageError, match="has no feedback of arm 'idle' yet; finish it"):
        Run(folder).feedback("idle")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "no whole JSON"),
        ('{"schema": 99}', f"schema version 99, this is version {schema.SCHEMA_VERSION}"),
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


def test_a_manifest_that_was_changed_is_refused(folder: Path) -> None:
    file = folder / "manifest.json"
    file.write_text(file.read_text().replace('"seed": 3', '"seed": 4'))
    with pytest.raises(UsageError, match="is not as it was written"):
        Run(folder)


def test_an_identity_that_the_configuration_does_not_give_is_refused(folder: Path) -> None:
    content = {
        **manifest.manifest_of(folder / "manifest.json"),
        "compositions": {},
        "data": {},
        "code": "",
        "beside": [],
    }
    manifest.write_manifest(folder, {**content, "identity": manifest.identity_of(content)})
    assert Run(folder).arms
    manifest.write_manifest(folder, {**content, "identity": "0" * 64})
    with pytest.raises(UsageError, match="an identity that its configuration, data and code do not give"):
        Run(folder)


def test_what_a_class_names_as_beside_does_not_count_for_the_identity() -> None:
    content = {
        "config": {"a": {"url": 1, "b": 2}, "out": "x"},
        "compositions": {"arm": [{"url": 1}]},
        "data": {},
        "code": "",
    }
    beside = {**content, "beside": [["config", "a", "url"], ["compositions", "arm", "0", "url"]]}
    counted = {"config": {"a": {"b": 2}}, "compositions": {"arm": [{}]}, "data": {}, "code": ""}
    assert manifest.counted_of(beside) == counted
    changed = json.loads(json.dumps(beside).replace('"url": 1', '"url": 7').replace('"x"', '"y"'))
    assert manifest.identity_of(beside) == manifest.identity_of(changed)
