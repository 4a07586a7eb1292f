"""What each router finds, and what all of them keep to: order, padding, a user's own active skills, no other user."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import UNIT
from skg_bench.core.types import Query, Router, Shortlist, Skillbooks, TurnTruth
from skg_bench.core.vocabulary import vocabulary_of
from skg_bench.core.world import RIGHT
from skg_bench.engine.vectors import Pinned, SimilarityTable
from skg_bench.router.bm25 import BM25
from skg_bench.router.centroid import Centroid
from skg_bench.router.exact import Exact
from skg_bench.router.frequency import Frequency
from skg_bench.router.hybrid import Hybrid
from skg_bench.router.knn import KNN
from skg_bench.router.masked import Masked
from skg_bench.router.maxsim import MaxSim
from skg_bench.router.maxsim_centroid import MaxSimCentroid
from skg_bench.router.oracle import RightSkill
from skg_bench.router.probe import Probe
from skg_bench.router.recipe import Recipe
from skg_bench.router.repeat_last import RepeatLast
from tests.core import samples

ROUTERS: list[Router] = [
    MaxSim(5), Frequency(5), Exact(5), RightSkill(near=False), MaxSim(70), Frequency(1), Exact(70),
    Masked(MaxSim(5), 1, None), RightSkill(near=True),
    Masked(MaxSim(5), 0, 0.6), Masked(RightSkill(near=False), 0, None), Centroid(5), MaxSimCentroid(5, 0.5), KNN(5, 5),
    BM25(5, 1.5, 0.75), Hybrid(MaxSim(20), BM25(20, 1.5, 0.75), 60, 5), Centroid(70), MaxSimCentroid(1, 0.3),
    KNN(70, 1), KNN(2, 100), BM25(70, 0, 1), Hybrid(RightSkill(near=False), KNN(20, 20), 0, 70),
    Masked(BM25(5, 1.5, 0.75), 1, 0.6),
    RepeatLast(), Probe(5, 32, 0.3), Probe(70, 1, 1.0), Probe(70, 5, 0.1),
    Recipe(5, 32, 4.0, 0.3), Recipe(70, 5, 16.0, 1.0),
]  # fmt: skip
TEXTS = 40  # few, so that messages come back verbatim
seeds = st.integers(0, 2**32)


def world(seed: int, users: int = 30, examples: int = 40) -> tuple[Query, Skillbooks, np.ndarray]:
    """Messages, books, and the vectors of all texts."""
    rng = np.random.default_rng(seed)
    vectors = samples.vectors(rng, TEXTS, 64)
    books = samples.lengthened(samples.ragged(rng, users, examples, texts=TEXTS, skills=12), vectors)
    wide = vectors.astype(np.float32)
    truth = TurnTruth(
        rng.integers(0, 3, books.active.shape).astype(np.int32),
        np.zeros(users, np.int32),
        np.zeros(users, np.bool_),
        np.zeros((users, 0)),
    )
    text = rng.integers(0, TEXTS, users).astype(np.int32)
    return samples.query(text, SimilarityTable(wide @ wide.T), books, truth), books, vectors


def same(first: Shortlist, other: Shortlist) -> bool:
    return np.array_equal(first.skill, other.skill) and np.array_equal(first.similarity, other.similarity)


@pytest.mark.parametrize("router", ROUTERS, ids=repr)
@settings(deadline=None, max_examples=12)
@given(seed=seeds)
@pytest.mark.req("K08")
def test_a_shortlist_holds_distinct_active_skills_first_and_then_nothing(router: Router, seed: int) -> None:
    query, books, _ = world(seed)
    made = router.route(query, books)
    assert made.skill.dtype == np.int32
    assert made.similarity.dtype == np.float64
    assert made.skill.shape == made.similarity.shape == (30, getattr(router, "top_k", 1))
    for u, row in enumerate(made.skill):
        listed = row[row >= 0]
        assert (row[len(listed) :] == -1).all()
        assert len(set(listed.tolist())) == len(listed)
        assert books.active[u, listed].all()
    assert (made.similarity[made.skill < 0] == 0).all()
    assert ((made.similarity >= 0) & (made.similarity <= 1)).all()


@pytest.mark.parametrize("router", ROUTERS, ids=repr)
@settings(deadline=None, max_examples=12)
@given(seed=seeds)
def test_a_user_is_routed_the_same_alone_and_among_others_in_any_order(router: Router, seed: int) -> None:
    query, books, vectors = world(seed)
    whole = router.route(query, books)
    order = np.random.default_rng(seed).permutation(30)
    mixed = router.route(samples.some_queries(query, order), samples.some(books, order))
    assert same(mixed, Shortlist(whole.skill[order], whole.similarity[order]))
    for u in range(4):  # alone, unpadded and grouped, as served online
        alone = samples.one(books, u)
        asked_alone = samples.asked_with(
            samples.some_queries(query, [u]), alone, Pinned(vectors, alone.examples.text[0])
        )
        online = router.route(asked_alone, alone)
        assert same(online, Shortlist(whole.skill[[u]], whole.similarity[[u]]))


@pytest.mark.parametrize("router", ROUTERS, ids=repr)
@settings(deadline=None, max_examples=12)
@given(seed=seeds)
def test_text_ids_may_be_permuted_and_no_route_changes(router: Router, seed: int) -> None:
    """Messages, examples, vectors and words under other ids; different texts with equal vectors make many ties."""
    query, books, vectors = world(seed)
    rng = np.random.default_rng(seed)
    old = rng.permutation(TEXTS)  # new id -> old id
    new = np.argsort(old).astype(np.int32)  # old id -> new id
    vectors = vectors[rng.integers(0, 8, TEXTS)]
    wide, said = vectors.astype(np.float32), samples.MESSAGES[:TEXTS]
    books = samples.lengthened(books, vectors)
    query = samples.asked_with(query, books, SimilarityTable(wide @ wide.T), vocabulary_of(said))
    renamed = samples.with_examples(books, text=new[books.examples.text])
    again = samples.asked_with(
        replace(query, text=new[query.text]),
        renamed,
        SimilarityTable(wide[old] @ wide[old].T),
        vocabulary_of([said[t] for t in old]),
    )
    assert same(router.route(again, renamed), router.route(query, books))


@pytest.mark.parametrize("router", ROUTERS, ids=repr)
def test_an_empty_book_gives_an_empty_shortlist(router: Router) -> None:
    query, books, vectors = world(1, users=3, examples=0)
    made = router.route(query, books)
    assert (made.skill == -1).all()
    assert not made.similarity.any()
    alone = samples.one(books, 0)
    asked_alone = samples.asked_with(samples.some_queries(query, [0]), alone, Pinned(vectors, alone.examples.text[0]))
    made = router.route(asked_alone, alone)
    assert (made.skill == -1).all()


@settings(deadline=None, max_examples=12)
@given(seed=seeds)
@pytest.mark.req("K08")
def test_maxsim_gives_the_largest_cosine_to_any_example_and_the_nearest_skills(seed: int) -> None:
    query, books, vectors = world(seed)
    real = vectors.astype(np.float64) / 4000.0
    made = MaxSim(5).route(query, books)
    for u in range(30):
        best = dict[int, float]()
        for e in range(books.examples.count[u]):
            s = int(books.examples.skill[u, e])
            if books.active[u, s]:
                best[s] = max(best.get(s, -1.0), float(real[query.text[u]] @ real[books.examples.text[u, e]]))
        listed = made.skill[u][made.skill[u] >= 0].tolist()
        assert listed == sorted(best, key=lambda s: (-round(best[s] * 4000**2), s))[:5]
        for k, s in enumerate(listed):
            assert made.similarity[u, k] == pytest.approx(max(min(best[s], 1.0), 0.0), abs=UNIT)


def test_equal_similarities_are_ordered_by_skill_id() -> None:
    query, books, _ = world(2)
    books = samples.with_examples(books, text=books.examples.text * 0)  # every example says the same
    made = MaxSim(5).route(samples.asked_with(query, books), books)
    for u in range(30):
        assert made.skill[u][made.skill[u] >= 0].tolist() == np.flatnonzero(books.active[u])[:5].tolist()


@pytest.mark.req("K08")
def test_one_skill_is_found_whatever_the_message_says() -> None:
    query, books, _ = world(3, users=40, examples=1)
    made = MaxSim(5).route(query, books)
    assert ((made.skill[:, 0] == 0) == books.active[:, 0]).all()
    assert books.active[:, 0].any()
    assert (made.skill[:, 1:] == -1).all()


@settings(deadline=None, max_examples=12)
@given(seed=seeds)
def test_the_exact_router_finds_verbatim_messages_and_nothing_else(seed: int) -> None:
    query, books, _ = world(seed)
    made = Exact(70).route(query, books)
    for u in range(30):
        n = books.examples.count[u]
        skills = {int(books.examples.skill[u, e]) for e in range(n) if books.examples.text[u, e] == query.text[u]}
        expected = sorted(s for s in skills if books.active[u, s])
        assert made.skill[u][made.skill[u] >= 0].tolist() == expected
    assert np.array_equal(made.similarity, made.skill >= 0)


@settings(deadline=None, max_examples=12)
@given(seed=seeds)
def test_the_frequency_router_orders_by_uses_and_does_not_read_the_message(seed: int) -> None:
    query, books, _ = world(seed)
    made = Frequency(5).route(query, books)
    for u in range(30):
        ids = sorted(np.flatnonzero(books.active[u]).tolist(), key=lambda s: (-books.uses[u, s], s))
        assert made.skill[u][made.skill[u] >= 0].tolist() == ids[:5]
    said = samples.asked_with(replace(query, text=(query.text + 1) % TEXTS), books)
    other = Frequency(5).route(said, books)
    assert np.array_equal(other.skill, made.skill)
    assert not np.array_equal(other.similarity, made.similarity)
    near = MaxSim(70).route(query, books)
    for u, k in zip(*np.nonzero(made.skill >= 0), strict=True):
        assert made.similarity[u, k] == near.similarity[u][near.skill[u] == made.skill[u, k]].item()


@settings(deadline=None, max_examples=12)
@given(seed=seeds)
def test_the_oracle_finds_a_right_answer_exactly_if_there_is_one(seed: int) -> None:
    query, books, _ = world(seed)
    assert query.truth is not None
    right = (query.truth.quality == RIGHT) & books.active
    made = RightSkill(near=False).route(query, books)
    assert np.array_equal(made.skill[:, 0] >= 0, right.any(axis=1))
    for u in np.flatnonzero(made.skill[:, 0] >= 0):
        assert made.skill[u, 0] == np.flatnonzero(right[u])[0]
    assert np.array_equal(made.similarity, made.skill >= 0)


def test_only_the_oracle_is_given_the_truth_and_it_cannot_do_without() -> None:
    assert [r.sees_truth for r in ROUTERS] == ["RightSkill" in repr(r) for r in ROUTERS]
    query, books, _ = world(4)
    with pytest.raises(ValueError, match="needs the truth"):
        RightSkill(near=False).route(replace(query, truth=None), books)


@pytest.mark.parametrize("router", [MaxSim, Frequency, Exact])
def test_a_shortlist_without_places_is_refused(router: type[MaxSim]) -> None:
    with pytest.raises(UsageError, match=r"router\.top_k=0 must be at least 1"):
        router(0)
