"""Domain of the world of facts: columns of its outcome; its metrics and words stand in `telling.toml`."""

from dataclasses import dataclass

from skg_bench.core.domain import Domain, FeedbackKind, outcome_field, outcome_fields
from skg_bench.core.grid import F64, I32, Bool
from skg_bench.simulator.facts.knowing import MANNERS, PROMPT_CONTENTS
from skg_bench.simulator.facts.table import KNOWERS

NEEDS = ("told", "not_told")
KNOWABLE, UNKNOWABLE = range(len(NEEDS))
OLD_DAYS = 14  # from which on a telling is old, for `retention`


@dataclass(frozen=True, slots=True)
class FactOutcome:
    """Consequences of an answer, `[B]` each."""

    known_by: I32 = outcome_field("who can know it; telling: a message that tells a fact", levels=(*KNOWERS, "telling"))
    need: I32 = outcome_field("the facts that it needs were told and hold, or not; null: it needs none", levels=NEEDS)
    prompt: I32 = outcome_field("what the prompt states of these facts; null: it needs none", levels=PROMPT_CONTENTS)
    manner: I32 = outcome_field("how the model answered", levels=MANNERS)
    fact_changed: Bool = outcome_field("a fact that it needs was told with another value before")
    first_asked: Bool = outcome_field("the user asks for these facts for the first time")
    told_long_ago: Bool = outcome_field(f"the youngest fact that it needs was told {OLD_DAYS} days ago or earlier")
    chance: F64 = outcome_field("of a right answer, before the draws", unit="probability")


FACTS = Domain(
    "facts",
    kinds=(FeedbackKind("correction", ("told",), "the user says what is right, at once after a wrong answer"),),
    outcome=outcome_fields(FactOutcome),
    telling="skg_bench.simulator.facts:telling.toml",
)
CORRECTION = FACTS.number("correction")
