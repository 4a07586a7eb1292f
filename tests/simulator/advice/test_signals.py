"""Feedback in words: all outcomes, all later answers, and the article's own sentences."""

import json
from pathlib import Path
from typing import Any

import pytest

from skg_bench.simulator.advice.levels import OUTCOME, OUTCOMES, SATISFACTION, SATISFACTIONS
from skg_bench.simulator.advice.outcome import advice

GOLDEN = Path(__file__).parents[2] / "golden"
DOMAIN = advice(["delay"])


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))


def outcome_signal(outcome: str) -> str:
    return DOMAIN.signal(OUTCOME, OUTCOMES.index(outcome), -1)


def satisfaction_signal(satisfaction: str, outcome: str | None) -> str:
    before = -1 if outcome is None else OUTCOMES.index(outcome)
    return DOMAIN.signal(SATISFACTION, SATISFACTIONS.index(satisfaction), before)


@pytest.mark.req("P22")
def test_each_outcome_is_said_as_the_golden_file_has_it() -> None:
    assert {outcome: outcome_signal(outcome) for outcome in OUTCOMES} == golden("feedback_signals")


@pytest.mark.req("P29")
def test_each_later_answer_is_said_as_the_golden_file_has_it() -> None:
    signals = {s: {o or "unknown": satisfaction_signal(s, o) for o in (*OUTCOMES, None)} for s in SATISFACTIONS}
    assert signals == golden("satisfaction_signals")


@pytest.mark.req("P22", "P29")
def test_the_sentences_that_the_article_gives_are_there_word_for_word() -> None:
    assert outcome_signal("accepted") == "correct — user accepted the Guardian's suggestion"
    assert outcome_signal("overridden") == "incorrect — user overrode the Guardian's suggestion"
    assert outcome_signal("wait") == "correct — user chose to wait as suggested"
    assert outcome_signal("abandoned") == "neutral — user abandoned without deciding"
    assert satisfaction_signal("worth_it", "accepted") == "positive_reinforcement — user confirms good decision"


def test_numbers_of_kinds_are_those_of_the_domain() -> None:
    assert (DOMAIN.acted, DOMAIN.later) == (OUTCOME, SATISFACTION)
    assert (DOMAIN.number("outcome"), DOMAIN.number("satisfaction")) == (OUTCOME, SATISFACTION)
