"""Names by which trackers show a run."""

from typing import Any

import pytest

from skg_bench.tracker.verdict_words import arm_title, verdicts_in_words


def summary(users: int) -> dict[str, Any]:
    gap = {"mean": 0.1, "low_new": 0.05, "high_new": 0.15, "verdict": "higher"}
    return {"users": users, "reference": "never", "differences": {"skg": {"utility": gap}}}


@pytest.mark.parametrize(
    ("users", "verdict"), [(2, "undecided by 2 users"), (3, "undecided by 3 users"), (4, "higher"), (100, "higher")]
)
def test_a_name_gives_a_verdict_where_there_are_users_enough_for_one(users: int, verdict: str) -> None:
    assert arm_title(summary(users), "skg") == f"skg {verdict} +0.100 (+0.050 to +0.150)"
    assert verdicts_in_words(summary(users)) == {"skg": f"{verdict}: +0.100 utility (+0.050 to +0.150) against never"}
    assert arm_title(summary(users), "never") == "never"
