"""The experiment on memories that are read word for word: its figures are those of the logs, and it sees a leak."""

from dataclasses import replace
from pathlib import Path

import pytest

import skg_bench
from experiments.told.analysis import ARMS, HEAD, Memories, analyse
from skg_bench.app.experiment_report import Table
from skg_bench.runfolder.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    words = ["experiment=told", "users=8", "weeks=2", "workers=1", "salt=0", "simulator.changes=0.8"]
    return skg_bench.run([*words, f"out={tmp_path_factory.mktemp('told') / 'run'}"])


def test_the_table_has_the_figures_of_the_logs(run: Run) -> None:
    (table,) = analyse(run).parts
    assert isinstance(table, Table)
    rows = {row[0]: dict(zip(HEAD, row, strict=True)) for row in table.rows}
    assert list(rows) == [arm for arm in ARMS if arm != "mem0"]  # which is a package of its own
    for arm, row in rows.items():
        turns = run.turns(arm).to_pandas()
        told, changed = turns[turns["need"] == "told"], turns[turns["code_changed"] & (turns["need"] == "told")]
        asked = turns[turns["need"].notna()]
        shares = {
            "told codes said rightly": told["states"] == "right",
            "of those under a name": told.loc[told["by_detour"], "states"] == "right",
            "of changed ones outdated": changed["states"] == "outdated",
            "not told, and said so": turns.loc[turns["need"] == "not_told", "states"] == "nothing",
            "codes of others": asked["states"] == "another_user",
        }
        for name, which in shares.items():
            by_four = which.groupby(turns["user"] // 4).mean()  # who share a memory in one arm are units in all
            share = float(by_four.mean())
            assert float(row[name].rstrip(" %\u202f")) == pytest.approx(100 * share, abs=0.06), (arm, name)
        assert row["tokens read a message"] == f"{turns['tokens_in'].mean():,.0f}"
        assert row["USD for 1,000 messages"] == f"{1000 * turns['cost_usd'].mean():.2f}"


def test_it_is_as_expected_and_a_leak_or_a_guess_would_not_be(run: Run) -> None:
    assert analyse(run).holds
    memories = Memories.of(run)
    rows = dict(memories.rows)
    rows["notes", "leaks"] = replace(rows["notes", "leaks"], mean=0.01)
    rows["leaking", "recall"] = replace(rows["leaking", "recall"], reference_mean=0.5)
    assert [line.split(" says")[0] for line in replace(memories, rows=rows).unexpected()] == ["never", "notes"]


def test_the_report_names_its_command(run: Run, tmp_path: Path) -> None:
    assert "skg-bench run experiment=told users=60" in analyse(run).page
