"""Worlds in which skills are advice: what users do about it, and what they say of it later.

An assistant steps in before a purchase with a strategy of the user's skillbook, or with a generic question. What comes
of it is an outcome and no answer (Pause's Guardian). Which tier a trigger has is a declared rule, known to everybody.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from skg_bench.core.content import Content
from skg_bench.core.grid import F64, I32, Bool

ADVICE = "advice"  # name of the domain
OUTCOMES = (
    "accepted", "overridden", "wait", "abandoned", "auto_approved", "break_glass", "timeout", "wizard_bookmark",
    "wizard_abandoned",
)  # fmt: skip
"""What a user did about advice; the nine of Pause's database."""
(
    ACCEPTED, OVERRIDDEN, WAIT, ABANDONED, AUTO_APPROVED, BREAK_GLASS, TIMEOUT, WIZARD_BOOKMARK, WIZARD_ABANDONED,
) = range(len(OUTCOMES))  # fmt: skip
SATISFACTIONS = ("worth_it", "regret_it", "not_sure")
WORTH_IT, REGRET_IT, NOT_SURE = range(len(SATISFACTIONS))
TIERS = ("analyst", "negotiator", "therapist")
"""The analyst approves, the negotiator offers savings, the therapist adds friction."""
ANALYST, NEGOTIATOR, THERAPIST = range(len(TIERS))


@runtime_checkable
class Advised(Protocol):
    """A world in which skills are advice, beside core.world.World."""

    @property
    def kinds(self) -> Sequence[str]:
        """Kinds of strategies, by their index; -1 is the generic question."""
        ...

    @property
    def texts(self) -> Sequence[Content]:
        """Strategies whose kind is known."""
        ...

    @property
    def digest(self) -> str:
        """Hash of these."""
        ...

    def read(self, contents: Sequence[Content]) -> tuple[I32, Bool]:
        """What skills that say this are really about, `[n]`: a kind; and is it well made?"""
        ...

    def worth(self, state: Any, event: Any, about: I32, sound: Bool) -> F64:
        """Expected worth of advice of kinds `about` `[B, S]` (-1: the generic question) to users without a mood, at
        their events.
        """
        ...
