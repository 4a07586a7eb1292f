"""A simulator is asked about its own events, whatever ids the engine sees."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.core.draws import salted
from skg_bench.core.world import Draws
from skg_bench.engine.relabel import Relabelled


def test_a_simulator_is_handed_the_event_that_it_made(monkeypatch: pytest.MonkeyPatch) -> None:
    simulator = prepare(compose(["users=3", "weeks=1", "arms={skg: []}", "reference=skg"])).plan.simulator
    made, handed = list[Any](), list[Any]()
    events = type(simulator).events

    def keep(*asked: Any) -> Any:
        made.append(events(*asked))
        return made[-1]

    monkeypatch.setattr(type(simulator), "events", keep)
    monkeypatch.setattr(type(simulator), "merge", lambda _world, _state, event, *_more: handed.append(event))
    world, seed = Relabelled(simulator, 5), salted(0, 0)
    users = world.begin(seed, np.arange(3, dtype=np.int32), 1)
    earlier, event = world.events(users, 0), world.events(users, 1)
    nobody, draws = np.zeros(0, np.int64), cast("Draws", None)
    for asked in (event, replace(event), earlier):
        assert not np.array_equal(asked.text, made[0 if asked is earlier else 1].text)
        world.merge(users, asked, nobody, nobody.astype(np.int32), draws)
    assert handed[0] is made[1]
    for asked, old in zip(handed, (made[1], made[1], made[0]), strict=True):
        np.testing.assert_array_equal(asked.text, old.text)
