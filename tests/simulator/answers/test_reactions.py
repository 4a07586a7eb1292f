"""What users do after an answer: whether it was right, what they say of it, and how they take an offer."""

from dataclasses import fields, replace
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I32
from skg_bench.core.state import rows
from skg_bench.core.types import RATINGS
from skg_bench.core.world import NEAR, OFFERS, RIGHT, UNKNOWN, WRONG, Draws, Ledger, Supposing
from skg_bench.simulator.answers.reactions import Reactions
from skg_bench.simulator.answers.world import AssistantUsers
from tests.core import samples
from tests.simulator.users import DAY, HOUR, assistant, at, earlier_answers, judged, moment, rated, small_corpus

ACCEPTED, BADLY_NAMED, DECLINED = range(3)
N = 200_000


@pytest.fixture(scope="module")
def draws() -> Draws:
    return samples.draws(np.random.default_rng(0), N)


# ---------------------------------------------------------------------------------------------------- judge

EGG, PARIS_ZONE, OSAKA_ZONE, PARIS_RAIN, OSAKA_RAIN, NEWS, ONE_OFF = 0, 1, 2, 3, 4, 5, -1
TABLE = [  # the event's type, the stored answer's type, whether that was right, its age, quality
    (EGG, EGG, True, 0, RIGHT),
    (EGG, EGG, True, 500 * DAY, RIGHT),  # stable: for ever
    (EGG, EGG, False, 0, WRONG),  # a captured wrong answer stays wrong
    (EGG, PARIS_ZONE, True, 0, WRONG),
    (PARIS_ZONE, PARIS_ZONE, True, 500 * DAY, RIGHT),
    (PARIS_ZONE, OSAKA_ZONE, True, 0, NEAR),  # other slot values
    (PARIS_ZONE, OSAKA_ZONE, False, 0, WRONG),
    (PARIS_RAIN, PARIS_RAIN, True, 3 * HOUR - 1, RIGHT),  # younger than its time to live
    (PARIS_RAIN, PARIS_RAIN, True, 3 * HOUR, NEAR),
    (PARIS_RAIN, OSAKA_RAIN, True, 60, NEAR),
    (PARIS_RAIN, PARIS_RAIN, False, 60, WRONG),
    (NEWS, NEWS, True, HOUR // 2 - 1, RIGHT),
    (NEWS, NEWS, True, HOUR // 2, NEAR),
    (NEWS, EGG, True, 0, WRONG),
    (ONE_OFF, ONE_OFF, True, 0, WRONG),  # in other words: two one-offs have nothing in common
    (ONE_OFF, EGG, True, 0, WRONG),
    (EGG, ONE_OFF, True, 0, WRONG),
]


def test_a_stored_answer_is_judged_by_intent_slots_age_and_rightness(tmp_path: Path) -> None:
    world = assistant(corpus=small_corpus(tmp_path))
    event, source, right, age, quality = (np.array(c) for c in zip(*TABLE, strict=True))
    square = judged(world, event.astype(np.int32), source.astype(np.int32), right, age)
    assert square.shape == (len(TABLE), len(TABLE))
    assert square.diagonal().tolist() == quality.tolist()
    supposed = judged(world, event.astype(np.int32), source.astype(np.int32), right, age, "rightly")
    assert np.array_equal(supposed, judged(world, event.astype(np.int32), source.astype(np.int32), right | True, age))
    fresh = judged(world, event.astype(np.int32), source.astype(np.int32), right, age, "rightly now")
    assert np.array_equal(fresh, judged(world, event.astype(np.int32), source.astype(np.int32), right | True, 0 * age))


def test_a_one_off_that_comes_again_is_answered_by_its_own_answer_if_that_was_right(tmp_path: Path) -> None:
    world = assistant(corpus=small_corpus(tmp_path))
    none = np.full(4, ONE_OFF, np.int32)
    said, right = np.array([7, 7, 8, 8], np.int32), np.array([True, False, True, False])
    event = moment(none[:1], text=7)
    users = at(event, earlier_answers(1, none, right, np.array([0, 0, 0, 0]), said))
    row, handles = np.zeros((1, 1), np.int64), np.arange(4, dtype=np.int32)
    assert world.judge(users, event, row, handles).tolist() == [[RIGHT, WRONG, WRONG, WRONG]]
    assert world.judge(users, event, row, handles, "rightly").tolist() == [[RIGHT, RIGHT, WRONG, WRONG]]


def test_the_text_of_an_act_does_nothing(tmp_path: Path) -> None:
    """It is about the request, so that its prompt helps, and it is no answer, however fresh."""
    folder = tmp_path
    small_corpus(folder)
    file = next((folder / "intents").glob("*.yaml"))
    rows = yaml.safe_load(file.read_text())
    rows["intents"][0]["effect"] = "act"
    file.write_text(yaml.safe_dump(rows))
    egg, now = np.array([EGG], np.int32), np.array([0])
    for hours in (None, 100.0):
        world = assistant(corpus=str(folder), answers_stale_hours=hours)
        for supposing in get_args(Supposing):
            assert judged(world, egg, egg, egg == EGG, now, supposing).tolist() == [[NEAR]]
        made = world.population(0, np.arange(9, dtype=np.int32), 4)
        assert (made.truth.answerable[made.truth.type == EGG] == 0).all()
        assert made.truth.answerable.any()


def test_no_answer_is_wrong_whatever_is_asked(tmp_path: Path) -> None:
    """The handle -1 would find the last answer, which is right."""
    world, event = assistant(corpus=small_corpus(tmp_path)), moment(np.array([EGG, ONE_OFF], np.int32))
    egg = np.array([EGG], np.int32)
    users, none = at(event, earlier_answers(2, egg, egg == EGG, egg.astype(np.int64))), np.full(2, -1, np.int32)
    assert world.judge(users, event, np.arange(2), none + 1).tolist() == [RIGHT, WRONG]
    for supposing in get_args(Supposing):
        assert world.judge(users, event, np.arange(2), none, supposing).tolist() == [WRONG, WRONG]


def test_every_answer_can_be_made_to_expire(tmp_path: Path) -> None:
    world = assistant(corpus=small_corpus(tmp_path), answers_stale_hours=1.0)
    egg = np.zeros(3, np.int32)
    assert judged(world, egg[:1], egg, egg == 0, np.array([0, HOUR - 1, HOUR])).tolist() == [[RIGHT, RIGHT, NEAR]]
    never = replace(world, answers_stale_hours=0.0)
    assert judged(never, egg[:1], egg, egg == 0, np.array([0, 1, 2])).tolist() == [[NEAR] * 3]


# ---------------------------------------------------------------------------------------------------- rate


@pytest.mark.req("K15")
@pytest.mark.parametrize(("quality", "row"), [(RIGHT, "right"), (NEAR, "near"), (WRONG, "wrong")])
def test_ratings_go_through_the_confusion_matrix(draws: Draws, quality: int, row: str) -> None:
    world = assistant(rated_share=1.0)
    ratings, _ = rated(world.reactions, np.full(N, quality, np.int32), draws)
    expected = np.array(getattr(world, f"rating_if_{row}")) * N
    assert stats.chisquare(np.bincount(ratings, minlength=3), expected).pvalue > 1e-4


@pytest.mark.req("K15", "K25")
def test_who_is_not_content_says_so_with_the_declared_odds(draws: Draws) -> None:
    """Missing not at random: the odds of rating at all depend on what would be said."""
    world, everyone = assistant(), assistant(rated_share=1.0)
    for quality in (WRONG, NEAR, RIGHT):
        q = np.full(N, quality, np.int32)
        (meant, _), (ratings, _) = (rated(users.reactions, q, draws) for users in (everyone, world))
        assert ((ratings == -1) | (ratings == meant)).all()
        for code, odds in enumerate((1.0, world.partial_odds, world.miss_odds)):
            base = world.rated_share * odds
            share, n = base / (1 - world.rated_share + base), int((meant == code).sum())
            z = ((ratings[meant == code] >= 0).sum() - share * n) / np.sqrt(share * (1 - share) * n)
            assert abs(z) < 4.5, (quality, RATINGS[code])


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32), st.floats(0, 1), st.floats(0.1, 10), st.floats(0.1, 10))
def test_a_better_answer_is_never_rated_worse_with_the_same_draws(
    seed: int, share: float, partial: float, miss: float
) -> None:
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.dirichlet([1, 1, 1], 3)[:, 2])[::-1]  # misses fall with quality, and so does miss + partial
    at_most = np.sort(rng.uniform(rows[0], 1, 3))[::-1]
    table = [[1 - a, a - m, m] for m, a in zip(rows, at_most, strict=True)]
    world = assistant(
        rating_if_wrong=table[0], rating_if_near=table[1], rating_if_right=table[2], rated_share=share,
        partial_odds=partial, miss_odds=miss,
    )  # fmt: skip
    draws = samples.draws(rng, 2000)
    said = [rated(world.reactions, np.full(2000, q, np.int32), draws) for q in (WRONG, NEAR, RIGHT)]
    for (worse, its_delay), (better, delay) in combinations(said, 2):
        both = (worse >= 0) & (better >= 0)
        assert (better[both] <= worse[both]).all()
        assert np.array_equal(delay[both], its_delay[both])


@pytest.mark.req("P27")
def test_some_ratings_come_later(draws: Draws) -> None:
    world, quality = assistant(rated_share=1.0), np.zeros(N, np.int32)
    _, delay = rated(world.reactions, quality, draws)
    late = delay > 0
    assert abs(late.mean() - world.late_share) < 4.5 * np.sqrt(0.16 / N)
    assert abs(delay[late].mean() / HOUR - world.late_hours) < 0.5
    assert stats.kstest(delay[late] / HOUR, "expon", (0, world.late_hours)).pvalue > 1e-4
    assert (rated(replace(world, late_share=0.0).reactions, quality, draws)[1] == 0).all()
    assert (rated(replace(world, late_share=1.0, late_hours=1e-9).reactions, quality, draws)[1] > 0).all()
    few, some = rated(assistant().reactions, quality, draws)  # who rates, rates as late as if all did
    assert np.array_equal(some, np.where(few >= 0, delay, 0))


def test_a_share_of_zero_or_one_is_taken_at_its_word(draws: Draws) -> None:
    quality = np.arange(N, dtype=np.int32) % 3
    assert (rated(assistant(rated_share=0.0).reactions, quality, draws)[0] == -1).all()
    assert (rated(assistant(rated_share=1.0).reactions, quality, draws)[0] >= 0).all()


def test_nobody_rates_an_answer_of_which_nobody_knows_whether_it_was_right(draws: Draws) -> None:
    assert (rated(assistant(rated_share=1.0).reactions, np.full(N, UNKNOWN, np.int32), draws)[0] == -1).all()


# ---------------------------------------------------------------------------------------------------- offers


def offered(
    world: AssistantUsers, draws: Draws, type_: int, fatigue: float = 0.0, idle: int = 0, text: int = 0
) -> tuple[I32, I32, F64]:
    """Code, name and new fatigue after the same offer to N users."""
    event = moment(np.full(N, type_, np.int32), text)
    tired, before = np.full(N, fatigue), np.full(N, idle, np.int64)
    users, reaction = world.offer(at(event, Ledger.blank(N, 1), tired, before), event, np.ones(N, np.bool_), draws)
    assert (users.last_offer == event.time).all()
    return reaction.code, reaction.name, users.fatigue


@pytest.mark.req("K17")
def test_offers_are_accepted_declined_or_badly_named_at_the_declared_rates(draws: Draws) -> None:
    world = assistant()
    first = int(world._corpus.one_offs[0])
    for type_, text, willing in ((7, 0, world.accept), (-1, first + 3, world.accept_one_off)):
        code, name, _ = offered(world, draws, type_, text=text)
        bad = willing * world.bad_name_share
        expected = np.array([willing - bad, bad, 1 - willing]) * N
        assert stats.chisquare(np.bincount(code, minlength=3), expected).pvalue > 1e-4
        assert (name[code == DECLINED] == -1).all()
        proper = 7 if type_ >= 0 else len(world.types) + 3
        assert (name[code == ACCEPTED] == proper).all()
        vague = [world.names[i] for i in np.unique(name[code == BADLY_NAMED])]
        assert vague == ["stuff", "the-usual", "question", "that-thing", "misc"]
    assert OFFERS == ("accepted", "badly_named", "declined")
    assert world.names[len(world.types) + 3] == " ".join(world.messages[first + 3].split()[:5])


@pytest.mark.req("K17")
def test_every_recent_offer_makes_the_next_less_welcome(draws: Draws) -> None:
    world, willing = assistant(), np.ones(N, np.bool_)
    for earlier in range(6):
        code, _, tired = offered(world, draws, 7, fatigue=float(earlier))
        yes = code != DECLINED
        assert not (yes & ~willing).any()  # who declined does not accept when asked more often
        share = world.accept / (1 + world.fatigue * earlier)
        assert abs(yes.mean() - share) < 4.5 * np.sqrt(share * (1 - share) / N)
        assert (tired == earlier + 1).all()
        willing = yes


@pytest.mark.req("K17")
def test_offers_are_forgotten_with_their_half_life(draws: Draws) -> None:
    world = assistant(fatigue_half_life_days=3.0)
    for days, left in ((0, 8.0), (3, 4.0), (6, 2.0), (30, 8 / 1024)):
        assert abs(offered(world, draws, 7, fatigue=8.0, idle=days * DAY)[2][0] - (left + 1)) < 1e-4
    fresh = offered(world, draws, 7)[0]
    assert np.array_equal(offered(world, draws, 7, fatigue=8.0, idle=400 * DAY)[0], fresh)
    tireless = assistant(fatigue=0.0)
    assert np.array_equal(offered(tireless, draws, 7, fatigue=50.0)[0], fresh)


def test_who_is_not_asked_neither_answers_nor_tires(draws: Draws) -> None:
    world, event, asked = assistant(), moment(np.full(N, 7, np.int32)), np.arange(N) % 2 == 0
    before = np.full(N, DAY, np.int64)
    users, reaction = world.offer(at(event, Ledger.blank(N, 1), np.full(N, 2.0), before), event, asked, draws)
    code, name, tired = offered(world, draws, 7, 2.0, DAY)
    assert np.array_equal(reaction.code, np.where(asked, code, -1))
    assert np.array_equal(reaction.name, np.where(asked, name, -1))
    assert np.array_equal(users.fatigue, np.where(asked, tired, 2.0))
    assert np.array_equal(users.last_offer, np.where(asked, event.time, event.time - DAY))


# ------------------------------------------------------------------------------------------------ parameters

BAD: list[tuple[dict[str, Any], str]] = [
    ({"messages_per_day": 0.0}, "simulator.messages_per_day=0.0 must be above 0"),
    ({"messages_per_day": -3}, "simulator.messages_per_day=-3"),
    ({"messages_per_day": float("nan")}, "simulator.messages_per_day=nan"),
    ({"max_per_day": float("inf")}, "simulator.max_per_day=inf must be above 0, and finite"),
    ({"max_per_day": 5000.0}, "simulator.max_per_day=5000.0 is above 1024"),
    ({"volume_spread": -0.1}, "simulator.volume_spread=-0.1 must not be negative"),
    ({"day_spread": float("inf")}, "simulator.day_spread=inf"),
    ({"active_low": 0.9, "active_high": 0.5}, "simulator.active_low=0.9 is above active_high=0.5"),
    ({"one_off_share": 1.2}, r"simulator.one_off_share=1.2 must lie in \[0, 1\]"),
    ({"rated_share": -0.1}, "simulator.rated_share=-0.1"),
    ({"late_share": 2}, "simulator.late_share=2"),
    ({"accept": float("nan")}, "simulator.accept=nan"),
    ({"discount": 1.5}, "simulator.discount=1.5"),
    ({"concentration": 0}, "simulator.concentration=0"),
    ({"lag_power": -1.0}, "simulator.lag_power=-1.0"),
    ({"fatigue": -1}, "simulator.fatigue=-1"),
    ({"fatigue_half_life_days": 0}, "simulator.fatigue_half_life_days=0"),
    ({"answers_stale_hours": -1.0}, "simulator.answers_stale_hours=-1.0"),
    ({"rating_if_right": [0.9, 0.1]}, "simulator.rating_if_right=.0.9, 0.1. must be three probabilities"),
    ({"rating_if_near": [0.5, 0.2, 0.2]}, "rating_if_near=.* that sum to 1"),
    ({"rating_if_wrong": [1.2, -0.2, 0.0]}, "rating_if_wrong="),
    ({"rating_if_right": [float("nan"), 0.5, 0.5]}, "rating_if_right="),
    ({"rating_if_right": [0.1, 0.1, 0.8]}, "a better answer must not be rated worse"),
    ({"rating_if_wrong": [0.5, 0.1, 0.4]}, "a better answer must not be rated worse"),
    ({"rating_if_near": [0.0, 0.7, 0.3]}, "a better answer must not be rated worse"),
]


@pytest.mark.parametrize(("change", "says"), BAD, ids=[str(change) for change, _ in BAD])
def test_bad_parameters_are_named_with_what_is_valid(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        assistant(**change)


def test_rows_that_react_each_in_its_own_way_do_as_users_of_that_way_alone() -> None:
    rng, n = np.random.default_rng(0), 3_000
    ways = [
        assistant(),
        assistant(rated_share=0.9, late_share=0.7, late_hours=3.0, rating_if_right=[0.6, 0.3, 0.1]),
        assistant(accept=0.1, accept_one_off=0.9, bad_name_share=0.6, fatigue=2.0, fatigue_half_life_days=0.5),
    ]
    way_of = rng.integers(0, len(ways), n)
    reactions = Reactions(*(np.stack([getattr(w.reactions, f.name) for w in ways])[way_of] for f in fields(Reactions)))
    quality, u = rng.integers(0, 3, n).astype(np.int32), samples.draws(rng, n)
    type_ = rng.integers(-1, 2, n).astype(np.int32)
    text = np.where(type_ < 0, ways[0]._corpus.one_offs[0], 0).astype(np.int32)
    fatigue, idle = rng.integers(0, 9, n) / 4, rng.integers(0, 10**6, n)
    event = replace(moment(type_), text=text)
    everyone, asked = at(event, Ledger.blank(n, 1), fatigue.copy(), idle), np.ones(n, np.bool_)
    said, (tired, reaction) = rated(reactions, quality, u), ways[0].offered(reactions, everyone, event, asked, u)
    for j, way in enumerate(ways):
        alone = np.flatnonzero(way_of == j)
        mine, some = samples.some_draws(u, alone), rows(event, alone)
        expected = rated(way.reactions, quality[alone], mine)
        assert all(np.array_equal(said[i][alone], expected[i]) for i in range(2))
        users = at(some, Ledger.blank(len(alone), 1), fatigue[alone], idle[alone])
        users, wanted = way.offer(users, some, asked[alone], mine)
        assert np.array_equal(reaction.code[alone], wanted.code)
        assert np.array_equal(reaction.name[alone], wanted.name)
        assert np.array_equal(tired.fatigue[alone], users.fatigue)
    early = np.arange(n // 3)  # users leave from the end: a later step has fewer rows
    earliest = rated(reactions, quality[early], samples.some_draws(u, early))
    assert all(np.array_equal(earliest[i], said[i][early]) for i in range(2))
