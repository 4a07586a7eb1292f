"""Our compatibility modes do what the published packages were recorded to do."""

import pytest

from tests.skillbook.ace.play import Case, cases, played

RECORDED = [*cases(), *cases("more.jsonl")]


@pytest.mark.req("P08", "P11", "U02", "U03", "U04", "U05", "U06", "U10", "U11", "U12", "U13")
@pytest.mark.parametrize("case", RECORDED, ids=[case["uid"] for case in RECORDED])
def test_a_compatibility_mode_does_what_the_package_was_recorded_to_do(case: Case) -> None:
    assert played(case) == case["expect"]
