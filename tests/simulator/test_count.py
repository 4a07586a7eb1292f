"""Events are counted without being made: as many as `population` gives, for whichever users."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from experiments.skg_section5.crowd import Crowd
from skg_bench.core.errors import UsageError
from skg_bench.engine.relabel import Relabelled
from tests.simulator.logs.logs import recorded, turn, write_csv
from tests.simulator.users import assistant

PLAIN = assistant()
KINDS: dict[str, Any] = {
    "time": PLAIN,
    "permuted": assistant(order="permuted"),
    "talkative": assistant(messages_per_day=30, volume_spread=2.0, day_spread=1.5, max_per_day=60),
    "seldom": assistant(active_low=0.0, active_high=0.1, weekend_activity=0.0, messages_per_day=0.2),
    "relabelled": Relabelled(PLAIN, 3),
    "crowd": Crowd(PLAIN, PLAIN.reactions, PLAIN.judging),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8, deadline=None)
@given(
    seed=some.integers(0, 2**63 - 1),
    users=some.lists(some.integers(0, 2**31 - 1), min_size=1, max_size=5, unique=True),
    weeks=some.integers(1, 4),
)
def test_as_many_events_are_counted_as_are_made(kind: str, seed: int, users: list[int], weeks: int) -> None:
    simulator: Any = KINDS[kind]
    ids = np.array(users, np.int32)
    counts = simulator.count(seed, ids, weeks)
    assert counts.dtype == np.int32
    assert counts.tolist() == simulator.population(seed, ids, weeks).n.tolist()


@pytest.mark.parametrize("weeks", [1, 2, 9])
def test_turns_of_a_log_are_counted_up_to_the_last_week(tmp_path: Path, weeks: int) -> None:
    rows = [
        turn(user, f"2024-01-{day:02}T12:00:00", f"{user} {day}")
        for user, days in (("ann", (1, 2, 9, 16)), ("bob", (3,)), ("eve", (1, 8, 15, 22)))
        for day in days
    ]
    simulator = recorded(write_csv(tmp_path / "log.csv", rows))
    for users in ([0, 1, 2], [2], [1, 0]):
        ids = np.array(users, np.int32)
        assert simulator.count(0, ids, weeks).tolist() == simulator.population(0, ids, weeks).n.tolist()
    with pytest.raises(UsageError, match="the log has 3 users"):
        simulator.count(0, np.array([3], np.int32), 1)
