"""Logs of users who react to answers, while their world says that they do not: nothing is said of other arms."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skg_bench
from skg_bench.analysis.policy_value.estimates import PolicyEstimates
from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare, start
from skg_bench.app.replay_tables import replay_parts
from skg_bench.core.world import STORED, Draws, Event, Response, Served
from skg_bench.runfolder.run import Run
from tests.runs import logs_alone

SIZE = ("profile=smoke", "users=12", "weeks=3", "simulator.volume_spread=0.2")  # nobody has many more turns than others
LOGGER = "policy=interleave, policy.first.threshold=0.3, policy.second.threshold=0.7"


@dataclass(frozen=True)
class Insistent:
    """`users`, who after a stored answer say the same once more."""

    users: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["users"], name)

    def respond(self, state: Any, event: Event, served: Served, draws: Draws) -> tuple[Any, Response]:
        """The response, after which the next event is changed."""
        state, response = self.users.respond(state, event, served, draws)
        events, turn = state.events, np.argmax(state.events.time == event.time[:, None], axis=1)
        r = np.flatnonzero((served.how == STORED) & (turn + 1 < events.n))
        number = events.number[r, turn[r] + 1]
        events.text[r, turn[r] + 1] = state.ledger.text[r, number] = event.text[r]
        events.truth.type[r, turn[r] + 1] = state.ledger.type[r, number] = event.type[r]
        events.truth.intent[r, turn[r] + 1] = event.intent[r]
        return state, response


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Run]:
    """Runs of users who insist, or do not."""
    folder = tmp_path_factory.mktemp("streams")
    made = {}
    with logs_alone():
        for insist in (False, True):
            words = [*SIZE, "simulator.rated_share=0.5", "workers=1", "reference=log_"]
            job = prepare(compose([*words, f"arms={{log_: [{LOGGER}]}}", f"out={folder / str(insist)}"]))
            if insist:
                job = replace(job, plan=replace(job.plan, simulator=Insistent(job.plan.simulator)))
            made[insist] = start(job)
    return made


@pytest.fixture(scope="module")
def estimates(runs: dict[bool, Run]) -> dict[bool, PolicyEstimates]:
    """A target, valued on both logs."""
    targets = {"strict": ["policy=threshold", "policy.threshold=0.7"]}
    return {insist: skg_bench.estimate(run, targets=targets, reward_model="constant") for insist, run in runs.items()}


def test_a_check_is_printed_with_its_turns(estimates: dict[bool, PolicyEstimates]) -> None:
    lines = [part for part in replay_parts(Path("run"), estimates[False]) if isinstance(part, str)]
    wanted = r"checked: whether messages depend on answers, by \d+ turns at which chance decided"
    assert [line for line in lines if re.match(wanted, line)]


@pytest.mark.parametrize("insist", [False, True])
def test_users_who_react_while_their_world_says_that_they_do_not_are_found(
    insist: bool, estimates: dict[bool, PolicyEstimates]
) -> None:
    made = estimates[insist]
    assert made.stream is not None
    assert made.stream.decisions > 50
    assert made.stream.reactive == insist
    (replay,) = made.replays
    assert ("users seem to react to answers" in replay.withheld) == insist
    if insist:
        assert "same words is larger (p " in replay.withheld
        assert made.values[1].verdict == "withheld"
        assert np.isnan(made.values[1].difference)
