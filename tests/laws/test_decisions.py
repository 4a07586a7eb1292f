"""What arms decide stays the same bits while the code is rebuilt."""

from pathlib import Path

import pytest

from skg_bench.runfolder.run import Run
from tests.laws import decisions, world

NOT_PROMISED = "dense mlp_pool "  # an MLP's weights may differ between types of CPU


def check(name: str, decided: dict[str, str]) -> None:
    """The digests are those that are committed."""
    committed = {column: digest for column, digest in decisions.committed().items() if column.startswith(f"{name} ")}
    assert decided.keys() == committed.keys()
    differing = [column for column in decided if decided[column] != committed[column]]
    assert [column for column in differing if not column.startswith(NOT_PROMISED)] == []


@pytest.mark.parametrize("name", ["stack", "gate"])
def test_every_decision_column_has_its_committed_digest(tmp_path: Path, name: str) -> None:
    """`python -m tests.laws.decisions --write` accepts a change of rule; the commit names the columns."""
    check(name, dict(decisions.digests(name, decisions.simulated(name, tmp_path / name))))


def test_every_decision_column_of_the_dense_world_has_its_committed_digest(base: Run, forks: Run) -> None:
    """Those of the runs that the laws are held by: a user's rows do not depend on who else runs."""
    others = [arm for arm in base.arms if arm not in world.FORKED]
    dense = dict(decisions.digests("dense", base, others)) | dict(decisions.digests("dense", forks))
    check("dense", dense)
