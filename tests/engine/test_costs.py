"""Cost of what was served."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skg_bench
from skg_bench.core.world import PROCEDURE, Draws, Event, Execution, Response, Served
from skg_bench.simulator.answers.world import AssistantUsers

ARMS = "arms={run: [serving=procedure, policy.threshold=0.4], never: [policy=never, curator=none]}"
respond = AssistantUsers.respond


def careless(world: AssistantUsers, state: Any, event: Event, served: Served, draws: Draws) -> tuple[Any, Response]:
    """Responds as the world does, with any values of procedures where none was run."""
    state, response = respond(world, state, event, served, draws)
    match response.case:
        case Execution(failed, cause, usd, latency):
            run = served.how == PROCEDURE
            case = Execution(
                failed | ~run, np.where(run, cause, 1), np.where(run, usd, 7.0), np.where(run, latency, 1e6)
            )
            return state, replace(response, case=case)
        case _:
            return state, response


@pytest.mark.usefixtures("bare")
def test_what_a_world_says_of_procedures_counts_where_one_was_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    even = ["simulator.volume_spread=0.1", "simulator.day_spread=0.1"]  # the busiest user takes the time
    words = ["profile=smoke", "users=6", "weeks=3", "workers=1", *even, ARMS, "reference=never", "contrasts=[]",
             "salt=0"]  # fmt: skip
    careful = skg_bench.run([*words, f"out={tmp_path / 'careful'}"])
    monkeypatch.setattr(AssistantUsers, "respond", careless)
    other = skg_bench.run([*words, f"out={tmp_path / 'careless'}"])
    assert "procedure" in careful.turns("run", ["serving"])["serving"].to_pylist()
    for arm in careful.arms:
        assert careful.turns(arm).equals(other.turns(arm)), arm
