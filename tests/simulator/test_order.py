"""The order control: the same requests at the same times, with no structure in time."""

from dataclasses import fields, replace

import numpy as np
import pytest

from skg_bench.core.world import RIGHT, Events, Truth
from skg_bench.simulator.answers.judging import Users
from tests.simulator.users import assistant, real

USERS = np.arange(40, dtype=np.int32)


@pytest.fixture(scope="module")
def ordered() -> Events:
    """40 users, eight weeks."""
    return assistant().population(3, USERS, 8)


@pytest.fixture(scope="module")
def permuted() -> Events:
    """The same users, their requests permuted."""
    return assistant(order="permuted").population(3, USERS, 8)


@pytest.mark.req("P31")
def test_requests_move_with_their_number_text_and_truth_and_times_stay(ordered: Events, permuted: Events) -> None:
    assert np.array_equal(permuted.time, ordered.time)
    assert np.array_equal(permuted.n, ordered.n)
    for u, n in enumerate(ordered.n):
        number = permuted.number[u, :n]
        assert np.array_equal(np.sort(number), np.arange(n))
        assert (number != np.arange(n)).mean() > 0.8
        assert np.array_equal(permuted.text[u, :n], ordered.text[u, number])
        for name in ("type", "intent", "used_up"):
            assert np.array_equal(getattr(permuted.truth, name)[u, :n], getattr(ordered.truth, name)[u, number])


def test_in_time_an_event_has_the_number_of_its_turn(ordered: Events) -> None:
    assert (ordered.number == np.arange(ordered.time.shape[1])).all()
    assert ordered.number.dtype == np.int32


def test_padding_stays_at_the_end(permuted: Events) -> None:
    assert (permuted.truth.type[~real(permuted)] == -1).all()
    assert (permuted.text[~real(permuted)] == 0).all()


def test_a_users_order_does_not_depend_on_who_else_is_asked_for(permuted: Events) -> None:
    few = assistant(order="permuted").population(3, np.array([31, 2], np.int32), 8)
    for row, user in enumerate((31, 2)):
        n = few.n[row]
        for name in ("number", "text", "time"):
            assert np.array_equal(getattr(few, name)[row, :n], getattr(permuted, name)[user, :n])
        for f in fields(Truth):
            assert np.array_equal(getattr(few.truth, f.name)[row, :n], getattr(permuted.truth, f.name)[user, :n])
    assert not np.array_equal(permuted.number[0, :50], permuted.number[1, :50])


@pytest.mark.parametrize("stale_hours", [None, 30.0])
def test_what_can_be_answered_is_counted_in_the_new_order(stale_hours: float | None) -> None:
    simulator = assistant(order="permuted", answers_stale_hours=stale_hours)
    made, some = simulator.population(1, USERS[:6], 6), 0
    users = Users.of(made)
    for u, n in enumerate(made.n):
        row, number = np.array([u]), made.number[u, :n]
        right = [simulator.judge(users, made.at(t), row, number, "rightly") == RIGHT for t in range(n)]
        expected = np.tril(np.stack(right), -1).sum(axis=1)
        assert np.array_equal(made.truth.answerable[u, :n], expected)
        some += expected.sum()
    assert some > 0


@pytest.mark.req("P31")
def test_what_was_just_asked_says_nothing_of_what_comes_next_when_permuted(ordered: Events, permuted: Events) -> None:
    """In time, the request before is of the same type more often than one at random; permuted, it is not."""

    def same_as_before(events: Events) -> float:
        types = [t[:n][t[:n] >= 0] for t, n in zip(events.truth.type, events.n, strict=True)]
        return float(np.mean([(t[1:] == t[:-1]).mean() for t in types]))

    counts = [np.bincount(t[:n][t[:n] >= 0]) for t, n in zip(ordered.truth.type, ordered.n, strict=True)]
    by_chance = float(np.mean([c @ (c - 1) / (c.sum() * (c.sum() - 1)) for c in counts]))
    assert same_as_before(ordered) > 1.3 * by_chance
    assert abs(same_as_before(permuted) - by_chance) < 0.15 * by_chance


def test_the_order_is_the_only_difference_between_the_two() -> None:
    time = assistant()
    assert replace(time, order="permuted") == assistant(order="permuted")
