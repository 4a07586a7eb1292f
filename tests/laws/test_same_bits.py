"""Law 1: a user's rows are the same bits however the run is cut, spread, or calculated."""

import platform
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

from skg_bench.analysis import summary
from skg_bench.runfolder import shards
from skg_bench.runfolder.run import Run
from tests.laws import kernels, world
from tests.laws.conftest import SOME, USERS

EVERYONE = range(USERS)
FEW = 2  # users who are each a cohort


def test_the_world_is_dense_enough_to_mean_something(base: Run) -> None:
    """Every arm does what it is there for, so that a difference would show."""
    operations: dict[str, Counter[str]] = {}
    by_chance = ("epsilon", "exp4", "frequency", "random", "repeat_last", "softmax", "thompson", "vcache")
    for arm in world.ALL:
        operations[arm] = Counter(base.updates(arm)["reason"].cast("string").to_pylist())
        turns = base.turns(arm, ["fallback_to_llm", "explored", "propensity", "score", "skill_learned"])
        hits = 1 - np.mean(turns["fallback_to_llm"].to_numpy())
        assert (hits > 0) == (arm not in ("never", "band", "deaf")), (arm, hits)
        assert pc.any(turns["explored"]).as_py() == (arm in by_chance), arm
        scores = np.concatenate([np.asarray(c.flatten()) for c in turns["score"].chunks])
        assert np.isnan(scores).all() == (arm == "identity")
        learning = arm not in ("identity", "oracle", "never", "band", "deaf")
        assert (len(np.unique(scores)) > 10) == learning, arm
    everything = {"used", "rated later", "captured", "captured again", "harmful", "unused"}
    for arm in ("skg", "answer", "frozen_book", "prompted", "epsilon", "identity", "frequency", "random"):
        assert set(operations[arm]) == everything, arm
    assert set(operations["oracle"]) == {"used", "captured", "captured again"}
    assert set(operations["everything"]) == {"used", "rated later", "captured"}  # what is asked again, is a hit
    assert "evicted" in operations["budget"]
    assert not operations["deaf"] + operations["band"]


@pytest.mark.soak
def test_cohorts_and_workers_change_no_bit_of_360_users(tmp_path: Path) -> None:
    """Both at once. Those of some users are held in other cohorts and processes along with other kernels, below."""
    base = world.run(tmp_path / "base", 360, 1000)
    assert world.differences(base, world.run(tmp_path / "other", 360, 256, 2), range(360)) == []


def test_cohorts_and_workers_change_no_bit_of_a_summary(here: Run, tmp_path: Path) -> None:
    """Of some arms, as that of all takes ten times as long."""
    other = world.run(tmp_path / "other", SOME, 40, 2, world.SUMMED)
    summary.write_summary(other)
    for file in ("summary.json", "curves.csv"):
        assert (here.path / file).read_bytes() == (other.path / file).read_bytes()


def test_a_thousand_users_in_step_are_the_users_that_they_are_in_small_cohorts(base: Run, tmp_path: Path) -> None:
    many = world.run(tmp_path / "many", 1100, 1000, 1, ("skg",))
    assert len(many.shards("turns", "skg")) == 5
    few = world.run(tmp_path / "few", 200, 50, 1, ("skg",))
    assert world.differences(many, few, range(200)) == []
    assert world.differences(base, many, EVERYONE, ["skg"]) == []


def test_cohorts_and_workers_change_no_byte_of_a_shard(large: Run, tmp_path: Path) -> None:
    """Not of its rows only: the unused end of a page is part of a file, too."""
    assert len(large.shards("turns", *world.LARGE)) == shards.count(world.TWO) > 1
    spread = world.run(tmp_path / "spread", world.TWO, 100, 2, world.LARGE)
    assert world.shards(large) == world.shards(spread)


def test_a_users_rows_do_not_depend_on_who_else_runs_and_in_what_order(base: Run, tmp_path: Path) -> None:
    """Each user is a cohort, and the order of arms is reversed."""
    few = world.run(tmp_path / "few", FEW, 7, 1, world.ALL[::-1])
    assert world.differences(base, few, range(FEW)) == []


@pytest.mark.parametrize("arms", [("always", "frozen_all"), ("random",)])
def test_an_arms_rows_do_not_depend_on_which_other_arms_run(base: Run, tmp_path: Path, arms: tuple[str, ...]) -> None:
    assert world.differences(base, world.run(tmp_path / "some", USERS, 256, 1, arms), EVERYONE, arms) == []


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Some users under some arms, computed as this process computes."""
    run = world.run(tmp_path_factory.mktemp("here") / "run", SOME, 256, 1, world.SUMMED)
    summary.write_summary(run)
    return run


def test_kernels_and_threads_of_the_libraries_change_no_bit_nor_do_cohorts_and_workers(
    base: Run, here: Run, tmp_path: Path, root: Path
) -> None:
    """All at once, and the table in which similarities are looked up. Of `base` the cohorts are of 1,000 rows, and one
    process with native kernels made it.
    """
    table = kernels.elsewhere(
        "other", root, "-m", "tests.laws.world", str(tmp_path / "other"), str(SOME), "120", "2", "summary", "table"
    )
    assert world.differences(base, Run(tmp_path / "other"), range(SOME)) == []
    assert table == world.similarities()
    assert (here.path / "summary.json").read_bytes() == (tmp_path / "summed" / "summary.json").read_bytes()


PLAIN = """
import numpy as np, hashlib
x = np.random.default_rng(0).uniform(0.1, 9, (700, 384))
for bits in (x.astype("f4") @ x.astype("f4").T, np.log(x)):
    print(hashlib.sha256(bits.tobytes()).hexdigest())
"""


def test_the_kernels_do_differ_where_numbers_are_not_on_the_grid(root: Path) -> None:
    """Otherwise the test above would prove nothing."""
    if platform.machine() != "x86_64":
        pytest.skip("another kernel than the processor's own can be named on x86-64 only")
    native, other = (kernels.elsewhere(kernel, root, "-c", PLAIN).split() for kernel in kernels.KERNELS)
    assert native[0] != other[0]
    assert native[1] != other[1]
