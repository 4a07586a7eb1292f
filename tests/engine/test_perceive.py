"""What the log says a user asked for before."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from skg_bench.core.domain import ANSWERS
from skg_bench.core.draws import key
from skg_bench.engine.scene import Keys
from skg_bench.engine.step import perceive
from skg_bench.engine.text_view import Heard

INTENTS = 3


def test_familiar_is_an_intent_asked_before_or_a_one_off_that_was_answered() -> None:
    intent = np.array([0, 0, 1, 1, -1, -1, -1], np.int32)
    before = np.array([True, False, True, False, False, False, False])  # asked for the intent
    answerable = np.array([0, 2, 0, 0, 0, 1, 2], np.int32)  # earlier answers that still hold
    n = len(intent)
    asked = np.zeros((n, INTENTS + 1), np.bool_)
    asked[np.arange(n), intent] = before
    numbers: dict[str, Any] = {name: np.zeros(n, np.int32) for name in ("number", "text", "type")}
    times = {name: np.full(n, 500, np.int64) for name in ("time", "local")}
    event = SimpleNamespace(intent=intent, answerable=answerable, **numbers, **times)
    world = SimpleNamespace(events=lambda _users, _turn: event, judge=max, domain=ANSWERS)  # nobody asks it
    keys = key(0, np.arange(n))
    scene: Any = SimpleNamespace(
        world=world, texts=None, similarity=None, reading=None, type_names=np.zeros(1, np.int32),
        keys=Keys(keys, keys), assistant=SimpleNamespace(sees_truth=False), library=None,
    )  # fmt: skip
    state: Any = SimpleNamespace(users=None, time=np.full(n, 200, np.int64), asked=asked, heard=Heard(n))
    turn = perceive(scene, state, 1, n)
    assert turn.truth.familiar.tolist() == [True, False, True, False, False, True, True]
    assert turn.message.gap.tolist() == [300] * n
    assert state.asked[np.arange(n), intent].all()
    assert turn.message.truth is None
