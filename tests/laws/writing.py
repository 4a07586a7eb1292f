"""What holds for arms that write texts, whatever kind of text it is."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from unittest.mock import patch

from skg_bench.engine import execute as engine
from skg_bench.engine.plan import Plan
from skg_bench.runfolder.run import Run
from tests.laws import world


def check_cohorts(folder: Path, plan: Callable[..., Plan], arms: Sequence[str], users: int, before: Run) -> None:
    """The arms are the same bits in a cohort of 1,000 whose similarities are looked up and in cohorts of 7 that compute
    them; those of `before` are what they were there, in fewer stacks; and a fork that changes nothing is the arm that
    it forks from. Two runs have all of these differences at once.
    """
    with patch.object(engine, "_PAIRS_A_TURN", 10**9):
        whole = world.carry_out(plan(*arms, users=users), folder / "whole", users, 1000)
    with patch.object(engine, "_PAIRS_A_TURN", 0):
        small = world.carry_out(plan(*arms, users=users), folder / "small", users, 7)
    assert world.differences(whole, small, range(users)) == []
    assert world.differences(before, small, range(users), list(before.arms)) == []
    for log in world.LOGS:
        live, fork = (world.rows(small, log, arm, range(users)).drop_columns(["arm"]) for arm in ("skg", "as_before"))
        assert live.equals(fork), log


def shards(folder: Path, plan: Plan, users: int, workers: int) -> dict[str, str]:
    """Digest of each shard of a run in cohorts of 10."""
    run = world.carry_out(plan, folder / str(workers), users, 10, workers)
    files = sorted(run.path.glob("*/*.parquet"))
    return {str(file.relative_to(run.path)): sha256(file.read_bytes()).hexdigest() for file in files}
