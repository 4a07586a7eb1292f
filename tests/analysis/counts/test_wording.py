"""Numbers as people read them."""

import pytest

from skg_bench.analysis.counts.wording import bare, interval, number


@pytest.mark.parametrize(
    ("value", "unit", "signed", "text"),
    [
        (0.0344, "utility", True, "+0.034"), (-0.0344, "utility", True, "-0.034"),
        (-0.0344, "utility", False, "-0.034"),
        (0.0004, "utility", True, "0.000"), (-0.0004, "utility", True, "0.000"), (0.0, "share", False, "0.0 %"),
        (0.101, "share", False, "10.1 %"), (0.101, "share", True, "+10.1 pp"), (0.101, "difference", False, "10.1 pp"),
        (0.00012, "usd", False, "$0.00012"), (1234.0, "ms", False, "1.23 s"), (20.0, "skills", False, "20.0"),
        (None, "share", False, "-"), (float("nan"), "share", True, "-"), (float("inf"), "share", True, "-"),
    ],
)  # fmt: skip
def test_a_number_has_unit_and_sign_and_none_where_it_is_rounded_to_nothing(
    value: float | None, unit: str, signed: bool, text: str
) -> None:
    assert number(value, unit, signed=signed) == text


def test_an_interval_with_an_end_that_is_not_known_is_a_dash() -> None:
    assert interval(-0.01, 0.02, "share", signed=True) == "-1.0 pp to +2.0 pp"
    assert bare(interval(-0.01, 0.02, "share", signed=True)) == "-1.0 to +2.0"
    assert interval(0.01, 0.02, "share") == "1.0 % to 2.0 %"
    for low, high in ((None, 0.1), (0.1, None), (float("nan"), 0.1), (0.1, float("inf"))):
        assert interval(low, high, "share") == "-"
