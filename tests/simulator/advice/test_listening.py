"""Whether shoppers listen, what they do then, and what it is worth to them."""

from itertools import product

import numpy as np
import pytest

from skg_bench.core.world import RIGHT, Response, Silence
from skg_bench.simulator.advice.guardian import Guardian
from skg_bench.simulator.advice.levels import (
    ABANDONED,
    ACCEPTED,
    ANALYST,
    AUTO_APPROVED,
    NEGOTIATOR,
    OUTCOME,
    OVERRIDDEN,
    THERAPIST,
    WAIT,
)
from skg_bench.simulator.advice.listening import PriceList
from tests.simulator.advice.shoppers import advised, guardian, shoppers

USERS = 20_000
DAY = 86_400
PRICES = PriceList(blocked=0.8, interrupt=0.1, saving=0.3)
WORTHS = {  # outcome, tier, wanted -> worth
    (ACCEPTED, THERAPIST, False): 0.9, (ACCEPTED, THERAPIST, True): -0.9,
    (ACCEPTED, NEGOTIATOR, False): 0.2, (ACCEPTED, NEGOTIATOR, True): 0.2,
    (WAIT, NEGOTIATOR, False): 0.9, (ABANDONED, NEGOTIATOR, True): -0.9,
    (OVERRIDDEN, THERAPIST, True): -0.1, (OVERRIDDEN, NEGOTIATOR, False): -0.1,
    (AUTO_APPROVED, ANALYST, True): 0.0, (AUTO_APPROVED, ANALYST, False): 0.0,
}  # fmt: skip


def response(world: Guardian, about: int, *, sound: bool = True) -> Response:
    """What many users do at their first trigger."""
    return advised(world, shoppers(world, USERS, 1), 0, about, sound=sound)[0]


def listened(given: Response) -> np.ndarray:
    """Who of those who were stopped listened."""
    some: np.ndarray = (given.outcome.outcome != OVERRIDDEN)[(given.outcome.tier != ANALYST)]
    return some


@pytest.mark.parametrize(("outcome", "worth"), WORTHS.items())
def test_outcomes_are_worth_what_the_prices_say(outcome: tuple[int, int, bool], worth: float) -> None:
    code, tier, wanted = outcome
    given = PRICES.of(np.array([code], np.int32), np.array([tier], np.int32), np.array([wanted]))
    assert given[0] == pytest.approx(worth, abs=1e-5)


@pytest.mark.parametrize("about", [-1, 0, 1, 2])
def test_the_expected_worth_is_the_mean_of_what_comes(about: int) -> None:
    outcome = response(guardian(), about).outcome
    for tier, wanted in product((NEGOTIATOR, THERAPIST), (True, False)):
        some = (outcome.tier == tier) & (outcome.wanted == wanted)
        error = 4 * outcome.worth[some].std() / some.sum() ** 0.5
        assert outcome.worth[some].mean() == pytest.approx(outcome.worth_expected[some].mean(), abs=error)
        assert error < 0.08


def test_nothing_is_said_where_the_analyst_approves() -> None:
    given = response(guardian(), 1)
    outcome = given.outcome
    silent = outcome.tier == ANALYST
    assert isinstance(given.case, Silence)
    assert np.array_equal(given.case.unspoken, silent)
    assert np.array_equal(silent, outcome.outcome == AUTO_APPROVED)
    assert (outcome.worth[silent] == 0).all()
    assert (outcome.worth_best[silent] == 0).all()
    assert np.array_equal((given.quality == RIGHT)[silent], outcome.wanted[silent])


@pytest.mark.req("P03")
def test_kinds_persuade_by_what_they_are_where_they_fit_and_who_is_asked() -> None:
    logits = [
        world.events(shoppers(world, 2000, 1), 0).logits[:, :3].std(axis=0).mean()
        for world in (
            guardian(fits=0, liking=0, liking_here=0, discerns=0),
            guardian(liking=0, liking_here=0, discerns=0),
            guardian(liking_here=0, discerns=0),
            guardian(discerns=0),
        )
    ]
    assert logits[0] == pytest.approx(0, abs=1e-12)
    assert (np.diff(logits) > 0.02).all()


@pytest.mark.req("P04")
def test_the_generic_question_is_overridden_most() -> None:
    shares = [listened(response(guardian(), about)).mean() for about in (-1, 0, 1, 2)]
    assert shares[0] == pytest.approx(0.3, abs=0.02)
    unwanted = [listened(response(guardian(wanted_share=0), about)).mean() for about in (-1, 0, 1, 2)]
    assert unwanted[0] < min(unwanted[1:]) - 0.03


def test_a_badly_made_text_persuades_less() -> None:
    good, bad = (listened(response(guardian(), 1, sound=sound)) for sound in (True, False))
    assert bad.mean() < good.mean() - 0.1
    assert not (bad & ~good).any()  # nobody listens to it who would not have listened to a good one


def test_a_kind_that_discerns_holds_back_less_of_what_is_wanted() -> None:
    def blocked(discerns: float) -> float:
        given = response(guardian(discerns=discerns), 1)
        outcome = given.outcome
        return float((outcome.outcome[outcome.wanted & (given.outcome.tier != ANALYST)] != OVERRIDDEN).mean())

    assert blocked(2.0) < blocked(0.0) - 0.2


def test_outcomes_are_known_at_once_and_a_wait_a_day_later() -> None:
    given = response(guardian(), 1)
    outcome, rows = given.outcome, given.feedback.rows(given.feedback.kind == OUTCOME)
    assert np.array_equal(rows.row, np.arange(USERS))
    assert np.array_equal(rows.value, outcome.outcome)
    assert np.array_equal(rows.delay, np.where(outcome.outcome == WAIT, DAY, 0))


def test_nothing_that_can_be_said_is_better_than_the_best() -> None:
    world = guardian()
    state = shoppers(world, 500, 1)
    event = world.events(state, 0)
    every = np.tile(np.arange(-1, 3, dtype=np.int32), (500, 1))
    sound = np.ones(every.shape, np.bool_)
    good, bad = world.worth(state, event, every, sound), world.worth(state, event, every, ~sound)
    outcome = advised(world, state, 0, 2, fresh=True)[0].outcome
    assert np.array_equal(np.maximum(good, np.where(every < 0, -9, bad)).max(axis=1), outcome.worth_best)
    assert np.array_equal(good[:, 3], outcome.worth_fresh)
    assert (bad[:, 1:].max(axis=1) > good[:, 1:].max(axis=1))[outcome.wanted].any()  # it persuades less
