"""Worlds in which skills are advice: what users do about it, and what they say of it later.

An assistant steps in before a purchase with a strategy of the user's skillbook, or with a generic question. What comes
of it is an outcome and no answer (Pause's Guardian). Which tier a trigger has is a declared rule, known to everybody.
"""

from skg_bench.core.feedback import FEEDBACK_KINDS

ADVICE = "advice"  # name of the domain
OUTCOME, SATISFACTION = (len(FEEDBACK_KINDS) + i for i in range(2))  # numbers of its kinds of feedback
OUTCOMES = (
    "accepted", "overridden", "wait", "abandoned", "auto_approved", "break_glass", "timeout", "wizard_bookmark",
    "wizard_abandoned",
)  # fmt: skip
"""Acts of a user after advice; the nine of Pause's database."""
(
    ACCEPTED, OVERRIDDEN, WAIT, ABANDONED, AUTO_APPROVED, BREAK_GLASS, TIMEOUT, WIZARD_BOOKMARK, WIZARD_ABANDONED,
) = range(len(OUTCOMES))  # fmt: skip
SATISFACTIONS = ("worth_it", "regret_it", "not_sure")
WORTH_IT, REGRET_IT, NOT_SURE = range(len(SATISFACTIONS))
TIERS = ("analyst", "negotiator", "therapist")
"""The analyst approves, the negotiator offers savings, the therapist adds friction."""
ANALYST, NEGOTIATOR, THERAPIST = range(len(TIERS))
