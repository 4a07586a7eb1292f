"""Size of a log is said before it is read, and a limit holds that a person can raise (R5)."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.simulator.logs import recorded as recorded_module
from skg_bench.simulator.logs import recorded_size
from skg_bench.simulator.logs.recorded_size import log_size
from tests.app.test_cli import call, refused
from tests.foreign.test_special import within
from tests.simulator.logs.logs import recorded


def rows(n: int) -> list[dict[str, str]]:
    return [
        {"user": f"u{i % 7}", "time": f"2024-03-{1 + i % 28:02d}T10:00:00", "message": f"tea {i}"} for i in range(n)
    ]


def written(folder: Path, name: str, n: int) -> Path:
    path = folder / name
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows(n)), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows(n)))
    else:
        path.write_text("user,time,message\n" + "".join(",".join(row.values()) + "\n" for row in rows(n)))
    return path


def claiming(folder: Path, n: int) -> Path:
    """A small Parquet file with so many rows, which are all the same."""
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int8)), ["2024-03-04T10:00:00"])
    pq.write_table(pa.table({"user": same, "time": same, "message": same}), folder / "log.parquet", compression="zstd")
    return folder / "log.parquet"


def test_a_small_file_that_says_twenty_million_rows_ends_at_once(tmp_path: Path) -> None:
    path = claiming(tmp_path, 20_000_000)
    for words in (["data", "check", str(path)], ["run", "simulator=recorded", f"simulator.path={path}"]):
        with within(" ".join(words)):
            error = refused(*words)
        assert f"{path} has 20,000,000 rows in {path.stat().st_size:,} bytes: reading takes about 6 minutes" in error
        assert "about 24.2 GiB of memory; at most 1,048,576 rows are read" in error
        assert "raise the limit: simulator.most_rows=22000000" in error


@pytest.mark.parametrize("name", ["log.csv", "log.tsv", "log.jsonl", "log.parquet"])
def test_rows_are_counted_or_estimated_from_the_first_ones(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, name, 5_000)
    assert log_size(path).counted
    assert log_size(path).rows == 5_000
    monkeypatch.setattr(recorded_size, "_SAMPLE", 2**14)
    size = log_size(path)
    assert size.counted == (path.suffix == ".parquet")
    assert abs(size.rows - 5_000) < 200
    assert size.words.startswith("5,000 rows" if size.counted else "about ")


def test_line_ends_within_quotes_end_no_row(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user,time,message\n" + 'u,2026-03-01,"one ""line""\nand another\n"\n' * 30, "utf-8")
    size = log_size(path)
    assert size.rows == 30
    assert size.words.startswith("about 30 rows in ")  # a quote may be a sign of an inch


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl", "log.parquet"])
def test_a_limit_holds_and_can_be_raised(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, name, 50)
    with pytest.raises(UsageError, match=f"{path} has 50 rows .* 49 rows are read.*most_rows=1000000"):
        recorded(path, most_rows=49).record  # noqa: B018
    assert recorded(path, most_rows=50).record.turns == 50
    assert "49 rows are read" in refused("data", "check", str(path), "simulator.most_rows=49")


def test_more_rows_than_a_small_file_may_claim_are_read_where_a_person_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from skg_bench.simulator.logs import recorded_parquet

    for module in (recorded_size, recorded_parquet):
        monkeypatch.setattr(module, "PLAIN", 1_000)
    path = claiming(tmp_path, 9_000)
    assert path.stat().st_size < 9_000
    with pytest.raises(UsageError, match=r"at most [\d,]+ rows are read"):
        recorded(path).record  # noqa: B018
    read = recorded(path, most_rows=9_000).record
    assert (read.turns, [left["rows"] for left in read.left_out.values()]) == (1, [8_999])  # all are the same


def test_a_check_says_the_size_first_and_a_run_where_reading_takes_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "log.csv", 40)
    code, out, _ = call("data", "check", str(path))
    assert code == 0
    assert out.startswith(f"{path}: 40 rows in {path.stat().st_size:,} bytes: reading takes less than a minute and")
    words = ("run", "simulator=recorded", f"simulator.path={path}", "embedder=hashing", "--dry-run")
    assert "reading takes" not in call(*words)[1]
    monkeypatch.setattr(recorded_module, "_MANY", 10)
    code, out, _ = call(*words)
    assert code == 0
    assert out.index(f"{path}: 40 rows in") < out.index("(new)")


def test_what_is_no_limit_or_no_table_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "log.csv", 5)
    with pytest.raises(UsageError, match=r"simulator.most_rows=0 must be at least 1, or null"):
        recorded(path, most_rows=0)
    assert "simulator.most_rows" in refused("data", "check", str(path), "simulator.most_rows=many")
    with path.open("wb") as file:
        file.truncate(2**22)
    with pytest.raises(UsageError, match=r"log\.csv is no table: no line ends within its first 1,048,576 bytes"):
        log_size(path)
