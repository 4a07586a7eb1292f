"""Tables of results that were made elsewhere: read whole, or refused with the row."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.simulator.logs.experiment_table import read_experiment, reference_of

ROWS: Sequence[Mapping[str, Any]] = [
    {
        "user": user, "event": event, "arm": arm, "right": int(event != 10 or arm == "new"), "cost": cost,
        "text": f"t{event}",
    }
    for user in (10, 9)
    for event in (10, 2)
    for arm, cost in (("old", 0.5), ("new", 0.25))
]  # fmt: skip
HEADING = "user,event,arm,right\n"
FOUR = "a,1,old,1\na,1,new,0\na,2,old,1\na,2,new,1\n"


def written(path: Path, rows: Sequence[Mapping[str, Any]] = ROWS) -> Path:
    """The rows, in the form that the name of the file says."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n", "utf-8")
    else:
        separator = "\t" if path.suffix == ".tsv" else ","
        lines = [separator.join(rows[0]), *(separator.join(map(str, row.values())) for row in rows)]
        path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.parquet"])
def test_all_forms_are_read_alike_and_events_come_by_number(tmp_path: Path, name: str) -> None:
    table = read_experiment(written(tmp_path / name))
    assert (table.arms, table.users) == (("old", "new"), ("9", "10"))
    assert (table.user.tolist(), table.event) == ([0, 0, 1, 1], ["2", "10", "2", "10"])
    assert table.right is not None
    assert table.right.tolist() == [[True, False, True, False], [True] * 4]
    assert table.cost is not None
    assert table.cost.tolist() == [[0.5] * 4, [0.25] * 4]
    assert (table.text, table.intent, table.wait, table.score) == (["t2", "t10", "t2", "t10"], None, None, None)
    first = 2 if name.endswith("sv") else 1  # a heading is a line too
    assert (table.position[0] - first).tolist() == [6, 4, 2, 0]


def test_events_without_numbers_keep_the_order_of_the_table(tmp_path: Path) -> None:
    rows = [{**row, "event": {10: "b", 2: "a"}[row["event"]], "user": f"u{row['user']}"} for row in ROWS]
    table = read_experiment(written(tmp_path / "t.csv", rows))
    assert (table.users, table.event) == (("u10", "u9"), ["b", "a", "b", "a"])


def test_an_intent_may_be_empty_and_words_mean_right(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("user,event,arm,right,intent\na,1,x,True,\na,1,y,false,\na,2,x,1.0,k\na,2,y,0,k\n", "utf-8")
    table = read_experiment(file)
    assert (table.intent, table.right is not None and table.right.tolist()) == (
        [None, "k"], [[True, True], [False, False]],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("user,event,arm,right,right\na,1,x,1,1\n", "has the column 'right' twice"),
        ("user,event,arm,right,mark\na,1,x,1,1\n", "the unknown column 'mark'; rename it or leave it out"),
        ("user,event,right\na,1,1\n", "has no column 'arm'"),
        ("user,event,arm\na,1,x\n", "neither a column 'right' nor 'score'"),
        (HEADING, "has no rows"),
        (HEADING + "a,1,old,1\na,2,old,0\n", "one arm only, 'old'"),
        (HEADING + FOUR + "a,2,old,0\n", "row 6 repeats row 4: user 'a', event '2', arm 'old'"),
        (HEADING + FOUR + "b,1,new,0\nb,2,new,0\n",
         "arm 'old' lacks user 'b', event '1', which row 6 has of arm 'new'; 2 such rows are missing."),
        (HEADING + FOUR + "b,1,new,0\n",
         "arm 'old' lacks user 'b', event '1', which row 6 has of arm 'new'; 1 such row is missing."),
        (HEADING + FOUR + "b,1,new\n", "row 6 is torn: another number of fields"),
        (HEADING + FOUR + "b,1,,1\n", "row 6: arm is empty"),
        (HEADING + FOUR + "b,1,*,1\nb,1,old,1\n", "an arm is called '*', which stands for all arms"),
        (HEADING + FOUR + "b,1,../x,1\nb,1,old,1\n", "the arm '../x' cannot name files"),
        (HEADING + FOUR + f"b,1,{'語' * 90},1\nb,1,old,1\n", "at most 100 characters (200 bytes of"),
        (HEADING + FOUR.replace("a,2,new,1", "a,2,new,0.5"), "row 5: right is '0.5'; valid are 1, 0, true and false"),
        ("user,event,arm,score\n" + FOUR.replace("a,2,new,1", "a,2,new,1.5"),
         "row 5: score is '1.5'; give a number, 0 to 1"),
        ("user,event,arm,score\n" + FOUR.replace("a,2,new,1", "a,2,new,nan"), "row 5: score is 'nan'"),
        ("user,event,arm,score\n" + FOUR.replace("a,2,new,1", "a,2,new,"), "row 5: score is empty"),
        ("user,event,arm,right,cost\na,1,x,1,-1\na,1,y,1,0\n", "row 2: cost is '-1'; give a number, 0 or more"),
        ("user,event,arm,right,wait\na,1,x,1,1\na,1,y,1,1e308\n", "row 3: wait is '1e308'; give a number, 0"),
        ("user,event,arm,right,wait\na,1,x,1,2 s\na,1,y,1,0\n", "row 2: wait is '2 s'"),
        ("user,event,arm,right,text\na,1,x,1,hi\na,1,y,1,ho\n", "row 3 has another text than row 2"),
        ("user,event,arm,right,intent\na,1,x,1,k\na,1,y,1,\n", "row 3 has another intent than row 2"),
        ("user,event,arm,right,text\na,1,x,1,\na,1,y,1,\n", "row 2: text is empty"),
    ],
)  # fmt: skip
def test_what_is_not_whole_is_refused_by_row(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "t.csv"
    file.write_text(text, "utf-8")
    with pytest.raises(UsageError) as refusal:
        read_experiment(file)
    assert fault in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("t.jsonl", b'{"user": 1}\n{"user"\n', "row 2 is torn: no whole JSON object"),
        ("t.jsonl", b'{"user": 1, "event": 1, "arm": [1], "right": 1}\n', "row 1: arm is neither text nor a number"),
        ("t.jsonl", b"\xff\n", "row 1 is torn"),
        ("t.parquet", b"PAR1", "is torn or no Parquet file"),
        ("t.txt", b"", "the name of a table ends in .csv"),
        ("t.csv", b'user,event,arm,right\na,1,"x,1\na,1,y,1\n', "row 2 is torn: a quote that is opened and not closed"),
    ],
)
def test_a_torn_file_is_refused(tmp_path: Path, name: str, content: bytes, fault: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(UsageError) as refusal:
        read_experiment(file)
    assert fault in str(refusal.value)


def test_a_missing_file_and_an_unknown_reference_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        read_experiment(tmp_path / "t.csv")
    table = read_experiment(written(tmp_path / "t.csv"))
    assert (reference_of(table, None), reference_of(table, "new")) == ("old", "new")
    with pytest.raises(UsageError, match="--reference news: there is no such arm; did you mean 'new'"):
        reference_of(table, "news")
