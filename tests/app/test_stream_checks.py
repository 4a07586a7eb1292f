"""Logs of users who react to answers, while their world says that they do not: nothing is said of other arms."""

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import skg_bench
from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare, start
from skg_bench.core.world import STORED, Draws, Event, Response, Served
from skg_bench.runfolder.run import Run
from tests.app.test_cli import call
from tests.runs import logs_alone

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
            words = ["profile=smoke", "users=12", "weeks=3", "simulator.rated_share=0.5", "workers=1", "reference=log_"]
            job = prepare(compose([*words, f"arms={{log_: [{LOGGER}]}}", f"out={folder / str(insist)}"]))
            if insist:
                job = replace(job, plan=replace(job.plan, simulator=Insistent(job.plan.simulator)))
            made[insist] = start(job)
    return made


def test_a_check_is_printed_with_its_turns(runs: dict[bool, Run]) -> None:
    words = ("--target", "same=[policy=interleave]", "--reward-model", "constant", "--reward", "answer_correct")
    code, out, _ = call("estimate", str(runs[False].path), *words)
    assert code == 0
    assert re.search(r"checked: whether messages depend on answers, by \d+ turns at which chance decided", out)


@pytest.mark.parametrize("insist", [False, True])
def test_users_who_react_while_their_world_says_that_they_do_not_are_found(insist: bool, runs: dict[bool, Run]) -> None:
    targets = {"strict": ["policy=threshold", "policy.threshold=0.7"]}
    made = skg_bench.estimate(runs[insist], targets=targets, reward_model="constant")
    assert made.stream is not None
    assert made.stream.decisions > 50
    assert made.stream.reactive == insist
    (replay,) = made.replays
    assert ("users seem to react to answers" in replay.withheld) == insist
    if insist:
        assert "same words is larger (p " in replay.withheld
        assert made.values[1].verdict == "withheld"
        assert np.isnan(made.values[1].difference)
