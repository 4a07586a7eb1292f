"""The fixture itself: it must be what the engine would write."""

from pathlib import Path

from skg_bench.runfolder import schema
from tests.analysis.synthetic import TOP_K, make_run


def test_the_synthetic_run_follows_the_schema_and_arms_share_their_events(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=6, weeks=3)
    live, never = run.turns("skg"), run.turns("never")
    assert [(f.name, f.nullable) for f in live.schema] == [(f.name, f.nullable) for f in schema.turns(TOP_K)]
    for column in ("user", "turn", "time", "message", "answerable"):
        assert live[column].to_pylist() == never[column].to_pylist()
    assert 0 < sum(not f for f in live["fallback_to_llm"].to_pylist()) < live.num_rows
    assert all(never["fallback_to_llm"].to_pylist())
    assert run.updates("skg").num_rows == sum(live["skill_learned"].to_pylist())
    assert run.feedback("never").num_rows > 0
