"""Feedback in words, as a reflector is told it: Pause's `feedbackSignalMap` and `satisfactionToFeedbackSignal`.

The article names four sentences of the first and one of the second; the others follow their style.
"""

from collections.abc import Mapping

from skg_bench.core.advice import OUTCOMES, SATISFACTIONS
from skg_bench.core.errors import UsageError

_OUTCOME: Mapping[str, str] = {
    "accepted": "correct — user accepted the Guardian's suggestion",
    "overridden": "incorrect — user overrode the Guardian's suggestion",
    "wait": "correct — user chose to wait as suggested",
    "abandoned": "neutral — user abandoned without deciding",
    "auto_approved": "neutral — purchase was approved without a suggestion",
    "break_glass": "neutral — user broke the glass and bypassed the Guardian",
    "timeout": "neutral — user did not answer in time",
    "wizard_bookmark": "correct — user bookmarked the purchase for later",
    "wizard_abandoned": "neutral — user left the wizard without deciding",
}
_SATISFACTION: Mapping[tuple[str, str], str] = {
    ("worth_it", "accepted"): "positive_reinforcement — user confirms good decision",
    ("worth_it", "wait"): "positive_reinforcement — user is glad to have waited",
    ("worth_it", "overridden"): "negative_reinforcement — user is glad to have overridden the Guardian",
    ("regret_it", "accepted"): "negative_reinforcement — user regrets having accepted the suggestion",
    ("regret_it", "wait"): "negative_reinforcement — user regrets having waited",
    ("regret_it", "overridden"): "positive_reinforcement — user regrets having overridden the Guardian",
}
_NEITHER: Mapping[str, str] = {
    "worth_it": "neutral — user is glad of a decision that no suggestion shaped",
    "regret_it": "neutral — user regrets a decision that no suggestion shaped",
    "not_sure": "neutral — user is not sure about the decision",
}


def feedback_signal(outcome: str) -> str:
    """Sentence about a suggestion that had this outcome (P22).

    Raises UsageError for another outcome.
    """
    return _OUTCOME[_known("outcome", outcome, OUTCOMES)]


def satisfaction_signal(satisfaction: str, outcome: str | None) -> str:
    """Sentence about a suggestion from its outcome and a later answer (P29); None: nobody remembers it.

    Raises UsageError for other words.
    """
    neither = _NEITHER[_known("satisfaction", satisfaction, SATISFACTIONS)]
    return (
        neither if outcome is None else _SATISFACTION.get((satisfaction, _known("outcome", outcome, OUTCOMES)), neither)
    )


def _known(name: str, word: str, valid: tuple[str, ...]) -> str:
    if word not in valid:
        raise UsageError(f"{name}={word!r}, valid are {', '.join(valid)}")
    return word
