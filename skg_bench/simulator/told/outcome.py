"""Domain of the world of codes: columns of its outcome; its metrics and words stand in `telling.toml`."""

from dataclasses import dataclass

from skg_bench.core.domain import Domain, outcome_field, outcome_fields
from skg_bench.core.grid import I32, Bool

NEEDS = ("told", "not_told")
TOLD, NOT_TOLD = range(len(NEEDS))
STATES = ("nothing", "right", "outdated", "another_thing", "another_user", "invented", "several")
NOTHING, CURRENT, OUTDATED, ANOTHER_THING, ANOTHER_USER, INVENTED, SEVERAL = range(len(STATES))


@dataclass(frozen=True, slots=True)
class ToldOutcome:
    """Consequences of an answer, `[B]` each."""

    need: I32 = outcome_field("the code that is asked for was told, or not; null: the message tells one", levels=NEEDS)
    states: I32 = outcome_field(
        "what the words state: the code that holds, one that was changed since, one of another thing of the user's, "
        "one that only other users have, one that nobody has, or several; null: nothing is asked",
        levels=STATES,
    )
    code_changed: Bool = outcome_field("the code that is asked for was changed since it was told first")


TOLD_CODES = Domain(
    "told", outcome=outcome_fields(ToldOutcome), telling="skg_bench.simulator.told:telling.toml", in_words=True
)
