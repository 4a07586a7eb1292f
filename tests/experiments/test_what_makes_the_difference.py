"""Effects of what a skill is, how it is found and what is captured: they are those of the cells, and add up."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from experiments.what_makes_the_difference import break_even_map
from experiments.what_makes_the_difference.analysis import CELLS, FACTORS, analyse, level, shapley
from experiments.what_makes_the_difference.break_even_map import ARMS, WORDS, Place, places
from experiments.what_makes_the_difference.composites import anticipated
from experiments.what_makes_the_difference.map_figure import Cell, Panel, break_even_line, svg
from skg_bench.analysis import summary
from skg_bench.app.api import run as simulate
from skg_bench.app.compose import compose
from skg_bench.app.experiment_report import Table
from skg_bench.app.readmes import tables
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from tests.imports import ROOT

EVEN = ("simulator.volume_spread=0.2", "simulator.active_low=1")  # nobody has many more turns than others


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("difference") / "run"
    return simulate(
        [
            "experiment=what_makes_the_difference",
            "users=3",
            "workers=1",
            "weeks=1",
            "simulator.messages_per_day=5",
            "simulator.accept=1",
            *EVEN,
            f"out={out}",
        ]
    )


def signed(text: str) -> float:
    return float(text.replace("+", ""))


def test_every_combination_is_an_arm_and_has_the_components_of_its_name() -> None:
    arms = compose(["experiment=what_makes_the_difference"]).arms
    assert {"_".join(cell) for cell in CELLS} <= set(arms)
    for representation, routing, curation in CELLS:
        arm = arms[f"{representation}_{routing}_{curation}"]
        assert arm["serving"] == representation
        assert (arm["policy"]["_target_"].rpartition(".")[2] == "Always") == (routing == "oracle")
        assert {"skg": "SKG", "everything": "Everything", "oracle": "RightAnswers"}[curation].lower() in arm["curator"][
            "_target_"
        ].lower()


@pytest.mark.req("K12", "K20")
def test_an_effect_is_the_mean_over_all_combinations_of_the_other_choices(run: Run, tmp_path: Path) -> None:
    means = {arm: row["utility"].mean or 0.0 for arm, row in summary.read_summary(run).arms.items()}
    report = analyse(run)
    options, way, _, arms = report.parts
    for factor, option, plain, utility, *_ in options.rows:  # type: ignore[union-attr]
        at = list(FACTORS).index(factor)
        averages = [
            sum(means["_".join(c)] for c in CELLS if c[at] == some) / (len(CELLS) / 3) for some in (option, plain)
        ]
        assert signed(utility) == pytest.approx(averages[0] - averages[1], abs=6e-4)
    steps = [signed(row[1]) for row in way.rows]  # type: ignore[union-attr]
    assert sum(steps[:-1]) == pytest.approx(steps[-1], abs=3e-3)
    assert steps[-1] == pytest.approx(means["procedure_oracle_oracle"] - means["never"], abs=6e-4)
    assert len(arms.rows) == len(run.arms)  # type: ignore[union-attr]
    report.write(tmp_path, "what_makes_the_difference")


@pytest.mark.req("K31")
def test_what_follows_often_enough_is_anticipated_by_the_users_own_history_alone() -> None:
    row = np.repeat([0, 1], 12).astype(np.int64)
    intent = np.array([5, 6, 5, 6, 5, 6, 5, 6, 5, 7, 5, 6, *[5, 6] * 5, 8, 5], np.int32)
    fires, right = anticipated(row, intent)
    assert np.flatnonzero(fires).tolist() == [7, 8, 9, 11, 19, 20, 21, 22]
    assert np.flatnonzero(fires & ~right).tolist() == [9, 22]
    assert not anticipated(row, np.full(24, -1, np.int32))[0].any()  # one-offs say nothing of what comes next
    assert (right <= fires).all()


def test_weights_of_a_level_and_of_shapleys_value_sum_to_one() -> None:
    for at, options in enumerate(FACTORS.values()):
        assert sum(level(at, options[1]).values()) == pytest.approx(1)
        best, plain = shapley(at)
        assert sum(best.values()) == pytest.approx(1)
        assert sum(plain.values()) == pytest.approx(1)
        assert {cell[at] for cell in best} == {options[-1]}
        assert {cell[at] for cell in plain} == {options[0]}


def test_a_place_of_the_map_is_a_run_and_better_procedures_are_worth_more(tmp_path: Path) -> None:
    worth = []
    for share in (0.0, 1.0):
        made = [f"simulator.{name}={share:g}" for name in ("generalises", "slots_filled")]
        run = simulate(
            [ARMS, "reference=never", "users=4", "workers=1", "weeks=2", *EVEN, *made, f"out={tmp_path / str(share)}"]
        )
        found = places(run)
        assert set(found) == {"asked", "everything"}
        means = summary.read_summary(run).arms
        gain = (means["everything"]["utility"].mean or 0.0) - (means["never"]["utility"].mean or 0.0)
        assert found["everything"].gain.mean == pytest.approx(gain, abs=1e-9)
        assert "hits" in str(found["everything"])
        assert found["everything"].right == means["everything"]["right_per_hit"].mean
        assert found["everything"].pays_from == means["everything"]["pays_from"].mean
        worth.append(gain)
    assert worth[0] < worth[1]


def test_maps_of_two_corpora_stand_beside_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    axes = break_even_map.Axes("Few and many", ("generalises", (0.0, 1.0)), ("habit", (0.5,)))
    monkeypatch.setattr(break_even_map, "MAPS", (axes,))
    monkeypatch.setattr(break_even_map, "REPEATS", axes)
    monkeypatch.setitem(break_even_map.CORPORA, "clinc150", ["simulator.discount=0.9"])  # in the place of its data
    report = break_even_map.analyse(corpus=["built-in", "clinc150"], users=2, weeks=1)
    tables = [part for part in report.parts if isinstance(part, Table)]
    assert [(table.title.split(": ")[0], len(table.rows)) for table in tables] == [
        (f"Few and many, {name} corpus", 2) for name in ("built-in", "built-in", "clinc150", "clinc150")
    ]
    assert tables[1].rows != tables[3].rows
    assert "break_even_map --corpus built-in --corpus clinc150 --write reports" in report.page
    figure = report.figures["break_even_map.svg"]
    assert all(f"{name} corpus: {words}" in figure for name in ("built-in", "clinc150") for words in WORDS.values())
    with pytest.raises(UsageError, match="--corpus clinc: valid are built-in, clinc150"):
        break_even_map.analyse(corpus=["clinc"])


def estimate(mean: float, p: float) -> Any:
    return SimpleNamespace(mean=mean, withheld=False, disputed=False, p=lambda *, new: p)


def test_a_place_says_better_or_worse_only_where_that_is_shown() -> None:
    for gain, p, words in ((0.02, 0.01, "+0.020 better"), (-0.02, 0.01, "-0.020 worse"), (-0.02, 0.2, "-0.020 open")):
        place = Place(estimate(gain, p), right=0.8, hits=0.1, pays_from=0.86, repeats=0.2)
        assert str(place) == f"{words}, 10.0 % hits, 80.0 % right of 86.0 %"


def test_the_line_of_the_map_is_where_gains_change_their_sign() -> None:
    def cell(gain: float) -> Cell:
        return Cell(gain, gain != 0, 0.8, 0.86)

    rows = [[cell(-0.03), cell(-0.03), cell(0.01)], [cell(0.01), cell(-0.01), cell(0.02)]]
    drawn = Panel("built-in", (0.1, 0.2, 0.3), (0.0, 1.0), rows)
    assert break_even_line(drawn) == [(0, 0.75)]
    text = svg([drawn, drawn], "Where & why")
    assert text.count("-0.030 worse") == 4
    assert text.count("80% right, of 86%") == 12
    assert text.count("<polyline") == 2
    assert "Where &amp; why" in text


def test_a_run_of_another_experiment_is_refused(tmp_path: Path) -> None:
    other = simulate(["experiment=gate", "users=1", "workers=1", "weeks=1", f"out={tmp_path / 'run'}"])
    with pytest.raises(UsageError, match="has no arm"):
        analyse(other)


def test_the_readme_is_right_that_learning_pays_at_no_place_of_the_maps() -> None:
    maps = list(tables((ROOT / "reports" / "break_even_map.md").read_text("utf-8")))
    cells = [cell for table in maps for row in table.rows for cell in row[1:]]
    verdicts = {word for cell in cells for word in ("better", "worse", "open") if f" {word}," in cell}
    assert verdicts == {"worse", "open"}
    readme = " ".join((ROOT / "experiments" / "what_makes_the_difference" / "README.md").read_text("utf-8").split())
    assert "At no place of the maps is an arm that learns procedures shown to be better than `never`" in readme
