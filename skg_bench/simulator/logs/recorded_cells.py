"""Times and numbers as logs write them.

Whether 02/01/2026 is in January or in February, and whether 1,234 is more than a thousand, no cell says by itself: the
whole column decides, and where it does not, the reader of the log has to.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I64, Bool

_UNIX_SECONDS = (631_152_000, 2_000_000_000)  # Unix times are taken from 1990 until May 2033
UNIX_YEARS = "1990 to 2033"
_PLAIN = re.compile(r"-?(\d+)(?:\.\d*)?")
_DIGITS = {12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}  # dates of this century without signs, by their length
_UNIX = datetime(1970, 1, 1, tzinfo=UTC)
_US = "datetime64[us]"
_DATE = re.compile(
    r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})"
    r"(?:,?[ T]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?(?: ?([AaPp])\.?[Mm]\.?)?)?"
)
_YEAR_FIRST = re.compile(r"(\d{4})[./](\d{1,2})[./](\d{1,2})(.*)", re.DOTALL)
_CENTURY = 69  # two digits of a year from here on are of the century before, as POSIX has it
_OTHER_MONEY = re.compile(
    r"(?<![A-Za-z])(EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN)(?![A-Za-z])|[€£¥₹]", re.IGNORECASE
)
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")  # a number with thousands apart, or with three decimals
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?|[+-]?\d{1,3}([.,]\d{3})+([.,]\d*)?")


@dataclass(frozen=True, slots=True)
class Moments:
    """Times of N rows."""

    local: I64  # [N] microseconds since 1970 on the users' clock
    offset: I64  # [N] microseconds that it is ahead of UTC; 0 where no offset is known
    aware: Bool  # [N] a time with an offset
    known: Bool  # [N] it could be read


def moments(values: Sequence[Any] | pa.ChunkedArray, zone: tzinfo, day_first: bool | None, name: str) -> Moments:
    """Times with an offset become local ones of `zone`; Unix times have that of UTC. `day_first` None: as the whole
    column says; `name` of the log in errors.

    Raises UsageError where dates could begin with the day or with the month or year, and where all times are numbers
    that are none.
    """
    if isinstance(values, pa.ChunkedArray):
        whole = _all_iso(values, zone)
        if whole is not None:
            return whole
        values = values.cast(pa.string()).to_pylist()
    first = _day_first(values, name) if day_first is None else day_first
    known: dict[Any, tuple[int, int, bool] | None] = {}
    columns = np.zeros((4, len(values)), np.int64)
    for i, value in enumerate(values):
        if value not in known:
            known[value] = _moment(value, zone, day_first=first)
        if (moment := known[value]) is not None:
            columns[:, i] = *moment, True
    local, offset, aware, read = columns
    odd = next((value for value in known if value is not None and _number_kind(str(value).strip()) == ""), None)
    if odd is not None and not read.any():
        raise UsageError(
            f"{name}: times such as {odd} are no Unix times of {UNIX_YEARS}. If a spreadsheet program counts days so, "
            "give the column a format of dates, such as 2026-03-01 10:00, and export it again"
        )
    return Moments(local, offset, aware.astype(np.bool_), read.astype(np.bool_))


def _all_iso(values: pa.ChunkedArray, zone: tzinfo) -> Moments | None:
    """Moments of cells in ISO 8601, with an offset in all cells or in none."""
    texts = pc.utf8_trim_whitespace(values.cast(pa.string()))
    blank = pc.equal(texts, "")
    texts = pc.if_else(blank, pa.scalar(None, pa.string()), texts)
    known = pc.is_valid(texts).to_numpy()
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            instant = pc.cast(texts, kind)
        except pa.ArrowInvalid:
            continue
        at = instant.cast(pa.int64()).fill_null(0).to_numpy()
        aware = kind.tz is not None
        try:
            offset = np.where(known, _ahead(at, zone), 0) if aware else np.zeros(len(at), np.int64)
        except OverflowError:  # beyond the calendar of the zone
            return None
        return Moments(at + offset, offset, np.full(len(at), aware), known)
    return None


def _ahead(instant: I64, zone: tzinfo) -> I64:
    """Microseconds that the clocks of a zone are ahead of UTC at these of the Unix clock. Most days have one offset."""
    day = 86_400_000_000
    days, index = np.unique(instant // day, return_inverse=True)
    begin, end = (np.array([_offset(int(d), zone) for d in ends]) for ends in (days * day, (days + 1) * day))
    ahead = begin[index]
    for i in np.flatnonzero((begin != end)[index]):
        ahead[i] = _offset(int(instant[i]), zone)
    return ahead


def _offset(microseconds: int, zone: tzinfo) -> int:
    when = _UNIX + timedelta(microseconds=microseconds)
    return (when.astimezone(zone).utcoffset() or timedelta(0)) // timedelta(microseconds=1)


def _moment(value: Any, zone: tzinfo, *, day_first: bool) -> tuple[int, int, bool] | None:
    """Local microseconds, those of its offset, and whether there is one; None where it is no time."""
    try:
        when = _read(value, day_first=day_first)
        if when.tzinfo is not None:
            when = when.astimezone(UTC).astimezone(zone)
    except (TypeError, ValueError, OverflowError):
        return None
    offset = (when.utcoffset() or timedelta(0)) // timedelta(microseconds=1)
    local = when.replace(tzinfo=UTC) - _UNIX
    return local // timedelta(microseconds=1), offset, when.tzinfo is not None


def readable_time(value: Any, zone: tzinfo) -> bool:
    """Can it be read as a time, whether the day or the month comes first?"""
    return any(_moment(value, zone, day_first=first) is not None for first in (True, False))


def time_format(values: Sequence[Any], name: str) -> tuple[str, bool | None]:
    """How most times of a column are written, and whether dates begin with the day; None: that makes no difference.

    Raises UsageError where dates could begin with the day or with the month or year.
    """
    kinds = Counter[str]()
    for value in values:
        text = "" if value is None else str(value).strip()
        if match := _date(text):
            kinds[match[2]] += 1
        elif text:
            number = _number_kind(text)
            kinds["ISO 8601" if number is None else number or "numbers that are no times"] += 1
    kind = kinds.most_common(1)[0][0] if kinds else "ISO 8601"
    if any(other in kinds for other in "/-"):
        first = _day_first(values, name)
        shown = next(str(value) for value in values if value is not None and _date(str(value).strip()))
        return f"{'day' if first else 'month'} first, as in {shown}", first
    return ("day first, with points" if kind == "." else kind), None


def _number_kind(text: str) -> str | None:
    """How a time that is a number is written; empty: it is none, as the days that spreadsheets count. None: no number,
    as eight digits are a date.
    """
    match = _PLAIN.fullmatch(text)
    if match is None or (match[1] == text and len(text) == 8):
        return None
    if match[1] == text and text.startswith("20") and len(text) in _DIGITS:
        return "year first, in digits"
    least, most = _UNIX_SECONDS
    number = float(text)
    if least <= number < most:
        return "Unix seconds"
    return "Unix milliseconds" if least <= number / 1000 < most else ""


def _read(value: Any, *, day_first: bool) -> datetime:
    if isinstance(value, datetime):
        return value
    text = str(value).strip()
    match _number_kind(text):
        case None:
            return datetime.fromisoformat(_iso(text, day_first=day_first))
        case "Unix seconds":
            return _UNIX + timedelta(seconds=float(text))
        case "Unix milliseconds":
            return _UNIX + timedelta(seconds=float(text) / 1000)
        case "":
            raise ValueError(text)
    return datetime.strptime(text, _DIGITS[len(text)])


def _iso(text: str, *, day_first: bool) -> str:
    """A time as ISO 8601 has it, if it is one that spreadsheets write; else as it is."""
    if match := _YEAR_FIRST.fullmatch(text):
        year, month, day, rest = match.groups()
        return f"{year}-{int(month):02d}-{int(day):02d}{rest}"
    match = _DATE.fullmatch(text)
    if match is None:
        return text
    first, dot, other, year, hour, minute, second, half = match.groups()
    day, month = (first, other) if day_first or dot == "." else (other, first)
    year = year if len(year) == 4 else f"{19 if int(year) >= _CENTURY else 20}{year}"
    clock = int(hour or 0)
    if half is not None:
        if not 1 <= clock <= 12:
            raise ValueError(text)
        clock = clock % 12 + 12 * (half in "pP")
    return f"{year}-{int(month):02d}-{int(day):02d}T{clock:02d}:{minute or '00'}:{second or '00'}"


def _date(text: str) -> re.Match[str] | None:
    """Parts of a date that begins with the day or the month; None: it is none, as 13/13/2026."""
    match = _DATE.fullmatch(text)
    return match if match and min(int(match[1]), int(match[3])) <= 12 else None


def _may_begin_with_year(date: re.Match[str]) -> bool:
    """Could 26/01/05 be in 2026? Not with a year of four digits at its end, or one that is no day."""
    return int(date[1]) > 12 and len(date[4]) == 2 and 1 <= int(date[4]) <= 31


def _day_first(values: Sequence[Any], name: str) -> bool:
    """Do dates such as 02/01/2026 begin with the day? Days after the twelfth tell.

    Raises UsageError where none is after it, where both places have such days, and where each could be a year.
    """
    dates = {value: match for value in dict.fromkeys(values) if isinstance(value, str)
             and (match := _date(value.strip())) and match[2] != "."}  # fmt: skip
    if dates and all(map(_may_begin_with_year, dates.values())):
        raise UsageError(
            f"{name}: times such as {next(iter(dates))} could begin with the day or with the year; say "
            "simulator.day_first=true, or write years with four digits, such as 2026-01-05, and export it again"
        )
    days = next((value for value, match in dates.items() if int(match[1]) > 12), None)
    months = next((value for value, match in dates.items() if int(match[3]) > 12), None)
    if not dates or (days is None) != (months is None):
        return days is not None
    if days is None:
        why = f"times such as {next(iter(dates))} could begin with the day or with the month"
    else:
        why = f"some times begin with the day, as {days}, and some with the month, as {months}"
    raise UsageError(f"{name}: {why}; say simulator.day_first=true or simulator.day_first=false")


def decimal_comma(texts: Sequence[str | None]) -> bool | None:
    """Is a comma the decimal one? None where no number has one.

    Raises UsageError where a comma could be either.
    """
    return _comma(texts, "numbers", "simulator.decimal") if any("," in (text or "") for text in texts) else None


def other_currency(column: str) -> str:
    """The currency other than dollars that a column names; empty: it names none."""
    named = _OTHER_MONEY.search(column)
    return named[0] if named else ""


def check_currency(column: str | None) -> None:
    """Raises UsageError for a column of money that names another currency than dollars."""
    if column and (currency := other_currency(column)):
        raise UsageError(
            f"simulator.columns.cost_usd={column!r} names {currency}, and costs are in US dollars. Convert it, or "
            "leave it out (simulator.columns={cost_usd: null}): then prices are simulated"
        )


def numbers(texts: Sequence[str | None], decimal: str | None, what: str, option: str) -> F64:
    """Numbers, NaN where nothing is said or it is none. `decimal` None: a point, or a comma where the whole column says
    so; `what` they are, and the option that says it, in errors.

    Raises UsageError where a comma could be either.
    """
    comma = _comma(texts, what, option) if decimal is None else decimal == ","
    values = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        if text is not None and _NUMBER.fullmatch(text.strip()):
            plain = text.strip().replace("." if comma else ",", "")
            try:
                values[i] = float(plain.replace(",", "."))
            except ValueError:  # several commas, or points, where there can be one
                continue
    return values


def number_of(cell: str | float) -> float:
    """A cell as a number, NaN where it is none. Python takes 1_0 for 10, which nobody writes so."""
    try:
        return float("nan" if isinstance(cell, str) and "_" in cell else cell)
    except (TypeError, ValueError):
        return float("nan")


def _comma(texts: Sequence[str | None], what: str, option: str) -> bool:
    """Is the comma the decimal one?"""
    some = [text.strip() for text in texts if text is not None and "," in text]
    grouped = [text for text in some if _GROUPED.fullmatch(text) or ("." in text and text.rfind(".") > text.rfind(","))]
    if not some or len(grouped) < len(some):
        return bool(some)
    if any("." in text or text.count(",") > 1 for text in some):
        return False
    raise UsageError(
        f"{what} such as {some[0]} could be thousands or have three decimals; say '{option}=\",\"' or '{option}=\".\"'"
    )
