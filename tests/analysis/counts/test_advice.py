"""Metrics of a world in which skills are advice, against figures made by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

from skg_bench.analysis import summary
from skg_bench.analysis.comparison.compare import cells, compare
from skg_bench.analysis.comparison.turn_bins import utility
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.tally import COUNTS, events, tallies
from skg_bench.analysis.gate.panel import panel
from skg_bench.analysis.report import verdict
from skg_bench.app import commands
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.telling import telling_of
from tests.analysis.advised import ADVISED, UTILITY, Purchase, drawn, make_advice_run

BEFORE_PRICES = (0.4, 0.3, 0.2, 0.1)
FIRST = [
    Purchase("overridden", day=0.5, worths=(*BEFORE_PRICES, -0.05)),
    Purchase("wait", wanted=True, strategy="time_cost", day=1.5, worths=(*BEFORE_PRICES, -1.05)),
    Purchase("accepted", "negotiator", wanted=True, strategy="time_cost", day=8.0, worths=(*BEFORE_PRICES, -0.05)),
    Purchase("auto_approved", "analyst", day=9.0, worths=(0.0, 0.0, 0.0, 0.0, 0.0)),
]
SECOND = [
    Purchase("accepted", day=0.5, worths=(*BEFORE_PRICES, 0.95), satisfaction="worth_it"),
    Purchase("abandoned", day=2.0, worths=(*BEFORE_PRICES, 0.95), satisfaction="regret_it", after=30.0, learning=0.005),
    Purchase("timeout", day=3.0, worths=(*BEFORE_PRICES, -0.05), satisfaction="not_sure", learned=True),
]
TELLING = telling_of({"domain": ADVISED.plain()})
COUNTED = set(TELLING.counted)
EXPECTED = {
    "utility": ((-0.05 - 1.05 - 0.05 - 3 * 0.03) / 4 + (0.95 + 0.95 - 0.05 - 3 * 0.03 - 0.05) / 3) / 2,
    "listened": (2 / 3 + 2 / 3) / 2, "overridden": (1 / 3 + 0) / 2, "accepted": (1 / 3 + 1 / 3) / 2,
    "regret": (3 * 0.2 / 4 + 0.2) / 2, "blocked_wanted": (1 / 4 + 0) / 2, "interventions_per_week": 1.5,
    "hit_rate": (2 / 4 + 0) / 2, "answered_later": (0 + 2 / 3) / 2, "worth_it": 1 / 2, "skills": (1 + 2) / 2,
    "new_skills_per_week": (0 + 1 / 2) / 2, "tokens": (3 * 120 / 4 + 120) / 2, "cost_usd": (0.003 / 4 + 0.001) / 2,
    "learning_cost_usd": 0.005 / 3 / 2, "latency_ms": (750 + 1000) / 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    quiet = [[replace(p, strategy=None, learned=False, learning=0.0) for p in life] for life in (FIRST, SECOND)]
    path = tmp_path_factory.mktemp("runs") / "run"
    return make_advice_run(path, {"guardian": [FIRST, SECOND], "never": quiet})


@pytest.mark.req("P09")
def test_each_metric_is_what_it_is_by_hand(run: Run) -> None:
    figures = summary.write_summary(run).arms["guardian"]
    assert {name: figure.mean for name, figure in figures.items()} == pytest.approx(EXPECTED, rel=1e-8)
    assert figures["listened"].n_turns == figures["overridden"].n_turns == 6  # interventions
    assert (figures["worth_it"].n_turns, figures["worth_it"].n_users, figures["worth_it"].excluded) == (2, 1, 1)


def test_what_users_say_after_the_end_is_pending(run: Run) -> None:
    assert tallies(run, "guardian", events(run))[0].pending == 1
    assert summary.describe(run)[0].pending_feedback == 2


def test_nothing_of_answers_is_in_the_summary(run: Run) -> None:
    content, curves = summary.describe(run)
    assert not content.answers
    answers = {"correct", "err_per_hit", "err_per_request", "rated_ok", "calls_saved", "err_excess", "right_per_hit"}
    assert not answers & set(content.metrics)
    assert (content.ceiling, content.kinds, content.sensitivity.pays_from) == ({}, {}, {})
    assert {metric for _, metric, _ in curves} == {*EXPECTED, "utility_difference"}


def test_how_often_users_listen_is_neither_better_nor_worse(run: Run) -> None:
    better = {name: about.better for name, about in summary.describe(run)[0].metrics.items()}
    assert {name for name, word in better.items() if word == "higher"} == {"utility"}
    assert {name for name, word in better.items() if word == "lower"} == {
        "regret", "blocked_wanted", "tokens", "cost_usd", "learning_cost_usd", "latency_ms",
    }  # fmt: skip


def test_a_skill_given_before_the_first_turn_is_added_at_no_turn(run: Run) -> None:
    assert [(row["user"], row["turn"]) for row in run.updates("guardian").to_pylist()] == [(0, -1), (1, -1), (1, 2)]
    tally = tallies(run, "guardian", events(run))[0]
    assert set(tally.by_cell) == (set(COUNTS) - {"rated", "ok"}) | COUNTED
    assert tally.by_cell["add"].sum() == 1
    assert tally.book_end.tolist() == [1, 2]


def test_turns_are_worth_what_their_counts_are_worth(run: Run) -> None:
    prices = Utility(**UTILITY)
    worth = utility(run, "guardian", events(run), prices)
    assert worth[:2].tolist() == pytest.approx([-0.08, -1.08])
    assert (worth[:4].mean() + worth[4:].mean()) / 2 == pytest.approx(EXPECTED["utility"])


def test_utility_is_known_at_other_prices_of_a_wanted_purchase_held_back(run: Run) -> None:
    """The first user has one of four, the second none."""
    swept = summary.describe(run)[0].sensitivity
    assert 1.0 in swept.wrong
    for price, figure in zip(swept.wrong, swept.arms["guardian"], strict=True):
        assert figure.mean == pytest.approx(EXPECTED["utility"] - (price - 1.0) / 4 / 2)


def test_an_arm_that_users_listen_to_more_is_compared_in_the_metrics_of_its_world(tmp_path: Path) -> None:
    run = make_advice_run(tmp_path / "run", {"guardian": drawn(12, 20, 0.9), "never": drawn(12, 20, 0.3)})
    compared = compare([run])
    by_metric = {row.metric.name: row for row in compared.rows}
    assert list(by_metric) == list(EXPECTED)
    assert by_metric["listened"].difference.verdict == "higher"
    assert by_metric["overridden"].difference.verdict == "lower"
    assert {row[1] for row in cells(compared)} >= {"utility", "listened", "overridden", "regret", "wanted, held back"}
    assert (compared.matched, compared.flips, compared.break_even) == ((), (), {})


def test_the_terminal_shows_the_metrics_of_the_world(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    from skg_bench.app import result_tables
    from skg_bench.app.progress import console

    result_tables.print_arms(console(), summary.describe(run)[0])
    printed = capsys.readouterr().out
    assert all(heading in printed for heading in ("listened", "overridden", "regret", "wanted, held back"))
    assert "per hit" not in printed
    commands.compare([run.path], reference=None, correction="holm", margins=[], flips=0, figure=None, metrics=["all"])
    printed = capsys.readouterr().out
    assert "answers from memory" not in printed
    assert "verdict and p are for new purchases" in printed
    assert "request" not in printed


def test_a_comparison_fits_into_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run = make_advice_run(tmp_path / "run", {"guardian": drawn(12, 20, 0.9), "never": drawn(12, 20, 0.3)})
    commands.compare([run.path], reference=None, correction="holm", margins=[], flips=0, figure=None)
    lines = capsys.readouterr().out.splitlines()
    assert any("other metrics" in line for line in lines)
    assert any("effective intents" in line for line in lines)
    assert max(map(len, lines)) <= 86


def test_a_gate_says_that_it_is_about_answers(run: Run) -> None:
    with pytest.raises(UsageError, match="skills keep no answers: a gate is about answers; hold"):
        panel(run, "guardian")
    with pytest.raises(UsageError, match="skills keep no answers"):
        panel(run, "skg")  # the arm of a baseline from a world of answers


def test_turns_that_an_arm_answered_worse_are_not_asked_for_where_nothing_is_answered(run: Run) -> None:
    with pytest.raises(UsageError, match="no answers: compare --flips is about answers"):
        compare([run], flips=2)


def test_the_price_at_which_arms_are_level_is_told_beside_the_price_of_the_run(tmp_path: Path) -> None:
    """One wanted purchase in four is held back under `guardian`, which is worth 0.5 more to these users at price 1."""
    life = [Purchase("wait", wanted=True, strategy="time_cost", day=1.0, worths=(*BEFORE_PRICES, -1.0), cost=0.0),
            *(Purchase("wait", day=2.0 + k, worths=(*BEFORE_PRICES, 1.0), cost=0.0) for k in range(3))]  # fmt: skip
    quiet = [replace(p, outcome="overridden", strategy=None, worths=(*BEFORE_PRICES, 0.0)) for p in life]
    content = summary.write_summary(make_advice_run(tmp_path / "run", {"guardian": [life] * 2, "never": [quiet] * 2}))
    assert content.sensitivity.break_even["guardian"] == pytest.approx(3.0)
    assert content.utility.wrong == 1.0
    said = [sentence.text for sentence in verdict.finding_sentences(content, "guardian")]
    assert "guardian and never would be level if a wanted purchase held back cost 3, in place of 1." in said


def test_arms_that_hold_back_the_same_are_level_at_no_price(tmp_path: Path) -> None:
    """Differences at two prices then differ by rounding, if at all, and no line through them leads anywhere."""
    lives = drawn(7, 11, 0.9, seed=1)
    better = [[replace(p, worths=(*p.worths[:4], p.worths[4] + 0.1)) for p in life] for life in lives]
    content = summary.write_summary(make_advice_run(tmp_path / "run", {"guardian": better, "never": lives}))
    assert content.sensitivity.break_even == {"guardian": None}
    assert not any("would be level" in sentence.text for sentence in verdict.finding_sentences(content, "guardian"))
