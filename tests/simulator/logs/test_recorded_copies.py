"""A log that was exported twice is the log: what stands there again is no further turn."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from skg_bench.core.errors import UsageError
from skg_bench.simulator.logs.recorded import Recorded
from tests.simulator.logs.logs import recorded, turn, write_csv, write_lines

COPY = "all that is read as in an earlier row"
ROWS = [
    turn(f"u{i % 3}", f"2026-01-{5 + i // 6:02d}T{9 + i % 6:02d}:00:00", f"message {i % 4}", answer=f"answer {i % 2}")
    for i in range(24)
]


def without_time(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "time": row["time"][:10], "message": f"message {i % 24}"} for i, row in enumerate(rows)]


def turns(log: Recorded) -> list[tuple[Any, ...]]:
    read = log._log
    return [(read.users, read.messages[text], int(time)) for text, time in zip(read.text, read.time, strict=True)]


@pytest.mark.parametrize("twice", [[*ROWS, *ROWS], [row for row in ROWS for _ in "12"], [*ROWS, *ROWS[:9]]])
def test_copies_are_left_out_and_counted(tmp_path: Path, twice: list[dict[str, Any]]) -> None:
    once = recorded(write_csv(tmp_path / "once.csv", ROWS))
    for path in (write_csv(tmp_path / "log.csv", twice), write_lines(tmp_path / "log.jsonl", twice)):
        log = recorded(path)
        assert turns(log) == turns(once)
        assert log.record.left_out[COPY]["rows"] == len(twice) - len(ROWS)
    assert not once.record.left_out


def test_a_question_that_is_asked_again_is_a_turn(tmp_path: Path) -> None:
    """Another time, another answer or another rating is no copy; with ids, ids alone decide."""
    more = [
        {**ROWS[0], "time": "2026-01-05T09:00:01"},
        {**ROWS[0], "answer": "answer 7"},
        {**ROWS[0], "user": "U0"},
    ]
    log = recorded(write_csv(tmp_path / "log.csv", [*ROWS, *more]), columns={"answer": "answer"})
    assert len(turns(log)) == len(ROWS) + 3
    named = [{**row, "id": str(i)} for i, row in enumerate([*ROWS, *ROWS])]
    assert len(turns(recorded(write_csv(tmp_path / "id.csv", named), columns={"id": "id"}))) == 2 * len(ROWS)


def test_where_times_are_days_a_log_of_copies_is_refused_and_some_are_questions(tmp_path: Path) -> None:
    days = without_time(ROWS)
    again = recorded(write_csv(tmp_path / "log.csv", [*days, *days[:9]]))
    assert len(turns(again)) == len(days) + 9
    assert not again.record.left_out
    with pytest.raises(UsageError, match=r"24 of 48 rows .* first is row 26\).*simulator\.columns\.id"):
        _ = recorded(write_csv(tmp_path / "twice.csv", [*days, *days]))._log
