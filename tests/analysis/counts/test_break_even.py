"""From which share of right answers on hits are worth more than asking the LLM."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skg_bench.analysis import summary
from skg_bench.analysis.comparison.compare import compare, pays
from skg_bench.analysis.counts.break_even import Answers, BreakEven, break_even_of, hit_sums
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.tally import LoggedEvents, events
from skg_bench.core.grid import I64
from skg_bench.runfolder.run import Run
from tests.analysis.synthetic import ARMS, World, make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    arms = {**ARMS, "right": World(hit_right=1.0), "wrong": World(hit_right=0.2)}
    return make_run(tmp_path_factory.mktemp("runs") / "run", arms=arms, users=12, weeks=3)


def at_hits(requests: LoggedEvents, at: I64, hits: Answers, llm: Answers, wrong: float) -> BreakEven:
    return break_even_of(requests.cells, *hit_sums(requests, at, hits, llm, wrong))


def test_utility_beyond_the_llm_is_what_precision_is_above_the_break_even(run: Run) -> None:
    requests, price = events(run), Utility.of(run.config)
    llm = Answers.read(run, "never", price)
    for arm in ("skg", "right", "wrong"):
        turns, answers = run.turns(arm, ["fallback_to_llm"]), Answers.read(run, arm, price)
        hit = np.flatnonzero(~turns["fallback_to_llm"].to_numpy())
        figures = at_hits(requests, hit, answers.at(hit), llm.at(hit), price.wrong)
        gained = answers.worth - llm.worth
        users = np.unique(requests.row[hit])
        each = [gained[hit][requests.row[hit] == u].mean() for u in users]
        assert figures.margin.mean * (1 + price.wrong) == pytest.approx(np.mean(each))
        assert figures.precision.mean - figures.pays_from.mean == pytest.approx(figures.margin.mean)
        assert figures.at(price.wrong) == pytest.approx(figures.pays_from.mean)


def test_the_break_even_is_the_llms_rightness_less_the_price_saved_over_one_and_lambda(run: Run) -> None:
    requests, at = events(run), np.arange(200)
    right = np.arange(200) % 10 > 0  # r = 0.9
    hits, llm = np.arange(200) % 2 > 0, Answers(right, np.where(right, 1.0, -1.0) - 0.08)
    one_user = replace(requests, row=requests.row * 0, cell=requests.cell * 0)
    figures = at_hits(one_user, at, Answers(hits, np.where(hits, 1.0, -1.0)), llm, 1.0)
    assert figures.saved.mean == pytest.approx(0.08)
    assert figures.pays_from.mean == pytest.approx(0.9 - 0.08 / 2)
    assert figures.at(0.0) == pytest.approx(0.9 - 0.08)
    assert figures.precision.mean == 0.5


def test_summary_and_comparison_say_the_same_of_every_arm_with_hits(run: Run) -> None:
    content, compared = summary.write_summary(run), compare([run])
    assert set(compared.break_even) == {"skg", "frozen", "right", "wrong"}
    for arm, figures in compared.break_even.items():
        of_arm = content.arms[arm]
        for name, estimate in (("right_per_hit", figures.precision), ("pays_from", figures.pays_from)):
            assert of_arm[name].mean == pytest.approx(estimate.mean, rel=1e-8)
            low = estimate.interval(new=True, bounds=(0.0, 1.0) if name == "right_per_hit" else (-9.0, 9.0))[0]
            assert of_arm[name].low_new == pytest.approx(low, rel=1e-6)
        assert content.sensitivity.pays_from[arm][0] == pytest.approx(figures.at(0.0))
    assert content.arms["never"]["right_per_hit"].mean is None
    assert {row[0]: row[-1] for row in pays(compared)}["wrong"] == "no"


def test_without_an_arm_that_always_asks_the_llm_nothing_is_said(tmp_path: Path) -> None:
    few = {name: ARMS[name] for name in ("skg", "frozen")}
    made = make_run(tmp_path / "run", arms=few, users=4, weeks=2, reference="frozen")
    content = summary.write_summary(made)
    assert content.sensitivity.pays_from == {}
    assert "pays_from" not in content.arms["skg"]
    assert "pays_from" not in content.metrics


def test_the_difference_is_the_sum_over_kinds_of_requests(run: Run) -> None:
    content = summary.write_summary(run)
    for arm, parts in content.kinds.items():
        total = content.differences[arm]["utility"].mean
        assert sum(figure.mean or 0.0 for figure in parts.values()) == pytest.approx(total, abs=1e-9)
    assert "never" not in content.kinds
