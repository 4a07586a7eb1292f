"""Domain of the world of codes: columns of its outcome; its metrics and words stand in `telling.toml`."""

from dataclasses import dataclass
from enum import IntEnum

from skg_bench.core.domain import Domain, outcome_field, outcome_fields
from skg_bench.core.grid import I32, Bool


class CodeNeed(IntEnum):
    """Codes that are asked for."""

    TOLD = 0
    NOT_TOLD = 1


class StatedCode(IntEnum):
    """Codes that words state."""

    NOTHING = 0
    RIGHT = 1
    OUTDATED = 2
    ANOTHER_THING = 3
    ANOTHER_USER = 4
    INVENTED = 5
    SEVERAL = 6


NEED_LEVELS, STATED_LEVELS = (tuple(each.name.lower() for each in kind) for kind in (CodeNeed, StatedCode))


@dataclass(frozen=True, slots=True)
class ToldOutcome:
    """Consequences of an answer, `[B]` each."""

    need: I32 = outcome_field(
        "the code that is asked for was told, or not; null: the message tells one", levels=NEED_LEVELS
    )
    states: I32 = outcome_field(
        "what the words state: the code that holds, one that was changed since, one of another thing of the user's, "
        "one that this user never had, one that there is not, or several of the user's; null: nothing is asked",
        levels=STATED_LEVELS,
    )
    code_changed: Bool = outcome_field("the code that is asked for was changed since it was told first")
    by_detour: Bool = outcome_field("the code that is asked for was told under a name that another message explains")


TOLD_CODES = Domain(
    "told", outcome=outcome_fields(ToldOutcome), telling="skg_bench.simulator.told:telling.toml", in_words=True
)
