"""The harness where the truth is known, reduced; the whole table: `skg-bench experiment known_truth`."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.known_truth.analysis import Line, Rates, counted, rates
from experiments.known_truth.closed_loop import INJECTED, NULL, Loop, play, replications
from experiments.known_truth.heavy import LATER, sampled
from experiments.known_truth.heavy import WORLDS as TAILS
from experiments.known_truth.quality import Drawn, Side, quality
from experiments.known_truth.redrawn import Population, qualities
from experiments.known_truth.worlds import EFFECT, NULLS, WORLDS, World, difference, figure, injected, sample
from skg_bench.analysis.statistics.intervals import ALPHA, LEVEL, Cells
from skg_bench.app.readmes import tables
from skg_bench.study.replications import generator
from tests.imports import ROOT

RUNS = 200
SLACK = 0.02  # of so few runs


@pytest.mark.parametrize("world", [w for w in WORLDS if w.users <= 100], ids=lambda w: w.name)
def test_intervals_cover_their_own_question_at_the_nominal_rate(world: World) -> None:
    measured = rates(world, figure, RUNS)
    far = SLACK + 3 * measured.error
    assert abs(measured.these - LEVEL) <= far
    assert abs(measured.new - LEVEL) <= far


def test_clustering_by_user_alone_misses_the_value_for_new_intents() -> None:
    few = next(world for world in WORLDS if world.name == "few intents")
    assert rates(few, figure, RUNS).these_for_new < 0.6


def test_an_injected_effect_is_covered_and_found() -> None:
    measured = rates(injected(WORLDS[0]), difference, RUNS)
    far = SLACK + 3 * measured.error
    assert abs(measured.these - LEVEL) <= far
    assert abs(measured.new - LEVEL) <= far
    assert measured.better > 0.4
    assert measured.worse == 0


@pytest.mark.parametrize("world", NULLS, ids=lambda w: w.name)
def test_no_effect_is_found_at_most_at_the_nominal_rate(world: World) -> None:
    measured = rates(world, difference, RUNS)
    assert measured.better + measured.worse <= ALPHA + SLACK + 3 * measured.error


def test_the_truths_of_a_world_are_its_means() -> None:
    world = injected(WORLDS[0])
    means = [difference(sample(world, generator(7, r))) for r in range(RUNS)]
    error = np.std([estimate.mean for estimate, _, _ in means]) / RUNS**0.5
    assert np.mean([estimate.mean for estimate, _, _ in means]) == pytest.approx(EFFECT, abs=4 * error)
    residual = [estimate.mean - these for estimate, these, _ in means]
    assert np.mean(residual) == pytest.approx(0, abs=4 * np.std(residual) / RUNS**0.5)


def test_a_replication_can_be_repeated_alone() -> None:
    first, again = (sample(WORLDS[0], generator(3, 11)) for _ in range(2))
    np.testing.assert_array_equal(first.right[0], again.right[0])
    assert (sample(WORLDS[0], generator(3, 12)).these) != first.these


def test_a_line_says_when_a_rate_is_not_as_it_should_be() -> None:
    unknown = float("nan")
    good = Rates(2000, 0.95, 0.97, 0.6, 0.02, 0.03)
    assert Line("w", "m", good, null=True).holds
    assert not Line("w", "m", Rates(2000, 0.88, 0.95, 0.6, 0.02, 0.03)).holds
    assert not Line("w", "m", Rates(2000, 0.95, 0.88, 0.6, 0.02, 0.03)).holds
    assert not Line("w", "m", Rates(2000, unknown, unknown, unknown, 0.08, 0.0), null=True).holds


@pytest.mark.parametrize("loop", [NULL, INJECTED[0]], ids=lambda loop: loop.name)
def test_in_the_closed_loop_the_learning_effect_is_what_was_put_in(tmp_path: Path, loop: Loop) -> None:
    even = replace(loop, overrides=(*loop.overrides, "simulator.volume_spread=0.2", "simulator.active_low=1"))
    run = play(even, tmp_path / "run", users=120, weeks=2, seed=0)
    experiments = list(replications(loop, run, size=6))
    measured = counted(experiments)
    assert measured.replications == 20
    truth = experiments[0][1]
    assert (truth == 0) == (loop is NULL)
    assert measured.these >= 0.8  # of 20: at 95 % each, fewer than 16 hold once in 400 tests
    if loop is NULL:
        assert measured.better + measured.worse <= 0.2
    else:
        assert np.mean([e.mean for e, _, _ in experiments]) == pytest.approx(truth, rel=0.5)
        assert measured.better > measured.worse == 0


def test_the_skewed_world_is_drawn_as_its_cells_and_covered_on_both_sides() -> None:
    """Every user brings the same 60 intents, of which a few lose much."""
    users, intents = 25, 60
    lost = -np.random.default_rng(1).exponential(1.0, intents)
    cells = Cells(np.repeat(np.arange(users), intents), np.tile(np.arange(intents), users), users, intents)
    population = Population("a - b", cells, np.full(users * intents, 2.0), np.tile(2 * lost, users))
    assert population.truth == pytest.approx(lost.mean())
    drawn = population.drawn(10, generator(0, 0)).estimate
    assert drawn.n_users == 10
    found = qualities(population, 20, 400, 0)
    assert found.student.below > 0.04 > 0.02 > found.student.above
    assert max(found.now.below, found.now.above) < 0.05
    assert found.verdicts[1] == 1.0
    assert min(found.found) > 0.7
    assert found.holds
    assert not replace(found, now=Side(0.09, 0.0, 1.0)).holds
    assert not replace(found, found=(0.5, 0.8)).holds
    assert replace(found, found=(0.5, 0.8), required=False).holds
    null = qualities(replace(population, either=True), 20, 400, 0)
    assert null.false < 0.09


def test_a_world_of_tails_has_the_truth_that_it_says() -> None:
    for world in (*TAILS, *LATER):
        drawn = [sampled(world, 40, 60, generator(5, r)) for r in range(RUNS)]
        means = [np.mean(cells.by_user(gained) / cells.by_user(over)) for cells, over, gained in drawn]
        assert Drawn.of(*drawn[0]).estimate.mean == pytest.approx(means[0])
        assert np.mean(means) == pytest.approx(world.truth, abs=4 * np.std(means) / RUNS**0.5), world.name


def test_of_effects_that_too_few_bear_no_interval_is_promised() -> None:
    world = next(world for world in TAILS if world.users == 0.05)
    assert not world.seen(30, 120)  # of 30 users none belongs to 5 % in 21 % of samples
    assert world.seen(100, 120)


@pytest.mark.parametrize("name", ["intents of both signs", "small gain, 6 % of intents a catastrophe"])
def test_heavy_tails_raise_no_false_alarms_and_are_covered(name: str) -> None:
    world = next(world for world in TAILS if world.name == name)
    drawn = [Drawn.of(*sampled(world, 30, 120, generator(8, r))) for r in range(600)]
    result = quality(world.name, 30, drawn, world.truth)
    assert max(result.student.below, result.hall.below + result.hall.above) > 0.07
    assert result.now.below + result.now.above < 0.09
    assert result.false < 0.085
    assert result.now.width < 1.4


def figures(rows: list[dict[str, str]], *columns: str) -> tuple[float, float]:
    """The smallest and the largest figure of some columns."""
    values = [float(row[column].rstrip(" %")) for row in rows for column in columns]
    return min(values), max(values)


def test_the_readme_says_what_the_committed_tables_hold() -> None:
    """Of what it says of many lines together there is no single cell."""
    readme = " ".join((ROOT / "experiments" / "known_truth" / "README.md").read_text("utf-8").split())
    page = [
        table for table in tables((ROOT / "reports" / "known_truth.md").read_text("utf-8")) if len(table.sections) > 1
    ]
    held: list[list[dict[str, str]]] = []
    for table in page:
        columns = [f"{name} {at}" if name == "found" else name for at, name in enumerate(table.columns)]
        lines = [dict(zip(columns, row, strict=True)) for row in table.rows]
        held.append([line for line in lines if line["as due"] != "not required"])
    heavy, power, later, later_power, real, real_power = held
    low, high = figures(heavy, "holds")
    assert (
        f"In the {len(heavy)} required lines of the worlds above {low} to {high} % of intervals hold the truth"
        in readme
    )
    assert f"at most {figures(power, 'false')[1]} % of verdicts are false. Of these lines" in readme
    missed = [line for line in heavy if line["as due"] == "NO"]
    assert f"Of these lines {len(missed)} are not as due. Three miss too often" in readme
    often = [line for line in missed if max(figures([line], "below", "above")) > 4.5]
    assert len(often) == 3
    wide = [line for line in missed if float(line["width"]) > 1.3]
    assert f"Two are wider than 1.3 ({' and '.join(line['width'] for line in wide)})" in readme
    users = [line for line in missed if "users" in line["world"]]
    assert len(users) == 8
    assert "{} to {} % hold the truth where 5 or 6 % of users bear it".format(*figures(users, "holds")) in readme
    found = [name for name in power[0] if name.startswith("found")]
    assert (
        "Power at the printed size is {} to {} %; nine lines are below 75 %".format(*figures(power, *found)) in readme
    )
    assert sum(line["as due"] == "NO" for line in power) == 9
    real_found = "power is {:.0f} to {:.0f} %".format(*figures(real_power, *found))
    assert "drawn again {} to {} % hold the truth".format(*figures(real, "holds")) in readme
    assert f"at most {figures(real_power, 'false')[1]} % of verdicts are false, and {real_found}" in readme
    broken = [line for line in later if line["world"] == "a tenth of users harmed, a fifth of intents helps"]
    verdicts = [line for line in later_power if line["world"] == broken[0]["world"]]
    missed = [line for line in broken if line["as due"] == "NO"]
    assert (len(missed), len(broken)) == (4, 8)
    assert "In four of its eight lines {} to {} % hold the truth".format(*figures(missed, "holds")) in readme
    assert f"up to {figures(verdicts, 'false')[1]} % of verdicts are false; by Student" in readme
