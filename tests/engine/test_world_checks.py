"""Worlds whose events are not each user's own, or whose responses mean nothing, are refused with what is valid."""

from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from skg_bench.core.domain import ANSWERS, Domain, outcome_field, outcome_fields
from skg_bench.core.errors import RowError, UsageError
from skg_bench.core.feedback import Feedback
from skg_bench.core.grid import F64, I32
from skg_bench.core.world import NEAR, RIGHT, WRONG, Response
from skg_bench.engine.world_checks import check_events, check_world_response
from tests.laws import world
from tests.laws.worlds_apart import Front


@dataclass(frozen=True)
class Errand:
    """An outcome."""

    minutes: F64 = outcome_field("until it is there")


ERRANDS = Domain("errands", outcome=outcome_fields(Errand))


def feedback(row: int, delay: int = 0) -> Feedback:
    """One rating."""
    return Feedback(np.array([row]), np.zeros(1, np.int32), np.zeros(1, np.int32), np.array([delay]))


def response(quality: Any = (RIGHT, NEAR, WRONG), answer: Any = (0, 1, -1), **more: Any) -> Response:
    """A response to three users."""
    arrays = [np.array(each, np.int32) if isinstance(each, tuple) else each for each in (quality, answer)]
    return Response(cast(Any, arrays[0]), cast(Any, arrays[1]), more.pop("feedback", feedback(2)), **more)


def test_a_response_that_means_something_is_taken() -> None:
    check_world_response(ANSWERS, response(), 2, 3)
    check_world_response(ERRANDS, response(outcome=Errand(np.zeros(3))), 2, 3)


@pytest.mark.parametrize(
    ("given", "says"),
    [(response(np.array([True, False, True])), r"Response has quality: an array \[3\] of bool, answer: an array \[3\]"),
     (response(np.ones(3)), r"an array \[3\] of float64"), (response([2, 2, 2]), r"quality: a list"),
     (response((2, 2)), r"quality: an array \[2\] of int32"),
     (response((2, 7, 2)), r"Response has quality 7 and answer 1; valid are -2 to 2"),
     (response(answer=(0, 2, -1)), r"and answer 2; valid are .* handles up to 1, or -1"),
     (response(feedback=feedback(-1)), r"Response\.feedback has row -1 and delay 0; valid are rows from 0 to 2"),
     (response(feedback=feedback(3)), r"has row 3 and"), (response(feedback=feedback(0, -5)), r"delay -5; valid are")],
)  # fmt: skip
def test_a_response_that_means_nothing_is_refused(given: Response, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_world_response(ANSWERS, given, 2, 3)


def test_a_quality_is_refused_for_its_user() -> None:
    with pytest.raises(RowError) as caught:
        check_world_response(ANSWERS, response((2, 7, 2)), 2, 3)
    assert (caught.value.row, caught.value.component) == (1, "the world of domain 'answers'")


def test_an_outcome_that_is_declared_is_given() -> None:
    with pytest.raises(UsageError, match=r"Response\.outcome is None, and the domain has minutes; give one"):
        check_world_response(ERRANDS, response(), 2, 3)


# -------------------------------------------------------------------------------------------------------- events


@dataclass(frozen=True)
class Timetable:
    """A world of which only the events are asked for."""

    beside: int = 0  # added to texts for each user who is there
    luck: int = 0  # added to them at each time that users begin
    step: int = 1  # from one number to the next
    domain: Domain = ANSWERS

    def count(self, _seed: int, users: I32, _weeks: int) -> I32:
        return np.array([3, 5, 0], np.int32)[users]

    def begin(self, _seed: int, users: I32, _weeks: int) -> Any:
        return users, len(users) * self.beside + self.luck * int(np.random.default_rng().integers(2**30))

    def events(self, state: Any, turn: int) -> Any:
        users, more = state
        columns = dict.fromkeys(("time", "type"), users * 100 + turn)
        return SimpleNamespace(text=users + more, number=np.full(len(users), turn * self.step), **columns)


@pytest.mark.parametrize(
    ("made", "says"),
    [(Timetable(), ""), (Timetable(beside=1), r"user 0 has another event at turn 0 if begun alone \(text 1\) than"),
     (Timetable(luck=1), r"user 0 has another event at turn 0"),
     (Timetable(step=0), r"user 0 has the event number 0 twice, at turn 1 again")],
)  # fmt: skip
def test_events_are_each_users_own(made: Timetable, says: str) -> None:
    plan = cast(Any, SimpleNamespace(simulator=made, salted=0, weeks=1, users=3))
    if not says:
        check_events(plan)
        return
    with pytest.raises(UsageError, match=says):
        check_events(plan)


@dataclass
class Sorted(Front):
    """Takes right or wrong for a quality."""

    def respond(self, *values: Any) -> Any:
        state, given = self.world.respond(*values)
        return state, replace(given, quality=given.quality == RIGHT)


@dataclass
class Backwards(Front):
    """Turns the clock back a week at each turn."""

    def events(self, state: Any, turn: int) -> Any:
        event = self.world.events(state, turn)
        return replace(event, time=event.time - turn * 7 * 24 * 3600)


@pytest.mark.parametrize(
    ("front", "says"),
    [(Sorted, r"the world of domain 'answers': Response has quality: an array \[\d+\] of bool"),
     (Backwards, r"the world of domain 'answers' of arm 'never', user \d+, turn 1: brings an event \d+ s before")],
)  # fmt: skip
def test_a_run_in_such_a_world_is_refused(tmp_path: Path, front: type[Front], says: str) -> None:
    made = world.plan(6, ("never",))
    with pytest.raises(UsageError, match=says):
        world.carry_out(replace(made, simulator=cast(Any, front(made.simulator))), tmp_path / "run", 6, 1000)


@pytest.mark.parametrize(
    ("minutes", "says"),
    [(np.zeros(2), r"outcome\.minutes is an array \[2\] of float64; valid is an array \[3\] of numbers"),
     ([1.0, 2.0, 3.0], r"outcome\.minutes is a list"),
     (np.array(["a", "b", "c"]), r"outcome\.minutes is an array \[3\] of <U1"),
     (np.array([1.0, np.inf, 3.0]), r"outcome\.minutes is infinite; valid are numbers, and NaN: none")],
)  # fmt: skip
def test_fields_of_an_outcome_are_numbers_of_all_users(minutes: Any, says: str) -> None:
    """Too few ended in a traceback of the log; an infinite one was a dash in every table."""
    with pytest.raises(UsageError, match=says):
        check_world_response(ERRANDS, response(outcome=Errand(minutes)), 2, 3)
