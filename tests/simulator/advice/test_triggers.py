"""Which purchases shoppers are about to make: by user, in order of time, and with a declared tier."""

import numpy as np
import pytest

from skg_bench.core.world import Events
from skg_bench.simulator.advice.levels import ANALYST, NEGOTIATOR, THERAPIST
from skg_bench.simulator.advice.people import Shoppers
from tests.simulator.advice.shoppers import BANDS, guardian, shoppers, table

USERS, WEEKS = 400, 20


def there(events: Events) -> np.ndarray:
    """Which places hold an event."""
    return np.arange(events.time.shape[1])[None] < events.n[:, None]


@pytest.fixture(scope="module")
def state() -> Shoppers:
    return shoppers(guardian(), USERS, WEEKS)


def test_events_are_counted_as_they_are_made_and_come_in_order_of_time(state: Shoppers) -> None:
    events = state.events
    assert np.array_equal(guardian().count(0, events.user, WEEKS), events.n)
    assert (np.diff(np.where(there(events), events.time, np.iinfo(np.int64).max), axis=1) >= 0).all()
    assert (events.n >= 1).all()
    assert np.median(events.n / WEEKS) == pytest.approx(5, rel=0.15)
    assert (np.diff(events.time, axis=1)[there(events)[:, 1:]] < 24 * 3600).mean() > 0.4  # several come together


def test_a_users_events_do_not_depend_on_who_else_is_asked_for(state: Shoppers) -> None:
    alone = guardian().begin(0, np.array([7], np.int32), WEEKS)
    n = int(alone.events.n[0])
    for name in ("time", "text"):
        assert np.array_equal(getattr(alone.events, name)[0], getattr(state.events, name)[7, :n])
    assert np.array_equal(alone.purchases.wanted[0], state.purchases.wanted[7, :n])
    assert np.array_equal(alone.liking[0], state.liking[7])


def test_a_trigger_says_what_its_event_is_about(state: Shoppers) -> None:
    triggers, mask = table().triggers, there(state.events)
    text, hour = state.events.text[mask], state.events.time[mask] // 3600 % 24
    assert np.array_equal(triggers.category[text] * 4 + triggers.time[text], state.purchases.context[mask])
    assert np.array_equal(np.searchsorted([11, 17, 22], hour, side="right"), triggers.time[text])
    assert len(np.unique(text)) == len(triggers.text)


@pytest.mark.req("P31")
def test_a_permuted_trigger_keeps_number_words_and_truth_and_gets_another_of_the_users_times(state: Shoppers) -> None:
    other = shoppers(guardian(order="permuted"), USERS, WEEKS)
    assert np.array_equal(other.events.time, state.events.time)
    for u, n in enumerate(state.events.n):
        number = other.events.number[u, :n]
        assert np.array_equal(np.sort(number), np.arange(n))
        assert np.array_equal(other.events.text[u, :n], state.events.text[u, number])
        for name in ("context", "tier", "wanted"):
            assert np.array_equal(getattr(other.purchases, name)[u, :n], getattr(state.purchases, name)[u, number])
    assert (other.events.number != state.events.number)[there(state.events)].mean() > 0.8


@pytest.mark.req("P02")
def test_the_tier_follows_from_price_and_hour_alone(state: Shoppers) -> None:
    triggers, mask = table().triggers, there(state.events)
    text = state.events.text[mask]
    risk = triggers.band[text] + 2 * (triggers.time[text] == 3)
    expected = np.select([risk < 1, risk >= 4], [ANALYST, THERAPIST], NEGOTIATOR)
    assert np.array_equal(expected, state.purchases.tier[mask])
    assert set(expected) == {ANALYST, NEGOTIATOR, THERAPIST}


def test_what_is_wanted_falls_with_the_price_and_late_at_night(state: Shoppers) -> None:
    triggers, mask = table().triggers, there(state.events)
    text, wanted = state.events.text[mask], state.purchases.wanted[mask]
    late, dear = triggers.time[text] == 3, triggers.band[text] >= BANDS // 2
    assert wanted[late].mean() < wanted[~late].mean() - 0.05
    assert wanted[dear].mean() < wanted[~dear].mean() - 0.02
    assert wanted.mean() == pytest.approx(0.4, abs=0.05)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_all_or_nothing_can_be_wanted(share: float) -> None:
    state = shoppers(guardian(wanted_share=share, wanted_spread=0, wanted_late=0, wanted_per_band=0), 50)
    assert state.purchases.wanted[there(state.events)].mean() == pytest.approx(share, abs=0.001)
