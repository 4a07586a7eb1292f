"""The sentences at the head of the page, whoever wins."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from skg_bench.analysis import summary
from skg_bench.analysis.counts.measure import Verdict
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.report.sentences import Sentence
from skg_bench.analysis.report.verdict import (
    PROFILES,
    WEEKS,
    arm_sentences,
    cautions,
    finding_sentences,
    headline,
    words,
)
from skg_bench.analysis.summary import Summary
from skg_bench.runfolder.cautions import few_users
from tests.analysis.advised import drawn, make_advice_run
from tests.analysis.synthetic import ARMS, World, make_run


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    return summary.write_summary(make_run(tmp_path_factory.mktemp("runs") / "run", users=12, weeks=4))


SIZES = {"mde_new": 0.01, "mde_rise": 0.01, "mde_fall": 0.02}


def _with(figures: Summary, table: str, arm: str, **values: Any) -> Summary:
    """The figures, where the utility of an arm in `differences` or `effects` has other values."""
    effect = figures.effects.get(arm)
    metrics = effect.metrics if table == "effects" and effect else figures.differences[arm]
    changed = {**metrics, "utility": replace(metrics["utility"], **{"others": {}, **values})}
    if table == "effects" and effect:
        return replace(figures, effects={**figures.effects, arm: replace(effect, metrics=changed)})
    return replace(figures, differences={**figures.differences, arm: changed})


def _title(figures: Summary, arm: str = "skg", **values: Any) -> Sentence:
    sentence = headline(_with(figures, "differences", arm, **values), arm)
    assert sentence is not None
    return sentence


def _effect(figures: Summary, **values: Any) -> Sentence:
    return finding_sentences(_with(figures, "effects", "frozen", **values), "skg")[0]


def test_an_arm_that_wins_is_said_to_win_with_its_interval(figures: Summary) -> None:
    sentence = _title(figures, mean=0.0312, low_new=0.012, high_new=0.0504, verdict="better")
    assert sentence.tone == "good"
    assert sentence.text == (
        "skg serves its users better than the LLM alone (never), if a skill is a stored text: +0.031 utility a request "
        "(95 % interval +0.012 to +0.050)."
    )


def test_intervals_far_apart_stand_side_by_side_and_what_a_run_sees_at_all_is_said(figures: Summary) -> None:
    others = {"Student's": (-0.05, -0.01), "bootstrap": (-0.06, 0.002)}
    text = _title(figures, mean=-0.03, low_new=-0.12, high_new=-0.005, verdict="worse", others=others).text
    assert "(95 % interval -0.120 to -0.005; Student's -0.050 to -0.010; bootstrap -0.060 to +0.002)" in text
    sees = [s.text for s in cautions(_with(figures, "differences", "skg", least_users=0.0297, least_intents=0.123))]
    shares = "3.0 % of users or 12.3 % of intents"
    assert f"95 % of such runs see a harm that at least {shares} bear." in sees


def test_where_there_is_no_interval_none_is_shown(figures: Summary) -> None:
    pays = replace(figures.arms["skg"]["pays_by"], low_new=None, high_new=None)
    without = replace(figures, arms={**figures.arms, "skg": {**figures.arms["skg"], "pays_by": pays}})
    for known, span in ((figures, "to"), (without, "no interval")):
        (text,) = (sentence.text for sentence in finding_sentences(known, "skg") if "pay off if" in sentence.text)
        assert span in text.partition("which is ")[2].partition("(")[2].partition(")")[0]


def test_an_arm_that_loses_is_said_to_lose(figures: Summary) -> None:
    sentence = _title(figures, mean=-0.2, low_new=-0.3, high_new=-0.1, verdict="worse")
    assert sentence.tone == "bad"
    assert sentence.text == (
        "skg serves its users worse than the LLM alone (never), if a skill is a stored text: -0.200 utility a request "
        "(95 % interval -0.300 to -0.100)."
    )
    effect = _effect(figures, mean=-0.2, low_new=-0.3, high_new=-0.1, verdict="worse")
    assert effect.tone == "bad"
    assert effect.text.startswith(
        "Learning hurt: what skg learned after turn 30 (against frozen; 11 of 12 users have later turns) was worth "
        "-0.200 utility a request"
    )


def test_what_few_users_learned_late_is_no_finding_and_how_many_they_are_is_said(figures: Summary) -> None:
    """Twelve users were there, and two of them had turns after the freezing."""
    ends = {"mean": -0.2, "low_new": -0.3, "high_new": -0.1}
    some = _effect(figures, n_users=5, **ends, verdict="worse")
    assert some.text.startswith(
        "Learning hurt: what skg learned after turn 30 (against frozen; 5 of 12 users have later turns) was "
    )
    two = _effect(figures, n_users=2, **ends, verdict="worse")
    assert two.tone == "open"
    assert two.text == (
        "Not shown that what skg learned after turn 30 (against frozen; 2 of 12 users have later turns) helps or "
        f"harms: -0.200 utility a request (95 % interval -0.300 to -0.100). {few_users(2)}."
    )
    assert "later turns" not in _effect(figures, n_users=12, **ends, verdict="worse").text


def test_what_was_learned_and_helped_is_said_to_help(figures: Summary) -> None:
    assert _effect(figures, mean=0.05, low_new=0.02, high_new=0.08, verdict="better") == Sentence(
        "Learning helped: what `skg` learned after turn 30 (against `frozen`; 11 of 12 users have later turns) was "
        "worth +0.050 utility a request (95 % interval +0.020 to +0.080).",
        "good",
    )


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (
            {"mean": 0.001, **SIZES, "p_new": 0.6},
            "A run of this size detects +0.010 or -0.020; profile=demo detects smaller differences.",
        ),
        ({"mean": 0.008, "mde_new": 0.01, "p_new": 0.03}, "It does not hold once corrected for the number of arms."),
        ({"verdict": "withheld"}, "The requests have too few effective intents: an interval takes 4."),
        ({"verdict": "depends on the interval"}, "Its intervals disagree."),
        ({"mean": 0.0, "p_holm": None, "low_new": None}, "A single user shows nothing about other users."),
        ({"verdict": "not testable here"}, "It is not testable here: the corpus was used up."),
    ],
)
def test_what_is_not_shown_says_so_and_why(figures: Summary, values: dict[str, Any], why: str) -> None:
    sentence = _title(figures, **{"verdict": "inconclusive", "significant": False, **values})
    assert sentence.tone == "open"
    assert sentence.text.startswith("Not shown that skg helps or harms")
    assert sentence.text.endswith(f". {why}")


def test_against_an_arm_that_learns_too_the_other_one_is_named(figures: Summary) -> None:
    other = replace(figures, reference="frozen")
    sentence = _title(other, verdict="inconclusive", significant=False)
    assert sentence.text.startswith("Not shown that skg is better or worse than frozen, if a skill is a stored text: ")


@pytest.mark.parametrize("verdict", ["identical", "equal for every user"])
def test_arms_that_are_equal_are_said_to_be_and_nothing_is_left_open(figures: Summary, verdict: str) -> None:
    sentence = _title(figures, verdict=verdict, mean=0.0)
    assert sentence.tone == "plain"
    assert sentence.text.startswith(f"skg and never are {verdict}")


def test_larger_profiles_are_named_by_the_size_of_the_run(figures: Summary) -> None:
    conf = Path(__file__).parents[3] / "conf" / "profile"
    profiles = {name: yaml.safe_load((conf / f"{name}.yaml").read_text("utf-8")) for name in PROFILES}
    assert {name: content["users"] for name, content in profiles.items()} == PROFILES
    assert {content["weeks"] for content in profiles.values()} == {WEEKS}
    for users, larger in ((99, "profile=demo"), (100, "profile=paper"), (1000, "one with more users")):
        sentence = _title(replace(figures, users=users), verdict="inconclusive", p_new=0.5, significant=False)
        assert sentence.text.endswith(f"; {larger} detects smaller differences.")


def test_a_reference_that_is_worse_than_the_model_alone_is_named(figures: Summary) -> None:
    """An arm that answers less from memory is then ahead of it for that alone."""
    turned = replace(figures, reference="skg", differences={"never": figures.differences["skg"]})
    ahead = _with(turned, "differences", "never", verdict="better", mean=0.05, low_new=0.04, high_new=0.06)
    warning = [
        sentence for sentence in words(ahead) if "answers nothing from memory, is better than `skg`" in sentence.marked
    ]
    assert [sentence.tone for sentence in warning] == ["bad"]
    assert "'at matched error rate'" in warning[0].text
    assert "If both ask the same model, an arm may be ahead" in warning[0].text
    for other in (_with(turned, "differences", "never", verdict="worse"), figures):
        assert not any("answers nothing from memory" in sentence.text for sentence in words(other))


@pytest.mark.parametrize("place", ["differences", "effects"])
def test_a_verdict_below_the_detectable_size_says_what_is_left_of_it(figures: Summary, place: str) -> None:
    values: dict[str, Any] = {"verdict": "worse", "mean": -0.008, **SIZES}
    told = _title if place == "differences" else _effect
    whole, less = (told(figures, **values, shrunken=shrunken).text for shrunken in (None, -0.0054))
    safe = "Its direction is safe, its size is exaggerated: a run of this size detects +0.010 or -0.020."
    words_of_it = f" {safe} A better guess is -0.005."
    assert less.endswith(words_of_it)
    assert words_of_it not in whole


def test_each_arm_has_a_sentence_proven_ones_first_then_the_learner_and_what_was_changed(figures: Summary) -> None:
    gap = replace(figures.differences["skg"]["utility"], significant=True)
    given: dict[str, Verdict] = {
        "skg": "inconclusive",
        "frozen": "worse",
        "exact": "identical",
        "wide": "better",
        "narrow": "inconclusive",
    }
    against = {arm: {"utility": replace(gap, verdict=verdict)} for arm, verdict in given.items()}
    levels = dict.fromkeys(given, figures.arms["skg"]) | {"never": figures.arms["never"]}
    shown = replace(figures, arms=levels, differences=against, changed=["wide"])
    assert [arm for arm, _ in arm_sentences(shown)] == ["wide", "frozen", "skg", "narrow", "exact"]
    asked = [s.text for arm, s in arm_sentences(shown) if arm in ("skg", "wide")]
    assert [s.text for s in words(shown)[:2]] == asked
    assert not any("narrow" in s.text or "exact" in s.text for s in words(shown))
    for arm, sentence in arm_sentences(shown):
        assert f"`{arm}`" in sentence.marked


def test_each_arm_is_called_by_its_own_name_in_all_that_is_said_of_it(figures: Summary) -> None:
    """Of `frozen` nothing may be said under the name of `skg`, but that it is its twin."""
    told = [headline(figures, "frozen"), *finding_sentences(figures, "frozen")]
    marked = [sentence.marked for sentence in told if sentence is not None]
    assert all("`frozen`" in text for text in marked)
    assert [text for text in marked if "`skg`" in text] == [text for text in marked if "learned after turn" in text]


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


@pytest.mark.parametrize(("users", "few"), [(1, False), (2, True), (3, True), (4, False)])
def test_users_who_decide_nothing_are_said_to(figures: Summary, users: int, *, few: bool) -> None:
    cautions = [s.text for s in words(replace(figures, users=users)) if s.tone == "caution"]
    assert cautions == [f"{few_users(users)}."] * few
    assert few_users(users).startswith(f"{users} users decide nothing: ") == few


def test_one_user_makes_no_claim(tmp_path_factory: pytest.TempPathFactory) -> None:
    run = make_run(
        tmp_path_factory.mktemp("runs") / "run", users=1, weeks=2, arms={"a": World(), "never": ARMS["never"]}
    )
    assert {s.tone for s in words(summary.write_summary(run))} <= {"open", "plain"}


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
    drawn_arms = {"guardian": drawn(24, 20, 0.9), "never": drawn(24, 20, 0.3)}
    content = summary.write_summary(make_advice_run(tmp_path / "run", drawn_arms))
    sentences = [s.text for s in words(content)]
    text = " ".join(sentences)
    assert sentences[0].startswith("guardian serves its users better than never: ")
    title = headline(content, "guardian")
    assert title is not None
    assert title.text.startswith("guardian serves its users better than the generic question alone (never): ")
    assert f"; users listened to {number(content.arms['guardian']['listened'].mean, 'share')}" in text
    assert "because the best that can be said is not in the book" in text
    assert "from memory" not in text
    assert "right" not in text.replace("really", "")
