"""What comes of an answer: a model's is right by a draw, a stored one as it is judged; a model's is remembered."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.feedback import AGREES
from skg_bench.core.grid import I32, Bool
from skg_bench.core.world import FALLBACK, NEAR, PROMPTED, RIGHT, STORED, UNKNOWN, UNREAD, WRONG, Response, Served
from skg_bench.simulator.answers.judging import Users
from skg_bench.simulator.answers.world import AssistantUsers
from tests.core import samples
from tests.simulator.users import NOW, assistant, at, earlier_answers, moment, small_corpus

N = 40_000
EGG, PARIS_ZONE, OSAKA_ZONE, ONE_OFF = 0, 1, 2, -1
BEHIND = np.array([EGG, PARIS_ZONE, OSAKA_ZONE, ONE_OFF], np.int32)  # types of the answers given before, by handle
NUMBER = len(BEHIND)  # of the event that comes now
RIGHTLY = np.ones(NUMBER + 1, np.bool_)
DRAWS = samples.draws(np.random.default_rng(0), N)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> AssistantUsers:
    return assistant(corpus=small_corpus(tmp_path_factory.mktemp("corpus")))


def responded(
    world: AssistantUsers,
    how: int,
    type_: int,
    ability: float,
    answer: int = -1,
    compared: int = -1,
    right: Bool = RIGHTLY,
    if_misled: float = 0.0,
) -> tuple[Users, Response]:
    """The same answer to N users."""
    event = moment(all_of(type_), number=NUMBER)
    before = earlier_answers(N, np.append(BEHIND, -1).astype(np.int32), right, np.full(NUMBER + 1, 60))
    served = Served(
        all_of(how),
        all_of(answer),
        np.full(N, ability),
        np.full(N, if_misled),
        all_of(compared),
        UNREAD,
        all_of(answer)[:, None],
    )
    return world.respond(at(event, before), event, served, DRAWS)


def all_of(value: int) -> I32:
    return np.full(N, value, np.int32)


@pytest.mark.parametrize("ability", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize(("how", "answer"), [(FALLBACK, -1), (PROMPTED, EGG)])
def test_a_model_is_right_as_often_as_it_is_able(world: AssistantUsers, ability: float, how: int, answer: int) -> None:
    quality = responded(world, how, EGG, ability, answer)[1].quality
    assert set(quality.tolist()) <= {WRONG, RIGHT}
    assert abs((quality == RIGHT).mean() - ability) <= 4.5 * np.sqrt(ability * (1 - ability) / N)


@settings(deadline=None, max_examples=30)
@given(first=st.floats(0, 1), other=st.floats(0, 1), how=st.sampled_from([FALLBACK, PROMPTED]))
def test_a_better_model_is_right_wherever_a_worse_one_is(
    world: AssistantUsers, first: float, other: float, how: int
) -> None:
    low, high = sorted((first, other))
    worse, better = (responded(world, how, EGG, ability, EGG)[1].quality == RIGHT for ability in (low, high))
    assert (better | ~worse).all()


def test_a_prompt_helps_with_requests_of_its_intent_alone(world: AssistantUsers) -> None:
    """A skill's prompt holds no answer: other slot values, and a wrong answer at its source, do no harm."""
    same = responded(world, PROMPTED, PARIS_ZONE, 0.6, PARIS_ZONE)[1].quality
    assert np.array_equal(responded(world, PROMPTED, PARIS_ZONE, 0.6, OSAKA_ZONE)[1].quality, same)
    assert np.array_equal(responded(world, PROMPTED, PARIS_ZONE, 0.6, PARIS_ZONE, right=~RIGHTLY)[1].quality, same)
    for type_, answer in ((PARIS_ZONE, EGG), (ONE_OFF, EGG), (ONE_OFF, 3), (EGG, 3), (EGG, -1)):
        for able in (0.0, 0.4, 1.0):
            quality = responded(world, PROMPTED, type_, 1.0, answer, if_misled=able)[1].quality
            assert np.array_equal(quality == RIGHT, DRAWS.skill_right < able)


def test_where_nobody_knows_how_able_a_model_is_its_answers_are_unknown_and_not_remembered_as_right(
    world: AssistantUsers,
) -> None:
    for how, answer in ((FALLBACK, -1), (PROMPTED, EGG)):
        users, response = responded(world, how, EGG, float("nan"), answer)
        assert (response.quality == UNKNOWN).all()
        assert not users.ledger.right[:, NUMBER].any()
        assert not len(response.feedback.row)


@pytest.mark.parametrize(("how", "answer"), [(FALLBACK, -1), (PROMPTED, EGG)])
def test_the_answer_of_a_model_is_remembered_under_the_number_of_its_event(
    world: AssistantUsers, how: int, answer: int
) -> None:
    users, response = responded(world, how, EGG, 0.5, answer)
    assert (response.answer == NUMBER).all()
    assert (users.ledger.type[:, NUMBER] == EGG).all()
    assert (users.ledger.time[:, NUMBER] == NOW).all()
    assert np.array_equal(users.ledger.right[:, NUMBER], response.quality == RIGHT)
    assert 0.4 < users.ledger.right[:, NUMBER].mean() < 0.6
    assert users.ledger.right[:, :NUMBER].all()


def test_a_stored_answer_is_given_as_it_is(world: AssistantUsers) -> None:
    """Whatever the model is able to: none is called."""
    for type_, answer, right, quality in (
        (PARIS_ZONE, PARIS_ZONE, RIGHTLY, RIGHT),
        (PARIS_ZONE, OSAKA_ZONE, RIGHTLY, NEAR),
        (EGG, OSAKA_ZONE, RIGHTLY, WRONG),
        (EGG, EGG, ~RIGHTLY, WRONG),
    ):
        for ability in (0.0, 1.0, float("nan")):
            users, response = responded(world, STORED, type_, ability, answer, right=right)
            assert (response.quality == quality).all()
            assert (response.answer == answer).all()
            assert (users.ledger.type[:, NUMBER] == -1).all()
            assert (users.ledger.right == right).all()


def test_answers_agree_if_both_are_right(world: AssistantUsers) -> None:
    for compared, right, agrees in ((EGG, RIGHTLY, True), (EGG, ~RIGHTLY, False), (OSAKA_ZONE, RIGHTLY, False)):
        response = responded(world, FALLBACK, EGG, 0.5, compared=compared, right=right)[1]
        same = (response.quality == RIGHT) & agrees
        assert np.array_equal(response.feedback.of_kind(AGREES, N), same)
    unasked = responded(world, FALLBACK, EGG, 0.5)[1].feedback
    assert not (unasked.kind == AGREES).any()
    assert len(unasked.row)
