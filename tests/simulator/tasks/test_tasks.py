"""Tasks of one's own: read from a table, judged by words, and never in a prompt."""

import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import skg_bench
from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from skg_bench.simulator.tasks.world import Tasks

ARMS = (
    "arms={never: [policy=never, curator=none], all: [assistant=recall], "
    "stored: [curator=everything, router=exact, policy=always]}"
)
CODES = ("k7f3-9q2m", "p2c4-77ab", "z9z9-1111")


def _of_door(user: int, place: int, code: str) -> list[Mapping[str, Any]]:
    who, ask = {"user": f"u{user}"}, f"What is the key of door {place}{user}?"
    asked = {**who, "message": ask, "reference": code, "kind": f"door {place}"}
    return [
        {**who, "time": f"2026-01-{5 + place:02d}T09:00:00", "message": f"The key of door {place}{user} is {code}."},
        {**asked, "time": f"2026-01-{6 + place:02d}T10:00:00"},
        {**asked, "time": f"2026-01-{7 + place:02d}T11:00:00"},
    ]


TASKS = [row for user in range(4) for place, code in enumerate(CODES) for row in _of_door(user, place, code)]


def table(folder: Path, rows: Sequence[Mapping[str, Any]] = TASKS) -> Path:
    file = folder / "tasks.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return file


def played(folder: Path, *more: str, rows: Sequence[Mapping[str, Any]] = TASKS) -> Run:
    words = ["simulator=tasks", f"simulator.path={table(folder, rows)}", "simulator.columns.intent=kind", ARMS]
    return skg_bench.run([*words, "reference=never", "workers=1", "salt=0", f"out={folder / 'run'}", *more])


def refused(folder: Path, *more: str, rows: Sequence[Mapping[str, Any]] = TASKS) -> str:
    with pytest.raises(UsageError) as error:
        played(folder, *more, rows=rows)
    return str(error.value)


def test_a_model_is_judged_by_its_words_against_the_reference(tmp_path: Path) -> None:
    run = played(tmp_path)
    assert run.manifest["users"] == 4
    right = {}
    for arm in run.arms:
        turns = run.turns(arm).to_pandas()
        assert len(turns) == len(TASKS)
        checked = turns["message"].str.endswith("?")
        assert turns.loc[~checked, "answer_correct"].all()
        right[arm] = turns.loc[checked, "answer_correct"].mean()
    assert right == {"never": 0.0, "all": 1.0, "stored": 0.0}
    turns = run.turns("all").to_pandas()
    assert set(turns["intent"].dropna()) == {"door 0", "door 1", "door 2"}
    assert (turns.loc[turns["answer_correct"] & turns["message"].str.endswith("?"), "said"].str.contains("is ")).all()


def test_other_references_change_no_word_that_is_said(tmp_path: Path) -> None:
    others = [{**row, "reference": f"not {row['reference']}"} if "reference" in row else row for row in TASKS]
    (tmp_path / "other").mkdir()
    second = played(tmp_path / "other", "simulator.rated=0", rows=others)
    first = played(tmp_path / "other", "simulator.rated=0", f"out={tmp_path / 'again'}")
    for arm in ("never", "all"):
        one, other = (each.turns(arm).to_pandas() for each in (first, second))
        assert (one["said"].astype(str) == other["said"].astype(str)).all()
        assert (one["answer_correct"] != other["answer_correct"]).any() or arm == "never"


def test_logs_name_a_task_by_kind_and_reference_and_no_skill_is_named_so(tmp_path: Path) -> None:
    rows = [{**row, "kind": f"{row['kind']} | old"} if "kind" in row else row for row in TASKS]
    run = played(tmp_path, rows=rows)
    turns = run.turns("stored").to_pandas()
    assert set(turns["request_type"].dropna()) == {f"door {i} / old | {code}" for i, code in enumerate(CODES)}
    names = run.updates("stored").to_pandas()["name"].dropna().astype(str)
    assert len(names) > 0
    assert not any("/ old" in name for name in names)


def test_without_kinds_tasks_of_one_reference_are_of_one_kind(tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key != "kind"} for row in TASKS]
    run = played(tmp_path, "simulator.columns.intent=null", rows=rows)
    assert set(run.turns("all").to_pandas()["intent"].dropna()) == set(CODES)


@pytest.mark.parametrize(
    ("change", "more", "says"),
    [
        (
            {"message": "Is it k7f3-9q2m?"},
            (),
            "tasks.jsonl, row 2: the message 'Is it k7f3-9q2m?' holds its own reference",
        ),
        ({"reference": ""}, (), "tasks.jsonl, row 2: the reference is empty"),
        ({"reference": " \u3000"}, (), "tasks.jsonl, row 2: the reference is empty"),
        ({"reference": "!"}, (), "tasks.jsonl, row 2: the reference '!' has no word, number or sign"),
        ({}, ("simulator.columns.answer=null",), "simulator.columns.answer=null; name the column of references"),
        ({}, ("simulator.redact=true",), "simulator.redact=true hides what is said"),
        ({}, ("simulator.rated=2",), "simulator.rated=2 must lie in"),
        ({}, ("simulator.check=nowhere",), "simulator.check='nowhere' cannot be imported"),
        ({}, ("llm=simulated",), "is answered by a model without words"),
    ],
)
def test_a_bad_table_or_key_is_refused_with_its_row(
    change: Mapping[str, str], more: Sequence[str], says: str, tmp_path: Path
) -> None:
    assert says in refused(tmp_path, *more, rows=[TASKS[0], {**TASKS[1], **change}, *TASKS[2:]])


def test_an_empty_cell_of_a_text_table_is_no_reference(tmp_path: Path) -> None:
    (file := tmp_path / "tasks.csv").write_text(
        "user,time,message,reference\nann,2026-01-05,Hello,\nann,2026-01-06,Where am I?,Oslo\n", "utf-8"
    )
    world = prepare(compose(["simulator=tasks", f"simulator.path={file}", ARMS, "reference=never"])).plan.simulator
    assert isinstance(world, Tasks)
    assert world.references == ("Oslo",)
    assert world.record.turns == 2


def test_a_task_that_comes_twice_and_a_table_without_references_are_refused(tmp_path: Path) -> None:
    says = refused(tmp_path, rows=[*TASKS, TASKS[1]])
    assert f"tasks.jsonl, row {len(TASKS) + 1}: this user says 'What is the key of door 00?' twice" in says
    without = [{key: value for key, value in row.items() if key != "reference"} for row in TASKS]
    assert "reference" in refused(tmp_path, rows=without)


def test_rows_that_are_no_messages_are_said_before_the_run(tmp_path: Path) -> None:
    file = table(
        tmp_path, [*TASKS, {"user": "u9", "time": "not a time", "message": "What?", "reference": "x", "kind": "y"}]
    )
    words = ["simulator=tasks", f"simulator.path={file}", ARMS, "reference=never", f"out={tmp_path / 'run'}"]
    (line,) = [line for line in prepare(compose(words)).cautions() if "left out" in line]
    assert line.startswith("tasks.jsonl: left out 1 with")


def test_another_check_of_the_same_name_is_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    words = [
        "simulator=tasks",
        f"simulator.path={table(tmp_path)}",
        ARMS,
        "reference=never",
        "simulator.check=mine9.right",
    ]
    identities = []
    for verdict in ("True", "False"):
        (tmp_path / "mine9.py").write_text(f"def right(message, reference, words): return {verdict}\n")
        sys.modules.pop("mine9", None)
        importlib.invalidate_caches()
        identities.append(prepare(compose(words)).identity)
    assert identities[0] != identities[1]
