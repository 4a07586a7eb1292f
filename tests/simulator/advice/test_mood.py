"""Users remember what was said to them: kinds wear off, overriding annoys, and both fade."""

import numpy as np
import pytest

from skg_bench.core.grid import F64
from skg_bench.simulator.advice.guardian import Guardian
from skg_bench.simulator.advice.levels import ANALYST
from skg_bench.simulator.advice.outcome import Outcome
from skg_bench.simulator.advice.people import Fading
from tests.simulator.advice.shoppers import advised, guardian, shoppers

USERS = 300
HOUR, DAY = 3600, 86_400


def second(world: Guardian, first: int, then: int, *, fresh: bool = False) -> Outcome:
    """What comes of a second advice after a first one."""
    state = shoppers(world, USERS, 8)
    advised(world, state, 0, first)
    outcome: Outcome = advised(world, state, 1, then, fresh=fresh)[0].outcome
    return outcome


def wear(outcome: Outcome) -> F64:
    """What the mood costs of the expected worth of purchases that nobody wants, where something was said."""
    some = ~outcome.wanted & (outcome.tier != ANALYST)
    worn: F64 = (outcome.worth_fresh - outcome.worth_expected)[some]
    return worn


def test_a_kind_wears_off_with_each_use_and_others_do_not() -> None:
    world = guardian(annoyance=0)
    same, other = wear(second(world, 1, 1)), wear(second(world, 2, 1))
    assert same.mean() > 0.01
    assert (same >= 0).all()
    assert (other == 0).all()


def test_the_generic_question_wears_off_as_well() -> None:
    assert wear(second(guardian(annoyance=0), -1, -1)).mean() > 0.01


def test_overriding_annoys_whatever_is_said_next() -> None:
    world = guardian(habit=0, annoyance=0.5, persuades=-9, generic=-9)  # everybody overrides
    state = shoppers(world, USERS, 8)
    stopped = advised(world, state, 0, 1)[0].outcome
    assert stopped is not None
    later = world.events(state, 1).time
    taken = world._wear(state.mood, later, np.full(USERS, 2, np.int32))
    silent = stopped.tier == ANALYST
    assert (taken[~silent] > 0).all()
    assert (taken[silent] == 0).all()


def test_with_a_fresh_mood_nothing_is_remembered() -> None:
    for outcome in (second(guardian(), 1, 1, fresh=True), second(guardian(habit=0, annoyance=0), 1, 1)):
        assert np.array_equal(outcome.worth_fresh, outcome.worth_expected)


def test_silence_leaves_no_trace() -> None:
    world = guardian(habit=1)
    state = shoppers(world, USERS, 8)
    approved = world.events(state, 0).tier == ANALYST
    advised(world, state, 0, 1)
    assert approved.any()
    assert (state.mood.heard[approved] == 0).all()
    assert (state.mood.heard[~approved, 1] == 1).all()


@pytest.mark.parametrize(("days", "share"), [(0, 1.0), (7, 0.5), (14, 0.25), (10_000, 0.0)])
def test_what_is_remembered_halves_in_a_half_life(days: int, share: float) -> None:
    left = Fading.of(7).left(np.ones(1), np.zeros(1, np.int64), np.array([days * DAY]))
    assert left[0] == pytest.approx(share, abs=2**-16)


def test_forgetting_goes_hour_by_hour() -> None:
    fading = Fading.of(1)
    now = np.array([0, HOUR - 1, HOUR, 25 * HOUR])
    left = fading.left(np.ones(4), np.zeros(4, np.int64), now)
    assert left[0] == left[1] > left[2] > left[3]


def test_a_second_advice_adds_to_what_is_left_of_the_first() -> None:
    world = guardian(approve_below=0)
    state = shoppers(world, USERS, 8)
    advised(world, state, 0, 1)
    gap = world.events(state, 1).time - world.events(state, 0).time
    advised(world, state, 1, 1)
    expected = 1 + Fading.of(7).left(np.ones(USERS), np.zeros(USERS, np.int64), gap)
    assert np.array_equal(state.mood.heard[:, 1], expected)
