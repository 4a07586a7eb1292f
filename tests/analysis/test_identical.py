"""Arms that did the same on every turn are identical, wherever a verdict is given."""

from pathlib import Path

import pytest

from skg_bench.analysis import summary
from skg_bench.analysis.comparison.compare import compare, verdict_words
from skg_bench.analysis.counts.measure import identical
from skg_bench.analysis.counts.tally import events, tallies
from skg_bench.analysis.report import tables
from skg_bench.analysis.report.arm_looks import looks
from skg_bench.analysis.report.verdict import arm_sentences
from skg_bench.runfolder.run import Run
from tests.analysis.synthetic import ARMS, World, make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    arms = {"idle": World(hit=0.0), "never": ARMS["never"], "skg": ARMS["skg"]}
    made = make_run(tmp_path_factory.mktemp("runs") / "run", arms=arms, users=6, weeks=3)
    summary.write_summary(made)
    return made


def test_table_comparison_and_page_give_one_verdict(run: Run) -> None:
    content = summary.read_summary(run)
    assert content.learner == "idle"
    assert {d.verdict for d in content.differences["idle"].values()} <= {"identical", "not measured"}
    assert content.differences["idle"]["utility"].verdict == "identical"
    compared = {row.metric.name: verdict_words(row) for row in compare([run]).rows if row.arm == "idle"}
    assert compared["utility"] == "identical"
    shown = tables.difference_tables(content, looks(run.arms, "never", run.manifest["compositions"], {}))
    assert [row.verdict for row in shown[0].rows if row.look.arm == "idle"] == ["identical"]
    assert arm_sentences(content)[-1][1].text == "idle and never are identical: they did the same on every turn."


def test_equal_sums_from_other_turns_are_not_identical(tmp_path: Path) -> None:
    """A learning arm and its frozen twin do the same before the freezing, and not after."""
    made = make_run(tmp_path / "run", users=4, weeks=4)
    requests = events(made)
    live, frozen = (tallies(made, arm, requests, since=(0, 30)) for arm in ("skg", "frozen"))
    assert not identical(live[0], frozen[0])
    assert identical(live[0], live[0])
    never = tallies(made, "never", requests)[0]
    assert not identical(live[0], never)


def test_a_margin_adds_nothing_to_identical(run: Run) -> None:
    rows = compare([run], margins={"utility": 0.01}).rows
    assert [verdict_words(row) for row in rows if (row.arm, row.metric.name) == ("idle", "utility")] == ["identical"]
