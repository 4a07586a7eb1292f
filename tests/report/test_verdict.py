"""The sentences at the head of the page, whoever wins."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skg_bench.analysis import summary
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.report.sentences import Sentence
from skg_bench.analysis.report.verdict import words
from skg_bench.analysis.summary import Summary
from tests.analysis.advised import drawn, make_advice_run
from tests.analysis.synthetic import ARMS, World, make_run


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    return summary.write(make_run(tmp_path_factory.mktemp("runs") / "run", users=12, weeks=4))


def _with(figures: Summary, table: str, arm: str, **values: Any) -> list[Sentence]:
    """The sentences where the utility of an arm in `differences` or `effects` has other values."""
    effect = figures.effects.get(arm)
    metrics = effect.metrics if table == "effects" and effect else figures.differences[arm]
    changed = {**metrics, "utility": replace(metrics["utility"], **values)}
    if table == "effects" and effect:
        return words(replace(figures, effects={**figures.effects, arm: replace(effect, metrics=changed)}))
    return words(replace(figures, differences={**figures.differences, arm: changed}))


def test_a_learning_arm_that_wins_is_said_to_win_with_its_interval(figures: Summary) -> None:
    sentence = _with(figures, "differences", "skg", mean=0.0312, low_new=0.012, high_new=0.0504, verdict="better")[0]
    assert sentence.tone == "good"
    assert sentence.text == (
        "skg serves its users better than the LLM alone (never), if a skill is a stored text: 0.031 more "
        "utility per request (95 % for new users and requests: +0.012 to +0.050)."
    )


def test_a_learning_arm_that_loses_is_said_to_lose(figures: Summary) -> None:
    sentence = _with(figures, "differences", "skg", mean=-0.2, low_new=-0.3, high_new=-0.1, verdict="worse")[0]
    assert sentence.tone == "bad"
    assert (
        "skg serves its users worse than the LLM alone (never), if a skill is a stored text: 0.200 less "
        "utility per request" in sentence.text
    )
    effect = _with(figures, "effects", "frozen", mean=-0.2, low_new=-0.3, high_new=-0.1, verdict="worse")[1]
    assert effect.tone == "bad"
    assert (
        "Learning hurt: what skg learned after turn 30 (against frozen) cost 0.200 utility per request" in effect.text
    )


def test_what_was_learned_and_helped_is_said_to_help(figures: Summary) -> None:
    effect = _with(figures, "effects", "frozen", mean=0.05, low_new=0.02, high_new=0.08, verdict="better")[1]
    assert effect == Sentence(
        "Learning helped: what `skg` learned after turn 30 (against `frozen`) was worth 0.050 utility per request "
        "(95 % for new users and requests: +0.020 to +0.080).",
        "good",
    )


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"mean": 0.001, "mde_new": 0.01, "p_new": 0.6}, "inconclusive: such a run finds 0.010 in 80 % of cases"),
        ({"mean": 0.008, "mde_new": 0.01, "p_new": 0.03}, "does not hold once corrected for the number of arms"),
        ({"verdict": "withheld", "intents": 2.34}, "it rests on 2.3 effective intents, and an interval takes 4"),
        ({"mean": 0.0, "mde_new": 0.0, "significant": False}, "equal for every user"),
        ({"mean": 0.0, "p_holm": None, "low_new": None}, "one user says nothing about others"),
    ],
)
def test_what_is_not_shown_stays_open_and_says_why(figures: Summary, values: dict[str, Any], why: str) -> None:
    sentence = _with(figures, "differences", "skg", **{"verdict": "inconclusive", "significant": False, **values})[0]
    assert sentence.tone == "open"
    assert "stays open" in sentence.text
    assert why in sentence.text


@pytest.mark.parametrize("place", [("differences", "skg"), ("effects", "frozen")])
def test_a_verdict_below_the_detectable_size_says_what_is_left_of_it(figures: Summary, place: tuple[str, str]) -> None:
    values: dict[str, Any] = {"verdict": "worse", "mean": -0.008, "mde_new": 0.01}
    whole, less = (
        " ".join(sentence.text for sentence in _with(figures, *place, **values, shrunken=shrunken))
        for shrunken in (None, -0.0054)
    )
    words_of_it = "; such a run finds 0.010 in 80 % of cases, so this exaggerates: shrunken, -0.005"
    assert words_of_it in less
    assert words_of_it not in whole


def test_wrong_answers_are_said_per_hit_and_per_request(figures: Summary) -> None:
    text = next(s.text for s in words(figures) if s.text.startswith("skg answered"))
    arm_figures = figures.arms["skg"]
    for name in ("hit_rate", "err_per_hit", "err_per_request"):
        assert f"{number(arm_figures[name].mean, 'share')} (" in text
    assert f"against {number(figures.arms['never']['err_per_request'].mean, 'share')} of never's" in text


def test_a_corpus_that_was_used_up_and_an_unfinished_run_are_cautions(figures: Summary) -> None:
    assert not [s for s in words(figures) if s.tone == "caution"]
    saturated = replace(figures.saturation, testable=False, reasons=["7.0% of requests repeat (limit 5%)"])
    changed = replace(figures, incomplete=True, saturation=saturated)
    cautions = [s.text for s in words(changed) if s.tone == "caution"]
    assert cautions == [
        "The run is unfinished: these are the figures of what is there.",
        "Claims about curves and utility are not testable here: 7.0% of requests repeat (limit 5%).",
    ]


def test_one_user_makes_no_claim(tmp_path_factory: pytest.TempPathFactory) -> None:
    run = make_run(
        tmp_path_factory.mktemp("runs") / "run", users=1, weeks=2, arms={"a": World(), "never": ARMS["never"]}
    )
    assert {s.tone for s in words(summary.write(run))} <= {"open", "plain"}


@pytest.mark.parametrize(
    ("value", "unit", "signed", "text"),
    [
        (0.3125, "share", False, "31.2 %"),
        (0.3125, "share", True, "+31.2 pp"),
        (-0.02, "difference", False, "-2.0 pp"),
        (0.000712, "usd", False, "$0.00071"),
        (-0.000712, "usd", True, "-$0.00071"),
        (2153.9, "ms", False, "2.15 s"),
        (0.0314, "utility", True, "+0.031"),
        (-0.0001, "utility", True, "0.000"),
        (12.34, "skills", False, "12.3"),
        (None, "share", False, "-"),
        (float("nan"), "share", False, "-"),
    ],
)
def test_numbers_read_as_people_write_them(value: float | None, unit: str, signed: bool, text: str) -> None:
    assert number(value, unit, signed=signed) == text


def test_an_interval_has_two_ends() -> None:
    assert interval(-0.01, 0.02, "share", signed=True) == "-1.0 pp to +2.0 pp"
    assert interval(None, None, "share") == "-"


def test_of_advice_it_is_said_what_users_did_about_it_and_where_regret_comes_from(tmp_path: Path) -> None:
    arms = {"guardian": drawn(12, 20, 0.9), "never": drawn(12, 20, 0.3)}
    content = summary.write(make_advice_run(tmp_path / "run", arms))
    sentences = [s.text for s in words(content)]
    text = " ".join(sentences)
    assert "guardian serves its users better than the generic question alone (never): " in sentences[0]
    assert f"; users listened to {number(content.arms['guardian']['listened'].mean, 'share')}" in text
    assert "because the best that can be said is not in the book" in text
    assert "from memory" not in text
    assert "right" not in text.replace("really", "")
