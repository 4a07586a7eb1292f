"""Feedback of the domain, in words for a reflector: Pause's `feedbackSignalMap` and `satisfactionToFeedbackSignal`.

The article names four sentences of the first and one of the second; the others follow their style.
"""

from skg_bench.core.domain import CombinedSignal, FeedbackKind
from skg_bench.simulator.advice.levels import OUTCOMES, SATISFACTIONS

_OUTCOME = {
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
_SATISFACTION = {
    "worth_it": "neutral — user is glad of a decision that no suggestion shaped",
    "regret_it": "neutral — user regrets a decision that no suggestion shaped",
    "not_sure": "neutral — user is not sure about the decision",
}
_COMBINED = (
    CombinedSignal("worth_it", "accepted", "positive_reinforcement — user confirms good decision"),
    CombinedSignal("worth_it", "wait", "positive_reinforcement — user is glad to have waited"),
    CombinedSignal("worth_it", "overridden", "negative_reinforcement — user is glad to have overridden the Guardian"),
    CombinedSignal("regret_it", "accepted", "negative_reinforcement — user regrets having accepted the suggestion"),
    CombinedSignal("regret_it", "wait", "negative_reinforcement — user regrets having waited"),
    CombinedSignal("regret_it", "overridden", "positive_reinforcement — user regrets having overridden the Guardian"),
)
ADVICE_FEEDBACK = (  # in the order of OUTCOME and SATISFACTION
    FeedbackKind(
        "outcome", OUTCOMES, "what the user did about advice, at once or a day later",
        tuple(_OUTCOME[level] for level in OUTCOMES), idle=("auto_approved",), refused=("overridden",),
    ),
    FeedbackKind(
        "satisfaction", SATISFACTIONS, "what the user says of it days later",
        tuple(_SATISFACTION[level] for level in SATISFACTIONS), after="outcome", combined=_COMBINED,
    ),
)  # fmt: skip
