"""Habits of wording and misled models: the tables are those of the runs' own figures."""

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.assumptions.analysis import MISLED, analyse, repeats
from skg_bench.analysis import summary
from skg_bench.app.api import run as simulate
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run

HABITS = ("0.9", "0.0")
SIZE = (
    "experiment=assumptions", "users=4", "workers=1", "weeks=1", "simulator.messages_per_day=7",
    "simulator.volume_spread=0.2", "simulator.active_low=1",  # nobody has many more turns than others
)  # fmt: skip


@pytest.fixture(scope="module")
def runs(once: Callable[..., Path]) -> list[Run]:
    def play(folder: Path) -> None:
        for habit in HABITS:
            simulate([*SIZE, f"simulator.habit={habit}", f"out={folder / habit}"])

    return [Run(once("assumptions", play) / habit) for habit in HABITS]


def test_who_repeats_their_own_words_more_is_told_so_and_stays_testable(runs: list[Run]) -> None:
    often, never = (repeats(run) for run in runs)
    assert (often[0], never[0]) == ("0.9", "0")
    assert float(often[1].removesuffix(" %")) > 5 + float(never[1].removesuffix(" %"))
    assert often[2] == never[2]  # what they ask is the same
    assert never[4] == often[4] == "yes"


def test_each_arm_is_told_with_the_figures_of_its_run_and_each_probability_of_being_misled(runs: list[Run]) -> None:
    report = analyse(runs)
    _, by_habit, prompts = report.parts
    means = {float(run.config["simulator"]["habit"]): summary.read_summary(run).arms for run in runs}
    for arm, habit, hits, *_ in by_habit.rows:  # type: ignore[union-attr]
        assert float(hits.removesuffix(" %")) / 100 == pytest.approx(
            means[float(habit)][arm]["hit_rate"].mean, abs=6e-4
        )
    told = [(row[0], row[1]) for row in prompts.rows]  # type: ignore[union-attr]
    assert told == [(kind, share) for kind in MISLED for share in ("0", "0.2", "0.6", "1")]
    right = [float(row[3].removesuffix(" %")) for row in prompts.rows if row[0] == "rag"]  # type: ignore[union-attr]
    assert right == sorted(right, reverse=True)
    assert right[0] > right[-1]


def test_two_runs_of_one_habit_and_runs_of_other_experiments_are_refused(runs: list[Run], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"same simulator\.habit"):
        analyse([runs[0], runs[0]])
    other = simulate(["arms={skg: []}", "reference=skg", "users=2", "workers=1", "weeks=1", f"out={tmp_path / 'run'}"])
    with pytest.raises(UsageError, match="has no arm"):
        analyse([other])
