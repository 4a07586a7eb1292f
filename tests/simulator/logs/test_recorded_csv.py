"""CSV as spreadsheets write it: separators, encodings, dates, decimal commas, and rows that are torn."""

import csv
import io
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.simulator.logs.recorded import Recorded
from skg_bench.simulator.logs.recorded_csv import CsvFile, native_bytes
from skg_bench.simulator.logs.recorded_rows import LeftOut
from tests.simulator.logs.logs import ALL, SMALL, recorded, turn, write_csv

PLAIN = "user,time,message\n"
FIELDS = {"user": "user", "time": "time", "message": "message"}


def written(path: Path, encoding: str, separator: str, first: str = "") -> Path:
    text = io.StringIO(newline="")
    lines = csv.DictWriter(text, list(SMALL[0]), delimiter=separator)
    lines.writeheader()
    lines.writerows([{**row, "user": f"{row['user']} Müller"} for row in SMALL])
    path.write_bytes((first + text.getvalue()).encode(encoding))
    return path


def turns(simulator: Recorded) -> list[tuple[Any, ...]]:
    """All that the log says of each turn, in order of its rows."""
    log = simulator._log
    n = np.diff(log.start)
    user, event = np.repeat(np.arange(len(n)), n), np.concatenate([np.arange(count) for count in n])
    columns = simulator.logged(user.astype(np.int32), event.astype(np.int32), np.full(len(user), -1, np.int32))
    names = ("logged_row", "logged_user", "logged_time", "logged_answer", "logged_cost_usd", "logged_latency_ms")
    return sorted(zip(*(columns[name].to_pylist() for name in names), strict=True))


def of(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("name", ["log.csv", "log.tsv"])
@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_log_is_read_however_a_spreadsheet_writes_it(
    tmp_path: Path, name: str, separator: str, encoding: str
) -> None:
    rows = turns(recorded(written(tmp_path / name, encoding, separator), columns=ALL))
    assert [(row[1], row[3]) for row in rows] == [(f"{row['user']} Müller", row["answer"]) for row in SMALL]
    assert [f"{row[2]:%Y-%m-%dT%H:%M:%S}" for row in rows] == [row["time"] for row in SMALL]


def test_the_separator_may_stand_in_a_line_before_the_heading(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", "utf-8", ";", "sep=;\r\n")
    assert [row[0] for row in turns(recorded(path, columns=ALL))] == [3, 4, 5, 6]
    (path := tmp_path / "log.csv").write_text("sep=;\n" + PLAIN.replace(",", ";") + 'a;2024-03-05;"torn\n', "utf-8")
    with pytest.raises(UsageError, match="a quote that is opened and not closed: 1"):
        recorded(path).record  # noqa: B018


def test_what_is_given_is_not_guessed(tmp_path: Path) -> None:
    path = of(tmp_path / "log.csv", "user;time;message\na;2024-03-05;x,y\n")
    assert recorded(path, separator=";").record.turns == 1
    with pytest.raises(UsageError, match="has no such column"):
        recorded(path, separator=",").record  # noqa: B018
    for change, message in (({"separator": ";;"}, "must be one character"), ({"encoding": "latin"}, "valid are utf-8")):
        with pytest.raises(UsageError, match=message):
            recorded(path, **change).record  # noqa: B018
    with pytest.raises(UsageError, match=r"no text in utf-8 .* simulator\.encoding="):
        recorded(of(tmp_path / "log.csv", PLAIN.encode() + b"\xfc,2024-03-05,x\n"), encoding="utf-8").record  # noqa: B018


@pytest.mark.parametrize(("rows", "kept", "left"), [
    ('a,2024-03-05,one\nb,2024-03-06,"torn', 1, [3]),
    ('a,2024-03-05,one\nb,2024-03-06,"torn\nc,2024-03-06,three\nd,2024-03-06,"four, quoted"\n', 3, [3]),
    ('a,2024-03-05,"said ""hi"""\nb,2024-03-06,"he said "hi" to me"\nc,2024-03-06,"two\nlines"\nd,2024-03-06,x\n',
     3, [3]),
    ('a,2024-03-05,"one\nb,2024-03-06,5" wide",\nc,2024-03-06,x\n', 1, [2, 3]),
])  # fmt: skip
def test_a_quote_that_is_not_closed_costs_its_own_row_which_is_named(
    tmp_path: Path, rows: str, kept: int, left: list[int]
) -> None:
    record = recorded(of(tmp_path / "log.csv", PLAIN + rows)).record
    assert record.turns == kept
    assert sorted(row for entry in record.left_out.values() for row in entry["first"]) == left


def test_both_ways_of_reading_give_the_same_rows(tmp_path: Path) -> None:
    rng, cells = np.random.default_rng(3), ["", "a", "b c", 'say "x"', "1,5", "two\nlines", "ü", " ", "é;é"]
    for trial in range(60):
        text = io.StringIO(newline="")
        lines = csv.writer(text, lineterminator=str(rng.choice(["\n", "\r\n"])))
        lines.writerow(FIELDS)
        for _ in range(int(rng.integers(0, 12))):
            width = 3 if rng.random() < 0.8 else int(rng.integers(1, 5))
            lines.writerow([cells[i] for i in rng.integers(0, len(cells), width)])
            if rng.random() < 0.2:
                text.write("\r\n" if trial % 2 else "\n")
        content = text.getvalue().rstrip("\r\n") if rng.random() < 0.3 else text.getvalue()
        file = CsvFile.open(of(tmp_path / "log.csv", content), list(FIELDS), None, ",")
        whole, by_line = LeftOut(), LeftOut()
        read, other = file.columns(FIELDS, whole), file.line_by_line({n: i for i, n in enumerate(FIELDS)}, by_line)
        assert read.position.tolist() == other.position.tolist(), content
        for name in FIELDS:
            assert read.cells[name].to_pylist() == other.cells[name].to_pylist(), content
        assert whole.found == by_line.found, content


def dated(path: Path, *dates: str, **options: Any) -> list[str]:
    rows = [turn("u", date, f"message {i}") for i, date in enumerate(dates)]
    return [f"{row[2]:%Y-%m-%d %H:%M}" for row in turns(recorded(write_csv(path, rows), **options))]


def test_the_whole_column_says_whether_the_day_or_the_month_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    assert dated(path, "02/01/2026 10:05", "13/01/2026") == ["2026-01-02 10:05", "2026-01-13 00:00"]
    assert dated(path, "02/01/2026 1:05 PM", "1/13/26 12:00 am") == ["2026-02-01 13:05", "2026-01-13 00:00"]
    assert dated(path, "2.1.2026 10:05:59", "03.02.26") == ["2026-01-02 10:05", "2026-02-03 00:00"]
    assert dated(path, "2026/01/02 10:05", "2026.1.3") == ["2026-01-02 10:05", "2026-01-03 00:00"]


def test_dates_that_could_be_either_are_refused_with_the_option_that_decides(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    with pytest.raises(UsageError, match=r"such as 02/01/2026 could begin .* simulator\.day_first=true"):
        dated(path, "02/01/2026", "03/02/2026")
    with pytest.raises(UsageError, match=r"begin with the day, as 13/01/2026, and some with the month, as 01/13/2026"):
        dated(path, "13/01/2026", "01/13/2026")
    assert dated(path, "02/01/2026", day_first=True) == ["2026-01-02 00:00"]
    assert dated(path, "02/01/2026", day_first=False) == ["2026-02-01 00:00"]
    assert dated(path, "13/01/2026", "01/13/2026", day_first=True) == ["2026-01-13 00:00"]  # the other is left out


def costs(path: Path, *cells: str, **options: Any) -> Recorded:
    rows = [turn("u", "2024-03-05", f"message {i}", cost=cell, wait="1,5") for i, cell in enumerate(cells)]
    columns = {"cost_usd": "cost", "latency_ms": "wait"}
    return recorded(write_csv(path, rows), columns=columns, latency_unit="s", **options)


def test_the_whole_column_says_whether_a_comma_is_the_decimal_one(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    assert [row[4] for row in turns(costs(path, "0,25", "1.234,5", ""))] == [0.25, 1234.5, None]
    assert [row[4] for row in turns(costs(path, "1,234.5", "2,000,000", decimal="."))] == [1234.5, 2e6]
    assert [row[5] for row in turns(costs(path, "0,25"))] == [1500.0]
    with pytest.raises(UsageError, match=r"such as 1,234 could be thousands .*simulator\.decimal"):
        costs(path, "1,234").record  # noqa: B018
    assert [row[4] for row in turns(costs(path, "1,234", decimal=","))] == [1.234]


@pytest.mark.parametrize("bad", ["cheap", "-0,25", "$0.25", "0.25 EUR", "inf", "nan", "1e999", "1e308"])
def test_money_that_is_no_number_of_dollars_is_refused_with_its_row(tmp_path: Path, bad: str) -> None:
    with pytest.raises(UsageError, match=rf"row 3: cost_usd='{re.escape(bad)}' must be a number of dollars"):
        turns(costs(tmp_path / "log.csv", "0,25", bad, ""))


def test_money_that_is_not_said_is_not_known(tmp_path: Path) -> None:
    assert [row[4] for row in turns(costs(tmp_path / "log.csv", "0,25", "", "null"))] == [0.25, None, None]


def test_a_turn_of_the_log_that_comes_twice_is_known_by_its_id_and_rows_without_one_are_not(tmp_path: Path) -> None:
    rows = [turn("u", f"2024-03-05T0{i}:00:00", "x", key=key) for i, key in enumerate(("", "a", "", "a", "b"))]
    record = recorded(write_csv(tmp_path / "log.csv", rows), columns={"id": "key"}).record
    assert record.turns == 4
    assert record.left_out == {"an id that an earlier row has": {"rows": 1, "first": [5]}}


@pytest.mark.parametrize("content", [b"", b"a,b\n" * 1000])
def test_a_thread_of_pyarrow_cannot_be_the_last_to_hold_bytes_of_python(content: bytes) -> None:
    """It would end the process by an abort while that ends."""
    before = sys.getrefcount(content)
    buffer = native_bytes(content)
    assert sys.getrefcount(content) == before
    assert buffer.to_pybytes() == content
