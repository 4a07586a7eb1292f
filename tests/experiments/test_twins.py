"""The experiment on twins: its figures are those of the logs, and memories gain where they can and nowhere else."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec

import pytest

from experiments.twins.analysis import GAINS, HEAD, Twins, played
from skg_bench.runfolder.run import Run
from skg_bench.simulator.gym.twins import Reuse

pytestmark = pytest.mark.skipif(find_spec("reasoning_gym") is None, reason="the extra gym is not installed")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Reuse, Run]:
    return played(tmp_path_factory.mktemp("twins"), ["users=6", "weeks=2", "workers=1", "salt=0"])


def test_the_table_has_the_figures_of_the_logs(runs: Mapping[Reuse, Run]) -> None:
    rows = [dict(zip(HEAD, row, strict=True)) for row in Twins.of(runs).table().rows]
    assert [(row["comes back"], row["arm"]) for row in rows] == [
        (reuse, arm) for reuse in runs for arm in runs[reuse].arms
    ]
    for row in rows:
        run = next(run for reuse, run in runs.items() if reuse == row["comes back"])
        turns = run.turns(row["arm"]).to_pandas()
        tasks = turns[turns["met"].notna()]
        assert len(tasks) == len(turns) / 2 == 6 * 6
        shares = {"solved": tasks, "at first": tasks[tasks["met"] == "nothing"]}
        shares |= {"transfer": tasks[tasks["met"] == "family"], "retention": tasks[tasks["met"] == "entry"]}
        for name, some in shares.items():
            share = f"{100 * some['answer_correct'].mean():.1f}\u202f%" if len(some) else "-"
            assert row[name].replace(" ", "\u202f") == share, (row, name)
        assert row["tokens read a message"] == f"{turns['tokens_in'].mean():,.0f}"


def test_answers_help_with_tasks_that_come_back_and_procedures_with_their_families_too(
    runs: Mapping[Reuse, Run],
) -> None:
    twins = Twins.of(runs)
    assert twins.unexpected() == []
    for arm, where in GAINS.items():
        for reuse in runs:
            assert twins.gain(reuse, arm)[0] == pytest.approx(2 / 3 if reuse in where else 0)
    swapped = replace(
        twins, rows={**twins.rows, **{("none", arm, "solved"): twins.rows["entry", arm, "solved"] for arm in GAINS}}
    )
    assert [line.split(" gains")[0] for line in swapped.unexpected()] == list(GAINS)


def test_a_prompt_holds_no_answer_that_the_user_did_not_say_before(runs: Mapping[Reuse, Run]) -> None:
    for reuse, run in runs.items():
        turns = run.turns("never").to_pandas()
        assert not turns.loc[turns["met"].notna(), "answer_correct"].any(), reuse
        first = run.turns("answers").to_pandas()
        assert not first.loc[first["met"] == "nothing", "answer_correct"].any(), reuse
