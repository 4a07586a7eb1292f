"""What arms decide stays the same bits while the code is rebuilt."""

from pathlib import Path

import pytest

from tests.laws import decisions

NOT_PROMISED = "dense mlp_pool "  # an MLP's weights may differ between types of CPU


@pytest.mark.parametrize("name", decisions.WORLDS)
def test_every_decision_column_has_its_committed_digest(tmp_path: Path, name: str) -> None:
    """`python -m tests.laws.decisions --write` accepts a change of rule; the commit names the columns."""
    run = dict(decisions.digests(name, decisions.simulated(name, tmp_path / name)))
    committed = {column: digest for column, digest in decisions.committed().items() if column.startswith(f"{name} ")}
    assert run.keys() == committed.keys()
    differing = [column for column in run if run[column] != committed[column]]
    assert [column for column in differing if not column.startswith(NOT_PROMISED)] == []
