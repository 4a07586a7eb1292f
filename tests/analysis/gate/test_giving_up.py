"""The builds of `gate_power/guard`, on a small population."""

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from experiments.gate_power import guard
from experiments.gate_power.guard import (
    BUILDS,
    PANEL,
    SPOILT,
    Build,
    command,
    population,
    read,
    report,
    some,
    spoilt,
    state,
    states,
)  # fmt: skip
from skg_bench.analysis.gate.against import ahead
from skg_bench.analysis.gate.panel import Panel
from skg_bench.app.compose import Composed, compose
from tests.runs import logs_alone

WORSE = [build for build in BUILDS if not build.better]
EVEN = ("simulator.messages_per_day=5", "simulator.volume_spread=0.2")  # the busiest user takes the time


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Panel]:
    folder: Path = tmp_path_factory.mktemp("runs")

    def even(words: list[str]) -> Composed:
        return compose([*words, *EVEN])

    with logs_alone(), patch.object(guard, "compose", even):
        return read(population(folder / "run", users=10, weeks=4, seed=0, workers=1))


@pytest.mark.parametrize("build", WORSE, ids=lambda build: build.new)
def test_who_gives_up_passes_in_no_panel(known: dict[str, Panel], build: Build) -> None:
    assert "pass" not in list(states(known, build, 20, 0))


def test_the_same_bits_always_pass(known: dict[str, Panel]) -> None:
    assert set(states(known, BUILDS[0], 20, 0)) == {"pass"}


def test_the_page_names_the_command_with_the_options_that_were_given(known: dict[str, Panel]) -> None:
    again = command(panels=2, users=160, weeks=26, seed=0)
    assert again == "skg-bench experiment gate_power/guard --panels 2 --users 160 --write reports"
    assert f"\n`{again}`\n" in report(known, 2, 0, again).page


def test_the_spoilt_answers_are_those_of_the_last_quarter(known: dict[str, Panel]) -> None:
    base, rng = known["gated"], np.random.default_rng(0)
    late = spoilt(base, rng)
    ends = np.cumsum(base.turns)
    for row, end in enumerate(ends):
        first = end - base.turns[row] // 4
        span = slice(int(end - base.turns[row]), int(first))
        assert np.array_equal(late.wrong[span], base.wrong[span])
    added = (late.counts["late_wrong"] - base.counts["late_wrong"]).sum() / (base.turns // 4).sum()
    assert added == pytest.approx(SPOILT * 0.9, rel=0.5)


def test_the_arm_is_ahead_and_giving_up_fails_on_the_population_itself(known: dict[str, Panel]) -> None:
    rows = np.arange(len(known["gated"].users)).repeat(3)[:PANEL]
    base = some(known["gated"], rows)
    assert ahead(base)
    assert state(base, some(known["never"], rows)) == "fail"
