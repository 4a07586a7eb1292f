"""The page's table of skills: figures of the first order, worst first, with a way to the turn that weighs most."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skg_bench.analysis import report, summary
from skg_bench.analysis.lift.first_order import first_order
from skg_bench.analysis.report.skill_rows import SkillTable, skill_table
from skg_bench.runfolder.run import Run
from tests.analysis.synthetic import World, make_run


def shown(run: Run) -> SkillTable:
    table = skill_table(run, summary.read_summary(run), "a0")
    assert table is not None
    return table


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def test_rows_are_the_worst_served_skills_and_have_the_figures_of_the_first_order(run: Run) -> None:
    lifts, table = first_order(run, "skg", "never"), shown(run)
    served = np.flatnonzero(lifts.served.sum(axis=1) > 0)
    worst = served[np.argsort(lifts.total[served], kind="stable")][:20]
    assert [number(row.lift) for row in table.rows] == pytest.approx(lifts.total[worst], abs=1e-3)
    assert [int(row.served) for row in table.rows] == lifts.served.sum(axis=1)[worst].tolist()
    assert [int(row.right) for row in table.rows] == lifts.right[worst].tolist()
    assert [row.name for row in table.rows] == [lifts.name[i] for i in worst]
    turns = lifts.turns[lifts.user[worst]].sum(axis=1)
    assert [number(row.age) for row in table.rows] == (turns - lifts.born[worst]).tolist()
    assert f"{len(served):,} were served" in table.says[0]
    spread = re.search(r"at most (\S+), half of at most (\S+), a tenth of (\S+) or more", table.says[0])
    assert spread is not None
    quantiles = np.quantile(lifts.total[served], [0.1, 0.5, 0.9])
    assert [number(text) for text in spread.groups()] == pytest.approx(quantiles, abs=1e-3)


def test_the_chart_has_the_quantiles_of_the_served_skills(run: Run, page_path: Path) -> None:
    lifts, chart = first_order(run, "skg", "never"), shown(run).chart
    (line,) = chart.series
    assert line.name == "skg"
    served = lifts.total[lifts.served.sum(axis=1) > 0]
    assert line.mean == pytest.approx(np.quantile(served, np.array(chart.positions) / 100))
    assert list(line.mean) == sorted(value for value in line.mean if value is not None)
    page = page_path.read_text("utf-8")
    assert page.index('<div id="skills"') < page.index('<figure id="f-lifts"') < page.index('data-name="skills"')


def test_a_name_leads_to_the_turn_that_weighs_most(run: Run) -> None:
    """Of a skill that hurt a turn that it answered, and at which it was wrong if it was at any."""
    for row in shown(run).rows:
        match = re.fullmatch(r"#user=(\d+)&turn=(\d+)", row.turn)
        assert match is not None
        user, turn = map(int, match.groups())
        assert str(user) == row.owner
        at = run.turns("skg", ["skill", "answer_correct", "fallback_to_llm"], [user]).to_pylist()
        assert not at[turn]["fallback_to_llm"]
        mine = [each for each in at if each["skill"] == at[turn]["skill"] and not each["fallback_to_llm"]]
        assert len(mine) == int(row.served)
        if number(row.lift) < -1:
            assert at[turn]["answer_correct"] is False


def test_the_page_has_the_table_and_hostile_names_are_text(run: Run, page_path: Path) -> None:
    page = page_path.read_text("utf-8")
    section = page[page.index('<div id="skills"') :]
    section = section[: section.index("</table>")]
    assert section.count("<tr>") == 1 + len(shown(run).rows)
    assert "<img" not in section
    assert "&lt;/script&gt;&lt;img src=x" in section


def test_there_is_no_table_where_no_arm_answers_alone_and_where_nothing_was_served(run: Run, tmp_path: Path) -> None:
    content = summary.read_summary(run)
    assert skill_table(run, replace(content, never=None), "a0") is None
    assert skill_table(run, replace(content, learner="never"), "a0") is None
    assert skill_table(run, replace(content, incomplete=True), "a0") is None
    idle = make_run(tmp_path / "run", users=3, weeks=1, arms={"idle": World(hit=0.0), "never": World(hit=0.0)})
    summary.write_summary(idle)
    assert skill_table(idle, summary.read_summary(idle), "a0") is None
    assert 'id="skills"' not in report.write_page(idle).read_text("utf-8")
