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


@pytest.mark.parametrize("sign", "/-")
def test_a_date_of_two_digits_each_may_begin_with_the_year_unless_one_of_them_is_no_year(sign: str) -> None:
    """26/01/05 to 26/01/09 were days of five years from 2005 on."""
    days = [f"26{sign}01{sign}{day:02d} 09:00" for day in range(5, 10)]
    says = (
        rf"^log\.csv: times such as {days[0]} could begin with the day or with the year; say simulator\.day_first=true"
    )
    with pytest.raises(UsageError, match=says):
        time_format(days, "log.csv")
    for other in (f"5{sign}1{sign}26", f"13{sign}01{sign}2026", f"13{sign}01{sign}99"):
        assert time_format([*days, other], "log.csv") == (f"day first, as in {days[0]}", True)


def test_a_log_whose_dates_may_begin_with_the_year_is_read_with_the_option(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", [turn("u", f"26/01/{year} 09:00", f"m{year}") for year in (25, 26)])
    with pytest.raises(UsageError, match="could begin with the day or with the year"):
        recorded(path).record  # noqa: B018
    assert recorded(path, day_first=True).record.first_day == "2025-01-20"
