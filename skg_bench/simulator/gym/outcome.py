"""Domain of tasks of reasoning-gym: the column of its outcome; metrics and words stand in `telling.toml`."""

from dataclasses import dataclass

from skg_bench.core.domain import Domain, outcome_field, outcome_fields
from skg_bench.core.grid import I32

MET_LEVELS = ("nothing", "family", "entry")


@dataclass(frozen=True, slots=True)
class GymOutcome:
    """Kind of a task for its user, `[B]`."""

    met: I32 = outcome_field(
        "what the user met before of the task: nothing, others of its family, or the task itself; null: no task",
        levels=MET_LEVELS,
    )


GYM_TASKS = Domain(
    "gym", outcome=outcome_fields(GymOutcome), telling="skg_bench.simulator.gym:telling.toml", in_words=True
)
