"""Feedback in words: all outcomes, all later answers, and the article's own sentences."""

import json
from pathlib import Path
from typing import Any

import pytest

from skg_bench.core.advice import OUTCOMES, SATISFACTIONS
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback_signals import feedback_signal, satisfaction_signal

GOLDEN = Path(__file__).parents[1] / "golden"


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))


@pytest.mark.req("P22")
def test_each_outcome_is_said_as_the_golden_file_has_it() -> None:
    assert {outcome: feedback_signal(outcome) for outcome in OUTCOMES} == golden("feedback_signals")


@pytest.mark.req("P29")
def test_each_later_answer_is_said_as_the_golden_file_has_it() -> None:
    signals = {s: {o or "unknown": satisfaction_signal(s, o) for o in (*OUTCOMES, None)} for s in SATISFACTIONS}
    assert signals == golden("satisfaction_signals")


@pytest.mark.req("P22", "P29")
def test_the_sentences_that_the_article_gives_are_there_word_for_word() -> None:
    assert feedback_signal("accepted") == "correct — user accepted the Guardian's suggestion"
    assert feedback_signal("overridden") == "incorrect — user overrode the Guardian's suggestion"
    assert feedback_signal("wait") == "correct — user chose to wait as suggested"
    assert feedback_signal("abandoned") == "neutral — user abandoned without deciding"
    assert satisfaction_signal("worth_it", "accepted") == "positive_reinforcement — user confirms good decision"


def test_other_words_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match="outcome='ignored', valid are accepted, overridden"):
        feedback_signal("ignored")
    with pytest.raises(UsageError, match="satisfaction='great', valid are worth_it, regret_it, not_sure"):
        satisfaction_signal("great", "accepted")
    with pytest.raises(UsageError, match="outcome='ignored', valid are"):
        satisfaction_signal("worth_it", "ignored")
