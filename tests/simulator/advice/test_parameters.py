"""What the Guardian's world refuses: the parameter by name, and what is valid."""

from typing import Any

import pytest

from skg_bench.core.errors import UsageError
from tests.simulator.advice.shoppers import guardian

WRONG: list[tuple[str, Any, str]] = [
    ("wanted_share", 1.2, "in [0, 1]"), ("answered", -0.1, "in [0, 1]"), ("mistaken", float("nan"), "in [0, 1]"),
    ("triggers_per_week", 0, "above 0"), ("habit_half_life_days", 0, "above 0"),
    ("annoyance_half_life_days", float("inf"), "above 0"), ("habit", -1, "from 0"), ("kinds_apart", -1, "from 0"),
    ("persuades", float("inf"), "from -1000 to 1000"), ("habit", 1e308, "from 0 to 1000"),
    ("triggers_per_week", 51, "at most 50"), ("sitting_days", 1e9, "from 0 to 10000"),
    ("times", [1, 2, 3], "4 numbers"), ("bands", [0] * 6, "6 numbers"),
    ("bands", [1, 1, 1, 1, 1, -1], "6 numbers"), ("order", "shuffled", "time or permuted"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "valid"), WRONG)
def test_a_value_out_of_range_is_named_with_what_is_valid(name: str, value: Any, valid: str) -> None:
    with pytest.raises(UsageError, match=rf"simulator\.{name}=") as raised:
        guardian(**{name: value})
    assert valid in str(raised.value)


def test_shares_of_listeners_are_at_most_one() -> None:
    with pytest.raises(UsageError, match=r"accept_share=0\.7 and wait_share=0\.4"):
        guardian(accept_share=0.7, wait_share=0.4)


def test_the_therapist_does_not_begin_below_the_analyst() -> None:
    with pytest.raises(UsageError, match="approve_below=5 is above friction_from=4"):
        guardian(approve_below=5)
