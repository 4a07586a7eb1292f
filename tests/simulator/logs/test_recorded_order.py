"""Order of turns with equal times, such as dates: as in the file, or from its end where it begins with the last."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from skg_bench.simulator.logs.recorded import Recorded
from tests.app.test_cli import call
from tests.simulator.logs.logs import readers, recorded, turn, write_csv, write_lines

DAYS = [turn(f"u{i % 3}", f"2026-01-{5 + i // 6:02d}", f"message {i}", answer=f"answer {i}") for i in range(24)]


def said(simulator: Recorded) -> dict[str, list[str]]:
    """Messages of each user in order."""
    events, users = readers(simulator).events, simulator._log.users
    return {
        name: [simulator.messages[text] for text in events.text[i, : events.n[i]].tolist()]
        for i, name in enumerate(users)
    }


def expected(rows: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    names = {row["user"] for row in rows}
    return {name: [row["message"] for row in rows if row["user"] == name] for name in names}


def test_a_log_that_begins_with_the_last_turn_is_read_from_its_end(tmp_path: Path) -> None:
    """Within a day the later turn came first, and taught what was asked before it."""
    oldest = recorded(write_csv(tmp_path / "asc.csv", DAYS))
    rows = DAYS[::-1]
    newest = recorded(write_csv(tmp_path / "desc.csv", rows))
    by_user = recorded(write_csv(tmp_path / "by_user.csv", sorted(rows, key=lambda row: str(row["user"]))))
    assert said(oldest) == said(newest) == said(by_user) == expected(DAYS)
    assert ["order" in log.record.assumes for log in (oldest, newest, by_user)] == [False, True, True]


def test_a_log_in_no_order_of_time_is_read_as_it_stands(tmp_path: Path) -> None:
    mixed = [*DAYS[12:], *DAYS[:12]]
    log = recorded(write_csv(tmp_path / "log.csv", mixed))
    assert said(log) == expected(sorted(mixed, key=lambda row: str(row["time"])))
    assert "order" not in log.record.assumes


@pytest.mark.parametrize(("wrong", "from_end"), [(1, True), (2, False)])
def test_one_user_of_twenty_may_have_a_row_elsewhere(tmp_path: Path, wrong: int, from_end: bool) -> None:
    rows = [
        turn(f"u{user}", f"2026-01-0{day}", f"{user} {day} {i}") for user in range(20) for day in (7, 6) for i in (2, 1)
    ]
    rows += [turn(f"u{user}", "2026-01-09", "late") for user in range(wrong)]
    assert ("order" in recorded(write_csv(tmp_path / "log.csv", rows)).record.assumes) == from_end


def test_turns_of_one_conversation_stay_in_order(tmp_path: Path) -> None:
    rows = [
        {"user": "u", "time": f"2026-01-0{day}",
         "message": [{"role": "user", "content": f"{day} {i} {part}"} for part in "ab"]}
        for day in (7, 6) for i in (2, 1)
    ]  # fmt: skip
    log = recorded(write_lines(tmp_path / "log.jsonl", rows))
    assert said(log) == {"u": [f"{day} {i} {part}" for day in (6, 7) for i in (1, 2) for part in "ab"]}


def test_the_check_says_that_the_log_is_read_from_its_end(tmp_path: Path) -> None:
    rows = [{**row, "message": f"what is {row['message']}"} for row in DAYS]
    for name, some, there in (("asc.csv", rows, False), ("desc.csv", rows[::-1], True)):
        code, out, _ = call("data", "check", str(write_csv(tmp_path / name, some)))
        assert code == 0
        assert ("order: each user's last turn stands first in the log, so of turns with the same time" in out) == there
