"""Times that logs write as numbers: Unix times, dates in digits, and what is neither."""

from collections.abc import Sequence
from datetime import UTC
from pathlib import Path

import pytest

from skg_bench.core.errors import UsageError
from skg_bench.simulator.logs.recorded_cells import readable_time, time_format
from tests.simulator.logs.logs import recorded, replayed, turn, write_csv


def test_times_in_digits_are_dates_and_no_unix_times_of_other_centuries(tmp_path: Path) -> None:
    """Digits were taken for Unix milliseconds of 2612, days of a spreadsheet for Unix seconds of 1970."""
    times = ("20260301100000", "202603011130", "46082.4166666667")
    simulator = recorded(write_csv(tmp_path / "log.csv", [turn("u", at, f"m{at}") for at in times]))
    assert simulator.record.first_day == "2026-02-23"
    assert [at % 86_400 // 60 for at in replayed(simulator).local[0].tolist()] == [600, 690]
    assert simulator.record.left_out == {"a time that cannot be read": {"rows": 1, "first": [4]}}
    assert time_format(times, "log.csv") == ("year first, in digits", None)


@pytest.mark.parametrize("times", [("46082.0", "46082.0416666667"), ("2026030100", "2026030101")])
def test_numbers_that_are_no_times_are_refused_with_what_to_do(tmp_path: Path, times: Sequence[str]) -> None:
    path = write_csv(tmp_path / "log.csv", [turn("u", at, f"m{at}") for at in times])
    says = rf"times such as {times[0]} are no Unix times of 1990 to 2033.* a format of dates"
    with pytest.raises(UsageError, match=says):
        recorded(path).record  # noqa: B018
    assert not any(readable_time(at, UTC) for at in times)


@pytest.mark.parametrize("at", ["1719820800", "1719820800.25", "1719820800500", "20240701", 20240701, 1719820800.0])
def test_unix_times_and_dates_of_eight_digits_are_times(at: float | str) -> None:
    assert readable_time(at, UTC)


def test_a_date_without_such_a_month_says_nothing_of_the_others() -> None:
    assert time_format(["13/13/2026", "13/03/2026"], "log.csv") == ("day first, as in 13/03/2026", True)
    with pytest.raises(UsageError, match="times such as 02/03/2026 could begin with the day or with the month"):
        time_format(["13/13/2026", "02/03/2026"], "log.csv")
    assert not readable_time("13/13/2026", UTC)
