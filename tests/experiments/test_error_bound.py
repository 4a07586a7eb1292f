"""The experiment on error bounds: what its table counts, counted again turn by turn."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import skg_bench
from experiments.error_bound.analysis import COLUMNS, analyse, lines, table
from skg_bench.runfolder.run import Run

ARMS = "arms={vcache: [policy=vcache, policy.delta=0.3, policy.least=2], threshold_50: []}"
DENSE = ("simulator.messages_per_day=8", "simulator.concentration=2", "simulator.accept=0.9",
         "simulator.volume_spread=0.2", "simulator.active_low=1")  # fmt: skip


@pytest.fixture(scope="module")
def run(once: Callable[..., Path]) -> Run:
    words = ("experiment=error_bound", "users=6", "workers=1", "weeks=3", *DENSE, ARMS)
    return Run(once("bound", lambda folder: skg_bench.run([*words, f"out={folder}"])))


def test_shares_are_those_of_the_logs(run: Run) -> None:
    for line in lines(run):
        rows = run.turns(line.arm).to_pylist()
        users = sorted({r["user"] for r in rows})
        wrong, hits = [], []
        for u in users:
            user_rows = [r for r in rows if r["user"] == u]
            hits.append(sum(not r["fallback_to_llm"] for r in user_rows) / len(user_rows))
            wrong.append(sum(not r["fallback_to_llm"] and not r["skill_correct"] for r in user_rows) / len(user_rows))
        assert line.hits.mean == pytest.approx(sum(hits) / len(users))
        assert line.wrong.mean == pytest.approx(sum(wrong) / len(users))
        assert (line.ceiling is None) == (line.arm != "vcache")
    assert [len(cells) for cells in table(lines(run))] == [len(COLUMNS)] * 2


def test_no_hit_comes_before_enough_comparisons_and_hits_stay_below_the_ceiling(run: Run) -> None:
    line = next(line for line in lines(run) if line.arm == "vcache")
    assert line.ceiling is not None
    assert 0 < line.hits.mean <= line.ceiling.mean < 1
    stored = Counter((u["user"], u["turn"], u["skill"]) for u in run.updates("vcache").to_pylist() if u["op"] != "TAG")
    seen: Counter[tuple[int, int]] = Counter()
    for r in run.turns("vcache").to_pylist():
        nearest = (r["user"], r["shortlist"][0])
        if not r["fallback_to_llm"]:
            assert r["skill"] == nearest[1]
            assert seen[nearest] >= 2
            assert r["agrees"] is None
        else:
            assert (r["agrees"] is None) == (nearest[1] < 0)
            seen[nearest] += nearest[1] >= 0
        for u, t, skill in stored:
            if (u, t) == (r["user"], r["turn"]):
                seen[u, skill] = 0


def test_only_an_answer_that_is_right_agrees_with_a_right_one(run: Run) -> None:
    rows = [r for r in run.turns("vcache").to_pylist() if r["agrees"]]
    assert rows
    assert all(r["answer_correct"] for r in rows)
    assert all(r["agrees"] is None for r in run.turns("threshold_50").to_pylist())


def test_a_report_is_made_of_each_arm_and_other_runs_are_refused(run: Run, tmp_path: Path) -> None:
    report = analyse(run)
    report.write(tmp_path, "error_bound")
    assert report.holds == all(line.holds for line in lines(run))
    assert (tmp_path / "error_bound.md").read_text("utf-8").count("\n| ") == 2 + 2
    other = skg_bench.run(
        ["arms={never: [policy=never]}", "reference=never", "users=2", "workers=1", "weeks=1", f"out={tmp_path / 'o'}"]
    )
    with pytest.raises(skg_bench.UsageError, match="has policy=vcache; run experiment=error_bound"):
        analyse(other)
