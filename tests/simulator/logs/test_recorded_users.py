"""One user is one user, however a file writes the name, and no number is written with an underscore."""

import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.simulator.logs.decision_table import UserNumbers, decision_table
from skg_bench.simulator.logs.experiment_table import read_experiment
from skg_bench.simulator.logs.recorded_cells import number_of
from skg_bench.simulator.logs.recorded_guess import rating_words
from tests.simulator.logs.logs import recorded, write_csv, write_lines

NFC = "Jos\u00e9"
NFD = unicodedata.normalize("NFD", NFC)
ALIKE = [("u1", "u1 "), (NFC, NFD), ("7", "7.0 "), (1, 1.0)]
HEADING = "user,event,arm,right,cost\n"


@pytest.mark.parametrize("users", ALIKE)
@pytest.mark.parametrize("time", ["time", None])
def test_a_log_has_one_user_of_two_spellings(tmp_path: Path, users: tuple[object, object], time: str | None) -> None:
    """There were two, each with a history of its own."""
    rows = [{"user": user, "time": f"2026-01-0{i + 5}", "message": f"m{i}"} for i, user in enumerate(users)]
    logs = [recorded(write_lines(tmp_path / "log.jsonl", rows), columns={"time": time})]
    if isinstance(users[0], str):
        logs.append(recorded(write_csv(tmp_path / "log.csv", rows), columns={"time": time}))
    for log in logs:
        assert log._log.users == (str(users[0]),)
        assert np.diff(log._log.time).tolist() == [86_400]


@pytest.mark.parametrize("redact", [False, True])
def test_names_that_differ_in_case_alone_are_counted_and_not_told(tmp_path: Path, redact: bool) -> None:
    users = ("Ann@x.org", "ann@x.org", "bob@x.org")
    rows = [{"user": user, "time": "2026-01-05", "message": "m"} for user in users]
    record = recorded(write_lines(tmp_path / "log.jsonl", rows), redact=redact).record
    says = "2 names of users differ from another one in upper and lower case alone; each counts as a user"
    assert (record.users, record.assumes["users by name"]) == (3, says)
    assert "users by name" not in recorded(write_lines(tmp_path / "log.jsonl", rows[1:])).record.assumes


def test_names_that_differ_stay_apart(tmp_path: Path) -> None:
    users = (1, 1.5, "a b", "ab", "A b", True, "v1.0", "2.0.0", "01")
    rows = [{"user": user, "time": "2026-01-05", "message": "m"} for user in users]
    assert recorded(write_lines(tmp_path / "log.jsonl", rows)).record.users == len(users)


@pytest.mark.parametrize("users", ALIKE[:3])
def test_results_have_one_user_of_two_spellings(tmp_path: Path, users: tuple[str, str]) -> None:
    lines = "".join(f"{user},{i},{arm},1,1\n" for i, user in enumerate(users) for arm in ("a", "b"))
    (path := tmp_path / "t.csv").write_text(HEADING + lines, "utf-8")
    assert read_experiment(path).users == (users[0],)


@pytest.mark.parametrize("users", ALIKE[:3])
def test_decisions_have_one_user_of_two_spellings(tmp_path: Path, users: tuple[str, str]) -> None:
    pq.write_table(pa.table({"who": list(users)}), path := tmp_path / "log.parquet")
    numbers = UserNumbers()
    assert [numbers.of_block(block, "who").tolist() for block in decision_table(path).blocks(["who"])] == [[0, 0]]


def test_an_underscore_is_in_no_number(tmp_path: Path) -> None:
    """1_0 was ten."""
    assert [number_of(cell) for cell in ("1.5", 2, "1e3")] == [1.5, 2.0, 1000.0]
    assert str(number_of("1_0")) == str(number_of("x")) == "nan"
    assert rating_words(["1_0", "5"]) is None
    (path := tmp_path / "t.csv").write_text(HEADING + "u,1,a,1,1_0\nu,1,b,1,1\n")
    with pytest.raises(UsageError, match=r"row 2: cost is '1_0'; give a number"):
        read_experiment(path)
    for block in decision_table(path).blocks(["cost"]):
        with pytest.raises(UsageError, match=r"row 2: cost is '1_0'; a number"):
            block.numbers("cost", "a number")
