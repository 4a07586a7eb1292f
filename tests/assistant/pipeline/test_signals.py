"""The three signals and their weights, the law of forgetting, and what each feature means."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.assistant.pipeline.signals import GROUPS, Positions, Signals
from skg_bench.core.calendar import DAY
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I64, UNIT, snap
from skg_bench.core.types import Query, Shortlist, Skillbooks
from tests.core import samples

SKG = Signals(0.6, 0.2, 0.2, 1.0, 1.0, 30, tuple(GROUPS))
unit = st.floats(0, 1)


def places(rng: np.random.Generator, books: Skillbooks, k: int = 5) -> tuple[Positions, Shortlist]:
    """Random shortlists of skills that exist."""
    b = len(books.n_skills)
    skill = np.full((b, k), -1, np.int32)
    for u in range(b):
        n = min(k, int(books.n_skills[u]))
        skill[u, :n] = rng.permutation(books.n_skills[u])[:n]
    similarity = -np.sort(-snap(rng.random((b, k))) * (skill >= 0), axis=1)
    shortlist = Shortlist(skill, np.where(skill >= 0, similarity, 0.0))
    return Positions(shortlist, books), shortlist


def shown(seed: int, b: int = 40) -> tuple[dict[str, np.ndarray], Any, Skillbooks, Positions, Shortlist]:
    """Features by name, and what they were made from."""
    rng = np.random.default_rng(seed)
    books = samples.ragged(rng, b, 60, skills=12)
    at, shortlist = places(rng, books)
    query = samples.query(rng.integers(0, 100, b).astype(np.int32), samples.table(rng, 100, 8), books)
    preference = SKG.prefer(books, at, query.time)
    made = SKG.describe(query, books, at, shortlist.similarity, preference)
    return dict(zip(SKG.names, np.moveaxis(made, 2, 0), strict=True)), query, books, at, shortlist


@settings(deadline=None)
@given(s=unit, p=unit, r=unit, w=st.tuples(unit, unit, unit).filter(lambda w: w[0] + w[1] > 1e-3))
@pytest.mark.req("K03", "K11")
def test_the_combined_score_is_the_weighted_mean_of_the_signals_that_are_there(
    s: float, p: float, r: float, w: tuple[float, float, float]
) -> None:
    signals = replace(SKG, similarity=w[0], preference=w[1], score=w[2])
    scores = [snap(np.array([[x]])) for x in (s, p, r)]
    with_all = signals.combine(*scores)[0, 0]
    without = signals.combine(scores[0], scores[1], None)[0, 0]
    assert with_all == pytest.approx(np.average([s, p, r], weights=w), abs=2 * UNIT)
    assert without == pytest.approx(np.average([s, p], weights=w[:2]), abs=2 * UNIT)
    for x in (with_all, without):
        assert 0 <= x <= 1
        assert x / UNIT == round(x / UNIT)


def test_the_score_alone_decides_if_it_has_all_the_weight_and_its_absence_is_an_error() -> None:
    alone, some = replace(SKG, similarity=0.0, preference=0.0), np.full((1, 1), 0.25)
    assert alone.combine(some, some, some * 3).tolist() == [[0.75]]
    with pytest.raises(UsageError, match="this reranker gives no score"):
        alone.combine(some, some, None)


def test_the_default_weights_sum_to_one() -> None:
    assert SKG.similarity + SKG.preference + SKG.score == pytest.approx(1)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32), prior=st.tuples(st.floats(0.1, 5), st.floats(0.1, 5)))
@pytest.mark.req("K09")
def test_the_preference_is_the_mean_of_a_beta_posterior_of_rated_uses(seed: int, prior: tuple[float, float]) -> None:
    rng = np.random.default_rng(seed)
    books = samples.ragged(rng, 30, 60)
    at, shortlist = places(rng, books)
    signals = replace(SKG, prior_ok=prior[0], prior_miss=prior[1], half_life_days=None)
    preference = signals.prefer(books, at, np.full(30, samples.NOW))
    for u, k in zip(*np.nonzero(shortlist.skill >= 0), strict=True):
        s = shortlist.skill[u, k]
        a = prior[0] + books.ok[u, s] + books.partial[u, s] / 2
        b = prior[1] + books.miss[u, s] + books.partial[u, s] / 2
        assert preference[u, k] == pytest.approx(a / (a + b), abs=UNIT)
    assert ((preference >= 0) & (preference <= 1)).all()
    unused = replace(books, ok=books.ok * 0, partial=books.partial * 0, miss=books.miss * 0)
    preference = signals.prefer(unused, Positions(shortlist, unused), np.full(30, samples.NOW))
    assert preference[0, 0] == pytest.approx(prior[0] / sum(prior), abs=UNIT)


@pytest.mark.req("K29")
def test_the_preference_halves_with_every_half_life_since_the_last_success() -> None:
    rng = np.random.default_rng(0)
    books = samples.ragged(rng, 20, 30)
    at, _ = places(rng, books)
    last_ok = books.history.last_ok
    now = last_ok.max() + np.zeros(20, np.int64)
    fresh = replace(SKG, half_life_days=None).prefer(books, at, now)
    days = [0, 1, 15, 30, 60, 300]

    def successful(when: I64) -> Skillbooks:
        return replace(books, history=replace(books.history, last_ok=when))

    faded = [SKG.prefer(successful(last_ok * 0 + now[0] - d * DAY), at, now) for d in days]
    for d, f in zip(days, faded, strict=True):
        assert np.abs(f - fresh * 2 ** (-d / 30)).max() < 2 * UNIT
    assert (faded[-1] > 0).any()
    ages = SKG.prefer(successful(last_ok - 4000 * 400 * DAY), at, now)
    assert (ages >= 0).all()  # for ever ago is no error


@pytest.mark.req("K29")
def test_without_a_half_life_nothing_fades() -> None:
    rng = np.random.default_rng(1)
    books = samples.ragged(rng, 20, 30)
    at, _ = places(rng, books)
    signals = replace(SKG, half_life_days=None)
    assert np.array_equal(signals.prefer(books, at, np.full(20, 0)), signals.prefer(books, at, np.full(20, 10**9)))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32))
@pytest.mark.req("K10")
def test_all_features_lie_on_the_grid_in_the_unit_interval_and_are_zero_beyond_the_end(seed: int) -> None:
    features, _, _, at, _ = shown(seed)
    for name, x in features.items():
        assert x.shape == at.skill.shape, name
        assert ((x >= 0) & (x <= 1)).all(), name
        assert (x / UNIT == np.rint(x / UNIT)).all(), name
        assert (x[at.skill < 0] == 0).all(), name


@pytest.mark.req("K10")
def test_features_stay_in_the_unit_interval_for_a_skill_that_is_captured_again_and_again() -> None:
    rng = np.random.default_rng(3)
    books = samples.ragged(rng, 1, 1)
    while not books.n_skills[0]:
        books = samples.ragged(rng, 1, 1)
    captures = 21  # at one hour of weekends, and never used
    nothing, hours = np.zeros_like(books.uses), np.zeros_like(books.history.hours)
    hours[0, 0, samples.NOW // 10_800 % 8] = captures
    books = replace(books, uses=nothing, ok=nothing, partial=nothing, miss=nothing)
    often = np.full_like(books.uses, captures)
    books = replace(books, history=replace(books.history, hours=hours, weekend=often))
    books = samples.with_examples(books, of_skill=often)
    at, shortlist = places(rng, books)
    for day in (0, 3):
        query = replace(
            samples.query(np.zeros(1, np.int32), samples.table(rng, 3, 8), books),
            time=np.array([samples.NOW + day * DAY]),
            local=np.array([samples.NOW + day * DAY]),
        )
        made = SKG.describe(query, books, at, shortlist.similarity, SKG.prefer(books, at, query.time))
        features = dict(zip(SKG.names, made[0, 0], strict=True))
        assert all(0 <= x <= 1 for x in features.values()), features
        assert features["hour_fit"] > 0.7
        assert (features["weekday_fit"] > 0.9) == (
            samples.NOW // DAY % 7 + day >= 5 and samples.NOW // DAY % 7 + day < 7
        )


@pytest.mark.req("K10")
def test_each_feature_means_what_its_name_says() -> None:
    f, query, books, at, shortlist = shown(5)
    checked = 0
    for u, k in zip(*np.nonzero(at.skill >= 0), strict=True):
        s = at.skill[u, k]
        row = {name: float(x[u, k]) for name, x in f.items()}
        moments = int(books.uses[u, s] + books.examples.of_skill[u, s])
        weekend = query.time[u] // DAY % 7 >= 5
        here = int(books.history.hours[u, s, query.time[u] % DAY // 10_800])
        alike = int(books.history.weekend[u, s]) if weekend else moments - int(books.history.weekend[u, s])
        similarity = shortlist.similarity[u]
        rival = max([x for j, x in enumerate(similarity) if j != k], default=0.0)
        rated = int(books.ok[u, s] + books.partial[u, s] + books.miss[u, s])
        expected = {
            "similarity": similarity[k],
            "margin": max(similarity[k] - rival, 0),
            "lead": similarity[k] == similarity[0],
            "hour_fit": (here + 1) / (moments + 8),
            "weekday_fit": (alike + 1) / (moments + 2),
            "freshness": 1 / (1 + (query.time[u] - books.last_used[u, s]) / DAY),
            "answer_age": 1 / (1 + (query.time[u] - books.born[u, s]) / DAY),
            "in_conversation": query.gap[u] < 1800,
            "same_as_last": s == query.last_skill[u],
            "length": query.words[u] / (query.words[u] + 8),
            "follows_last": books.history.after[u, s] == query.last_skill[u] >= 0,
            "uses": (books.uses[u, s] + 1) / (books.uses[u, s] + 5),
            "ratings": 1 - 2 / (2 + rated),
            "examples": 1 - 1 / books.examples.of_skill[u, s],
            "constant": 1,
        }
        assert set(expected) == set(row) - {"preference"}
        for name, value in expected.items():
            assert row[name] == pytest.approx(float(value), abs=UNIT), name
        checked += 1
    assert checked > 50


def test_hour_and_weekday_are_those_of_the_users_clock_and_ages_are_not() -> None:
    before, asked, books, at, shortlist = shown(4)
    preference, evening = SKG.prefer(books, at, asked.time), asked.time - 11 * 3600  # of Friday, not Saturday morning

    def described(query: Query) -> dict[str, np.ndarray]:
        made = SKG.describe(query, books, at, shortlist.similarity, preference)
        return dict(zip(SKG.names, np.moveaxis(made, 2, 0), strict=True))

    found, meant = described(replace(asked, local=evening)), described(replace(asked, time=evening, local=evening))
    for name in SKG.names:
        same = meant if name in ("hour_fit", "weekday_fit") else before
        assert np.array_equal(found[name], same[name]), name
    assert all((found[name] != before[name]).any() for name in ("hour_fit", "weekday_fit"))


def test_groups_of_features_can_be_left_out() -> None:
    assert replace(SKG, features=("time",)).names == ("hour_fit", "weekday_fit", "constant")
    assert replace(SKG, features=()).names == ("constant",)
    assert set(SKG.names) == {name for group in GROUPS.values() for name in group} | {"constant"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"similarity": -0.1}, "signals.similarity=-0.1"),
        ({"score": float("nan")}, "signals.score=nan"),
        ({"similarity": 0.0, "preference": 0.0, "score": 0.0}, "must be above 0"),
        ({"prior_ok": 0.0}, "signals.prior_ok=0.0"),
        ({"prior_miss": -1.0}, "signals.prior_miss=-1.0"),
        ({"half_life_days": 0.0}, "signals.half_life_days=0.0"),
        ({"features": ("time", "tme")}, "unknown groups .'tme'.; valid are signals, time"),
    ],
)
def test_bad_parameters_are_named(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        replace(SKG, **change)
