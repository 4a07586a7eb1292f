"""Tellings, changes and questions of users, and what is right at each."""

import numpy as np
import pytest

from skg_bench.core.draws import key
from skg_bench.core.errors import UsageError
from skg_bench.simulator.told.codes import N_CODES, THINGS, codes_in, messages, thing_words
from skg_bench.simulator.told.stream import TellingHabits, stream
from skg_bench.simulator.told.world import Told

HABITS = TellingHabits(things=12, asks_per_week=5, never_told=0.15, changes=0.35, detours=0.2)
USERS = np.arange(40, dtype=np.int32)
WEEKS = 10


def test_what_is_right_is_what_the_messages_said_before() -> None:
    events, wanted = stream(HABITS, key(3, USERS), USERS, WEEKS)
    texts = messages()
    asked = told = changed = detours = 0
    for user in range(len(USERS)):
        held: dict[int, list[int]] = {}
        named = set[str]()  # owners
        times = events.time[user, : events.n[user]]
        assert (np.diff(times) >= 0).all()
        assert times[-1] < WEEKS * 7 * 86400
        for turn in range(events.n[user]):
            thing, text = int(wanted.thing[user, turn]), texts[events.text[user, turn]]
            words = thing_words(thing)
            by_name = wanted.detour[user, turn]
            if not wanted.asks[user, turn] and not codes_in(text):  # it names an owner
                assert by_name
                assert wanted.code[user, turn] == -1
                assert words["owner"] in text
                assert words["name"] in text
                named.add(words["owner"])
                continue
            assert (
                f"{words['kind']} of {words['name']}" if by_name and not wanted.asks[user, turn] else THINGS[thing]
            ) in text
            if wanted.asks[user, turn]:
                before = held.get(thing, [])
                asked, told, changed = asked + 1, told + bool(before), changed + (len(before) > 1)
                assert text.endswith("?")
                detours += by_name
                assert not by_name or (before and words["owner"] in named)
                assert wanted.code[user, turn] == (before[-1] if before else -1)
                assert wanted.before[user, turn] == (before[-2] if len(before) > 1 else -1)
            else:
                assert not by_name or words["owner"] in named  # before a code under that name
                held.setdefault(thing, []).extend(codes_in(text))
                assert wanted.code[user, turn] == held[thing][-1]
        assert all(code // N_CODES == thing for thing, each in held.items() for code in each)
    assert asked == len(USERS) * WEEKS * HABITS.asks_per_week
    assert 0.4 < told / asked < 0.8  # 85 % of things are told, half a run late at most
    assert 0.1 < changed / told < 0.35
    assert 0.12 < detours / told < 0.28


def test_answerable_counts_earlier_messages_that_state_what_is_right() -> None:
    events, wanted = stream(HABITS, key(3, USERS), USERS, WEEKS)
    for user in range(5):
        for turn in range(events.n[user]):
            same = events.truth.type[user, :turn] == events.truth.type[user, turn]
            assert events.truth.answerable[user, turn] == same.sum()
    assert set(np.unique(events.truth.intent)) <= {-1, *range(len(THINGS))}
    assert (wanted.thing == events.truth.intent).all()


def test_a_users_events_are_the_same_in_any_company() -> None:
    world = Told(12, 5, 0.15, 0.35, 0.2, 0.3, 0.7)
    together = world.begin(3, USERS, WEEKS)
    alone = world.begin(3, USERS[17:18], WEEKS)
    n = int(alone.events.n[0])
    assert n == together.events.n[17] == world.count(3, USERS[17:18], WEEKS)[0]
    for name in ("time", "text", "number"):
        assert (getattr(alone.events, name)[0] == getattr(together.events, name)[17, :n]).all()
    assert (together.events.text[17, :n] != together.events.text[18, :n]).any()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"never_told": 1.5}, "simulator.never_told=1.5 must lie in"),
        ({"changes": -0.1}, "simulator.changes=-0.1 must lie in"),
        ({"detours": 2}, "simulator.detours=2 must lie in"),
        ({"things": 31}, "simulator.things=31 must be 1 to 30"),
        ({"asks_per_week": 0}, "simulator.asks_per_week=0 must be 1 to 1000"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(changes: dict[str, float], says: str) -> None:
    given = {"things": 12, "asks_per_week": 5, "never_told": 0.15, "changes": 0.35, "detours": 0.2}
    given |= {"rated": 0.3, "accepts": 0.7}
    with pytest.raises(UsageError, match=says):
        Told(**{**given, **changes})  # type: ignore[arg-type]
