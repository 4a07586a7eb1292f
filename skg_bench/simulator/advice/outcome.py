"""Outcomes of advice, and the domain that they belong to: its columns are fields here, its kinds of feedback stand in
`signals`, its metrics and words in `telling.toml`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from skg_bench.core.domain import Domain, OutcomeField, outcome_field, outcome_fields
from skg_bench.core.grid import F64, I32, Bool
from skg_bench.simulator.advice.levels import ADVICE, OUTCOMES, TIERS
from skg_bench.simulator.advice.signals import ADVICE_FEEDBACK


@dataclass(frozen=True, slots=True)
class Outcome:
    """Consequences of advice, `[B]` each."""

    tier: I32 = outcome_field(f"of advice: {', '.join(TIERS)}", levels=TIERS, truth=False)
    outcome: I32 = outcome_field(f"what the user did about advice: {', '.join(OUTCOMES)}", levels=OUTCOMES, truth=False)
    wanted: Bool = outcome_field("the user really wants the purchase")
    strategy: I32 = outcome_field("what the served skill is really about, a kind of strategy; null: no skill served")
    worth: F64 = outcome_field("to the user, before cost and waiting", unit="utility")
    worth_expected: F64 = outcome_field("the same on average, in the user's mood", unit="utility")
    worth_fresh: F64 = outcome_field("on average, for a user without a mood", unit="utility")
    worth_book: F64 = outcome_field(
        "of the best in the user's book, without a mood; the engine fills it in", unit="utility"
    )
    worth_best: F64 = outcome_field("of the best that can be said, without a mood", unit="utility")


def advice(strategies: Sequence[str]) -> Domain:
    """The domain of a world with these kinds of strategies."""

    def named(each: OutcomeField) -> OutcomeField:
        return replace(each, stored="words", levels=tuple(strategies)) if each.name == "strategy" else each

    return Domain(
        ADVICE, ADVICE_FEEDBACK, outcome=tuple(map(named, outcome_fields(Outcome))), book="worth_book",
        telling="skg_bench.simulator.advice:telling.toml",
    )  # fmt: skip
