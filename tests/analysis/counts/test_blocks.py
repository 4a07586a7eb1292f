"""Tables from blocks of users: the same bits whatever a block holds, and never more turns at once than it has."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skg_bench.analysis import summary
from skg_bench.analysis.comparison.compare import compare
from skg_bench.analysis.comparison.turn_bins import binned_arms
from skg_bench.analysis.counts import turn_logs
from skg_bench.analysis.counts.joined import Packed, unpacked
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.lift.first_order import first_order
from skg_bench.analysis.report.roster import rosters
from skg_bench.analysis.summary.describe import csv
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from tests.analysis.synthetic import ARMS, World, make_run

USERS = 260  # a whole shard, and one of 4 users
SMALL, LARGE = 1, 10**9  # turns of a block: a shard each, and all at once
TWIN = {**ARMS, "skg_again": World(), "late": World(learns_until=12), "careless": World(hit=0.95, hit_right=0.6)}
ONE = {"skg": World()}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("blocks") / "run", users=USERS, weeks=2, per_week=5.0, arms=TWIN)


@pytest.fixture(scope="module")
def longer(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """More users, and the same ones for longer, so that runs share a part of a block."""
    return make_run(tmp_path_factory.mktemp("blocks") / "longer", users=270, weeks=3, per_week=5.0, arms=ONE)


def compared(run: Run, longer: Run) -> str:
    comparisons = [compare([run], "skg"), compare([run, longer], "skg", flips=1)]
    return "\n".join(repr((c.rows, c.gaps, c.matched, c.unmatched, c.flips, c.break_even)) for c in comparisons)


def described(run: Run, _: Run) -> str:
    content, curves = summary.describe(run)
    return content.to_json() + csv(curves)


def listed(run: Run, _: Run) -> str:
    return repr(rosters(run, "skg", "never", None)) + repr(rosters(run, "skg", "never", [0, USERS - 1]))


def lifted(run: Run, _: Run) -> str:
    lifts = first_order(run, "skg", "never")
    return repr([(name, np.asarray(values).tolist()) for name, values in vars(lifts).items()])


def binned(run: Run, _: Run) -> str:
    arms = binned_arms(run, ["skg", "late"], (0, 4), Utility.of(run.config))
    return repr([arms.users.tolist(), arms.turns.tolist(), arms.values.tolist()])


@pytest.mark.parametrize("made", [compared, described, listed, lifted, binned])
def test_a_table_has_the_same_bits_from_a_block_for_each_shard_which_alone_is_held(
    run: Run, longer: Run, made: Callable[[Run, Run], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, most, texts = Run.turns, [0], []

    def counted(self: Run, arm: str, columns: Sequence[str] | None = None, users: Any = None) -> pa.Table:
        table = read(self, arm, columns, users)
        most[-1] = max(most[-1], table.num_rows)
        return table

    monkeypatch.setattr(Run, "turns", counted)
    for turns in (LARGE, SMALL):
        monkeypatch.setattr(turn_logs, "BLOCK_TURNS", turns)
        texts.append(made(run, longer))
        most.append(0)
    assert texts[0] == texts[1]
    assert len(texts[0]) > 1000
    own, others = ([*each.rows().values()] for each in (run, longer))
    assert most[0] >= sum(own)
    assert most[1] <= max(*own, *others) < sum(others)


def test_a_block_holds_the_turns_of_one_arm_until_it_lets_them_go(run: Run) -> None:
    ((block,), *_) = turn_logs.user_blocks([run], ["time"])
    for arm in run.arms:
        block.turns(arm, ["time"])
        assert list(block.held) == [arm]
    block.let_go()
    assert not block.held


def test_blocks_hold_all_users_once_in_whole_shards(run: Run, longer: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = longer.rows().values()
    for turns, sizes in ((SMALL, [256, 14]), (first + second - 1, [256, 14]), (first + second, [270])):
        monkeypatch.setattr(turn_logs, "BLOCK_TURNS", turns)
        blocks = turn_logs.user_blocks([run, longer])
        assert [len(block.users) for block, _ in blocks] == sizes
        assert [user for block, _ in blocks for user in block.users] == list(range(270))
        assert sum(block.turns("skg", []).num_rows for block, _ in blocks) == sum(run.rows().values())


def test_arms_are_identical_if_they_are_in_all_shards(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_logs, "BLOCK_TURNS", SMALL)
    verdicts = {row.arm: row.difference.verdict for row in compare([run], "skg").rows if row.metric.name == "hit_rate"}
    assert verdicts["skg_again"] == "identical"
    assert verdicts["late"] != "identical"


def test_a_run_without_turns_is_refused(tmp_path: Path) -> None:
    nobody = make_run(tmp_path / "nobody", users=0, weeks=1)
    with pytest.raises(UsageError, match="turns"):
        compare([nobody])


@given(
    st.lists(
        st.lists(st.one_of(st.integers(0, 2**34).map(float), st.floats(), st.just(0.0)), max_size=40),
        min_size=1,
        max_size=4,
    )
)
def test_packed_numbers_come_back_to_the_bit(parts: list[list[float]]) -> None:
    arrays = [np.array(part, np.float64) + 0.0 for part in parts]  # sums are never -0
    back = unpacked([Packed.of(values) for values in arrays])
    assert back.tobytes() == np.concatenate(arrays).tobytes()


@pytest.mark.parametrize(
    ("values", "size"), [(np.zeros(1000), 0), (np.arange(1000) % 7.0, 1000), (np.arange(1000) * 60.0, 2000)]
)
def test_small_numbers_take_little_room(values: Any, size: int) -> None:
    packed = Packed.of(values.astype(np.float64))
    assert packed.values.nbytes + (0 if packed.at is None else packed.at.nbytes) == size
