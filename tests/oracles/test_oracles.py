"""The recorded behaviours of ACE are what their README says."""

import json
from pathlib import Path

HERE = Path(__file__).parent


def test_the_behaviours_of_ace_are_120_of_three_versions_and_change_a_skillbook_or_fail() -> None:
    cases = [json.loads(line) for line in (HERE / "ace" / "cases.jsonl").read_text("utf-8").splitlines()]
    assert len({case["uid"] for case in cases}) == len(cases) == 120
    versions = {case["schema"]: case["package"] for case in cases}
    assert versions == {"v1": "ace-framework==0.7.1", "v09": "ace-framework==0.9.7", "v2": "ace-framework==0.13.0"}
    for case in cases:
        outcomes = case["expect"]["outcomes"]
        assert len(outcomes) == 1 + len(case["steps"]) or "error" in outcomes[-1], case["uid"]
        assert (case["expect"]["skillbook"] is None) == ("error" in outcomes[0]), case["uid"]
