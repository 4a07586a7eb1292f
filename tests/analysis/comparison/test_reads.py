"""The turn log of an arm is read once by all that needs it."""

from collections import Counter
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
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file of a turn log was read."""
    counts = Counter[str]()

    def counted(file: Path, *given: Any) -> Any:
        counts.update([file.name] if file.parent.name == "turns" else [])
        return table_of(file, *given)

    monkeypatch.setattr("skg_bench.runfolder.run.table_of", counted)
    return counts


@pytest.mark.parametrize("flips", [0, 3])
def test_a_comparison_reads_the_turns_of_each_of_ten_arms_once(run: Run, reads: Counter[str], flips: int) -> None:
    comparison = compare([run], flips=flips)
    assert {row.arm for row in comparison.rows} == ARMS.keys() - {"never"}
    assert any(flipped.examples for flipped in comparison.flips) == (flips > 0)
    assert set(reads) == {file.name for arm in ARMS for file in run.shards("turns", arm)}
    assert set(reads.values()) == {1}


def test_a_summary_reads_the_turns_of_each_of_ten_arms_once(run: Run, reads: Counter[str]) -> None:
    summary.describe(run)
    assert set(reads.values()) == {1}
