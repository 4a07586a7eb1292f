"""Every assumption is tried at both ends of its range, and ranked by the verdicts that it turns."""

import re
from dataclasses import replace
from math import sqrt
from pathlib import Path

import pytest

from experiments.assumptions.ranked import Assumption, Swept, analyse, assumptions, ranked, size, verdicts
from skg_bench.app.compose import compose
from skg_bench.app.experiment_report import Table
from skg_bench.app.readmes import tables
from skg_bench.core.errors import UsageError
from skg_bench.core.package import CONF
from skg_bench.study.turning import JudgedDifference, study_size

ROOT = Path(__file__).resolve().parents[2]
BETTER, WORSE, OPEN = (
    JudgedDifference(0.2, 0.1, 0.3),
    JudgedDifference(-0.2, -0.3, -0.1),
    JudgedDifference(0.0, -0.1, 0.1),
)


def assumed(file: str) -> set[str]:
    """Keys of a file whose line says `assumed`."""
    return set(re.findall(r"^(\w+):.*\bassumed\b", (CONF / file).read_text("utf-8"), re.MULTILINE))


def test_all_that_is_said_to_be_assumed_and_nothing_else_has_a_range_that_can_be_run() -> None:
    every = assumptions()
    names = {each.name for each in every}
    assert names == assumed("simulator/assistant.yaml") | {f"llm.{name}" for name in assumed("llm/simulated.yaml")}
    assert len(names) >= 25
    root = compose([]).root
    for each in every:
        group, _, name = each.key.partition(".")
        usual = size(root[group][name])
        assert size(each.low) <= usual <= size(each.high), each.name
        assert each.width > 0
        for value in (each.low, each.high):
            compose([f"{each.key}={value}".replace(" ", "")])


def sweep(name: str, gains: dict[float, dict[str, JudgedDifference]], usual: float = 0.5) -> Swept:
    return Swept(Assumption(name, 0.0, 1.0, 0.1, "share", 2.0, True, "messages"), usual, gains)


def test_an_assumption_that_turns_more_verdicts_comes_first_and_its_study_tells_the_smallest_change() -> None:
    both = {"skg": WORSE, "oracle": BETTER}
    many = sweep("many", {0.0: both, 0.5: both, 1.0: {"skg": BETTER, "oracle": OPEN}})
    near = sweep("near", {0.0: {"skg": OPEN, "oracle": BETTER}, 0.5: both, 1.0: both})
    none = sweep("none", {0.0: both, 0.5: both, 1.0: both})
    table = ranked([none, near, many])
    assert [(row[0], row[3]) for row in table.rows] == [("many", "2"), ("near", "1"), ("none", "0")]
    assert table.rows[2][4:] == ("-",) * 5
    # the upper end goes from -0.1 to 0.3: it passes 0 at a quarter of the way up, the lower one of oracle half way
    study = study_size(sqrt(0.25), 0.1, precision=0.125, per_day=2.0, labelled=True)
    assert table.rows[0][4:] == ("+0.125", "0.12", f"{study.users:,}", f"{study.days:,}", f"{study.labels:,}")
    of_skg, of_oracle = verdicts([none, near, many]).rows
    assert of_skg[-1] == "many open from 0.625 (0.12); near open from 0.25 (0.25)"
    assert of_oracle[-1] == "many open from 0.75 (0.25)"


def test_a_verdict_on_the_edge_has_no_study_and_a_share_of_1_is_studied_as_varied_as_where_it_turns() -> None:
    edge, both = JudgedDifference(0.0, 0.0, 0.0), {"skg": WORSE}
    [row] = ranked([sweep("edge", {0.0: {"skg": edge}, 0.5: {"skg": edge}, 1.0: both})]).rows
    assert row[4:] == ("+0", "0.00", "-", "-", "-")
    sure = sweep("sure", {0.0: {"skg": BETTER}, 1.0: both}, usual=1.0)
    [row] = ranked([sure]).rows
    turned = 0.75  # from -0.1 to 0.3 on the way down
    study = study_size(sqrt(turned * (1 - turned)), 0.1, precision=0.25, per_day=2.0, labelled=True)
    assert row[6:] == (f"{study.users:,}", f"{study.days:,}", f"{study.labels:,}")


def test_of_users_of_whom_a_tenth_counts_ten_times_as_many_are_watched() -> None:
    by_name = {each.name: each for each in assumptions()}
    for name, share in {"active_low": 0.1, "active_high": 0.1, "habit": 1.0}.items():
        assumption = by_name[name]
        counted, watched = replace(assumption, counted=1.0).study(0.5, 0.4), assumption.study(0.5, 0.4)
        assert watched == replace(counted, users=round(counted.users / share))


def test_a_small_sweep_makes_runs_of_both_ends(tmp_path: Path) -> None:
    few = "arms={skg: [], never: [policy=never, curator=none]}"
    swept = ["habit", "rating_if_near"]
    report = analyse(["embedder=hashing", few], users=2, weeks=1, assumption=swept, out=tmp_path)
    table = report.parts[0]
    assert isinstance(table, Table)
    assert {row[0]: row[1:3] for row in table.rows} == {
        "habit": ("0.5", "0.3 to 0.85"), "rating_if_near": ("0.15", "0.05 to 0.4"),
    }  # fmt: skip
    assert {each.name for each in tmp_path.iterdir()} == {
        "as_it_is", "habit_0.3", "habit_0.85", "rating_if_near_0.05", "rating_if_near_0.4",
    }  # fmt: skip
    with pytest.raises(UsageError, match=r"simulator.habit=0.9 lies outside of its range, 0.3 to 0.85"):
        analyse(["embedder=hashing", "simulator.habit=0.9"], users=2, weeks=1, assumption=["habit"], out=tmp_path / "b")
    with pytest.raises(UsageError, match="--assumption hobbit: valid are max_per_day, "):
        analyse([], users=4, weeks=1, assumption=["hobbit"], out=tmp_path)


def test_the_readme_is_right_that_no_assumption_turns_better_into_worse() -> None:
    """Its sentence on all arms and assumptions has no single cell."""
    page = (ROOT / "reports" / "ranked.md").read_text("utf-8")
    page = (ROOT / "reports" / "ranked.md").read_text("utf-8")
    (table,) = (each for each in tables(page) if each.sections[-1] == "Verdicts, and what turns them")
    turned = {(row[3], word) for row in table.rows for word in re.findall(r"\b(better|worse|open) from", row[4])}
    assert turned == {("better", "open"), ("worse", "open"), ("open", "worse")}
