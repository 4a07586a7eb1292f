"""The fixture itself: it must be what the engine would write."""

from pathlib import Path

import pyarrow as pa
import pytest

from skg_bench.runfolder import schema
from tests.analysis.synthetic import TOP_K, make_run


@pytest.mark.parametrize("kind", [pa.int32(), pa.float64(), pa.bool_(), pa.dictionary(pa.int32(), pa.string()),
                                  pa.list_(pa.float32(), 5), pa.binary(16), pa.timestamp("ms")], ids=str)  # fmt: skip
def test_a_new_column_of_the_schema_changes_no_maker_of_logs(
    kind: pa.DataType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = schema.turns(5)
    monkeypatch.setattr(schema, "turns", lambda *_, **__: turns.append(pa.field("new", kind, nullable=False)))
    run = make_run(tmp_path / "run", users=2, weeks=2)
    assert run.turns("skg", ["new"])["new"].null_count == 0


def test_the_synthetic_run_follows_the_schema_and_arms_share_their_events(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=6, weeks=3)
    names = schema.turns(TOP_K).names
    live, never = run.turns("skg", names), run.turns("never", names)
    assert [(f.name, f.nullable) for f in live.schema] == [(f.name, f.nullable) for f in schema.turns(TOP_K)]
    for column in ("user", "turn", "time", "message", "answerable"):
        assert live[column].to_pylist() == never[column].to_pylist()
    assert 0 < sum(not f for f in live["fallback_to_llm"].to_pylist()) < live.num_rows
    assert all(never["fallback_to_llm"].to_pylist())
    assert run.updates("skg").num_rows == sum(live["skill_learned"].to_pylist())
    assert run.feedback("never").num_rows > 0
