"""Keys and columns that stand twice: which of their values is meant nobody knows, and none is taken in silence."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skg_bench.core.errors import TwiceError, UsageError
from skg_bench.core.foreign import json_of
from skg_bench.simulator.logs.experiment_table import read_experiment
from tests.simulator.logs.logs import recorded
from tests.simulator.logs.published import labelled

ROW = '{"user": "u", "time": "2026-01-05T09:00:00", "message": "hi", "satisfaction": "ok"}\n'
TWICE = ROW.replace("}", ', "satisfaction": "miss"}')
COLUMNS = {"satisfaction": "satisfaction"}
LABELS = ("label", "label")


@pytest.mark.parametrize("text", ['[{"a": {"b": 1, "c": 2, "b": 1}}]', b'{"b": null, "a": [], "b": null}'])
def test_a_key_that_stands_twice_in_an_object_is_refused(text: str | bytes) -> None:
    with pytest.raises(TwiceError, match=r"^file has the key 'b' twice in one object; leave one of them$"):
        json_of(text, "file")


@pytest.mark.parametrize("value", [{"a": {"a": [{"b": 1}, {"b": 2}]}, "b": {}}, [], "a", 1.5, None])
def test_a_key_may_stand_in_several_objects(value: object) -> None:
    assert json_of(json.dumps(value), "file") == json_of(json.dumps(value).encode(), "file") == value


def test_a_log_that_says_two_things_of_a_turn_is_refused_with_the_row(tmp_path: Path) -> None:
    """The last one was taken."""
    (path := tmp_path / "log.jsonl").write_text(ROW + TWICE)
    with pytest.raises(UsageError, match=r"log\.jsonl: row 2 has the key 'satisfaction' twice in one object"):
        recorded(path, columns=COLUMNS).record  # noqa: B018


def test_results_that_say_two_things_are_refused_with_the_row(tmp_path: Path) -> None:
    (path := tmp_path / "t.jsonl").write_text('{"user": 1, "event": 1, "arm": "a", "right": 0, "right": 1}\n')
    with pytest.raises(UsageError, match=r"t\.jsonl: row 1 has the key 'right' twice in one object"):
        read_experiment(path)


def test_a_column_of_a_text_table_that_is_wanted_stands_once(tmp_path: Path) -> None:
    """The first one was taken."""
    (path := tmp_path / "log.csv").write_text("user,time,message,,,note,note\nu,2026-01-05,hi,,,a,b\n")
    assert recorded(path).record.turns == 1
    with pytest.raises(UsageError, match=r"log\.csv has the column 'note' twice; leave one of them"):
        recorded(path, columns={"answer": "note"}).record  # noqa: B018


def test_a_column_of_a_parquet_file_that_is_wanted_stands_once(tmp_path: Path) -> None:
    names = ["user", "time", "message", "satisfaction", "satisfaction"]
    cells = [pa.array([cell, cell]) for cell in ("u", "2026-01-05", "how do you do", "ok", "miss")]
    pq.write_table(pa.Table.from_arrays(cells, names), path := tmp_path / "log.parquet")
    assert recorded(path).record.turns == 2
    says = r"log\.parquet has the column 'satisfaction' twice; leave one of them"
    with pytest.raises(UsageError, match=says):
        recorded(path, columns=COLUMNS).record  # noqa: B018


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_column_of_a_corpus_stands_once(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"corpus.{suffix}"
    path.write_text("text,label,label\nhi,a,b\n")
    if suffix == "parquet":
        pq.write_table(pa.Table.from_arrays([pa.array([cell]) for cell in ("hi", "a", "b")], ["text", *LABELS]), path)
    with pytest.raises(UsageError, match=rf"corpus\.{suffix} has the column 'label' twice; leave one of them"):
        labelled(path).load()
