"""What users tell, and what their requests need because of it."""

import numpy as np
import pytest

from skg_bench.core.calendar import DAY
from skg_bench.core.draws import key
from skg_bench.simulator.facts.ledger import draw_tellings, first_needs, pair_requests
from skg_bench.simulator.facts.table import CHANGES, ENDS, TELLING
from skg_bench.simulator.facts.world import FactUsers
from tests.simulator.facts.fact_runs import habits, world

SEED, WEEKS, USERS = 3, 8, np.arange(40, dtype=np.int32)
EVERYTHING = ("simulator.never_told=0", "simulator.facts_change=1", "simulator.facts_end=1", "simulator.told_twice=1")


def ledger(made: FactUsers):  # type: ignore[no-untyped-def]
    events, keys, horizon = made.users.population(SEED, USERS, WEEKS), key(SEED, USERS), WEEKS * 7 * DAY
    pairs = pair_requests(made.catalogue, made.asks_for_two, keys, events, horizon)
    return events, pairs, draw_tellings(made.catalogue, made._shares, keys, events, pairs, horizon)


@pytest.fixture(scope="module")
def usual() -> FactUsers:
    return world(*habits("simulator.users"))


def test_requests_stay_as_they_are_and_tellings_come_between_them(usual: FactUsers) -> None:
    before, state = usual.users.population(SEED, USERS, WEEKS), usual.begin(SEED, USERS, WEEKS)
    events = state.users.events
    assert (usual.count(SEED, USERS, WEEKS) == events.n).all()
    assert (events.n > before.n).mean() > 0.9
    for row, n in enumerate(before.n):
        number = events.number[row, : events.n[row]]
        assert sorted(number) == list(range(events.n[row]))
        assert (np.diff(events.time[row, : events.n[row]]) >= 0).all()
        own = number < n
        assert np.array_equal(number[own], before.number[row, :n])
        assert np.array_equal(events.text[row, : events.n[row]][own], before.text[row, :n])
        assert np.array_equal(events.time[row, : events.n[row]][own], before.time[row, :n])


def test_users_are_the_same_whoever_else_is_asked_for(usual: FactUsers) -> None:
    every, some = usual.begin(SEED, USERS, WEEKS), usual.begin(SEED, USERS[7:9], WEEKS)
    width = some.users.events.number.shape[1]
    for name in ("number", "time", "text"):
        assert np.array_equal(getattr(every.users.events, name)[7:9, :width], getattr(some.users.events, name))


def test_a_request_wants_what_was_told_last_before_it(usual: FactUsers) -> None:
    made, state = usual, usual.begin(SEED, USERS, WEEKS)
    _, _, told = ledger(made)
    events, catalogue, compared = state.users.events, made.catalogue, 0
    for row in range(len(USERS)):
        for turn in range(events.n[row]):
            number, time = events.number[row, turn], events.time[row, turn]
            if state.needs.knower[row, number] == TELLING:
                continue
            for place, fact in enumerate(state.needs.thing[row, number]):
                mine = (told.row == row) & (told.fact == fact) & (told.time < time)
                value = told.value[mine][-1] if fact >= 0 and mine.any() else -1
                wanted = state.needs.wanted[row, number, place]
                assert wanted == (-1 if fact < 0 else catalogue.value_type(np.array([fact]), np.array([value]))[0])
                compared += fact >= 0
    assert compared > 300


def test_facts_change_after_they_were_told_and_end_after_that() -> None:
    made = world(*EVERYTHING, *habits("simulator.users"))
    *_, told = ledger(made)
    user_and_fact = told.row * 1000 + told.fact
    assert (np.diff(user_and_fact * 2**30 + told.time) > 0).all()
    first = np.append(True, user_and_fact[1:] != user_and_fact[:-1])
    assert not np.isin(told.way[first], (CHANGES, ENDS)).any()
    at = np.flatnonzero(told.way == CHANGES)
    assert len(at) > 100
    assert (told.value[at] != told.value[at - 1]).all()
    end = np.flatnonzero(told.way == ENDS)
    assert (told.value[end] == -1).all()
    assert first[end[:-1] + 1].all()  # nothing comes after an end


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_a_share_of_facts_is_told_after_it_was_asked_for(share: float) -> None:
    made = world(
        f"simulator.asked_before_told={share}", "simulator.asks_for_two=0", "simulator.facts_change=0", *EVERYTHING[:1]
    )
    events, _, told = ledger(made)
    row, fact, first = first_needs(made.catalogue, events)
    asked = {(r, f): t for r, f, t in zip(row, fact, first, strict=True)}
    opens = np.append(True, np.diff(told.row * 1000 + told.fact) != 0)
    late = [told.time[i] > asked[told.row[i], told.fact[i]] for i in np.flatnonzero(opens)]
    assert len(late) > 100
    assert abs(np.mean(late) - share) < 0.12
