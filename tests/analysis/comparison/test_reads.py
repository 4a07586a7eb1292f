"""A column of the turn log of an arm is read once by all that needs it, and messages only where they are shown."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from skg_bench.analysis import summary
from skg_bench.analysis.comparison.compare import compare
from skg_bench.core.foreign import table_of
from skg_bench.runfolder.run import Run
from tests.analysis.synthetic import World, make_run

ARMS = {**{f"arm_{k}": World(hit=0.2 + 0.05 * k) for k in range(9)}, "never": World(hit=0.0)}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("runs") / "run", users=6, weeks=2, arms=ARMS)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str]]:
    """How often each column of each file of a turn log was read of all users."""
    counts = Counter[tuple[str, str]]()

    def counted(file: Path, columns: Sequence[str], rows: Any) -> Any:
        if file.parent.name == "turns" and rows is None:
            counts.update((file.name, column) for column in columns if column not in ("user", "turn"))
        return table_of(file, columns, rows)

    monkeypatch.setattr("skg_bench.runfolder.run.table_of", counted)
    return counts


def _check_read_once(run: Run, reads: Counter[tuple[str, str]]) -> None:
    files = {arm: run.shards("turns", arm)[0].name for arm in ARMS}
    assert {file for file, _ in reads} == set(files.values())
    assert reads.pop((files["arm_0"], "time")) == 2  # events are those of the first arm, whose times all have to share
    assert set(reads.values()) == {1}
    assert [file for file, column in reads if column == "message"] == [files["arm_0"]]


@pytest.mark.parametrize("flips", [0, 3])
def test_a_comparison_reads_the_turns_of_each_of_ten_arms_once(
    run: Run, reads: Counter[tuple[str, str]], flips: int
) -> None:
    comparison = compare([run], flips=flips)
    assert {row.arm for row in comparison.rows} == ARMS.keys() - {"never"}
    assert any(flipped.examples for flipped in comparison.flips) == (flips > 0)
    _check_read_once(run, reads)


def test_a_summary_reads_the_turns_of_each_of_ten_arms_once(run: Run, reads: Counter[tuple[str, str]]) -> None:
    summary.describe(run)
    for column in ("intent", "request_type", "answerable"):  # for kinds of requests
        reads[run.shards("turns", "arm_0")[0].name, column] -= 1
    _check_read_once(run, reads)
