"""The centroid against means in floating point, and what MaxSim and centroid say together."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16, UNIT
from skg_bench.core.types import Query, Router, Skillbooks
from skg_bench.engine.vectors import Pinned, Rows, SimilarityTable
from skg_bench.router.centroid import Centroid
from skg_bench.router.maxsim import MaxSim
from skg_bench.router.maxsim_centroid import MaxSimCentroid
from tests.core import samples

ALL = 100
seeds = st.integers(0, 2**32)


def world(seed: int, users: int, examples: int, width: int = 384) -> tuple[Query, Skillbooks, I16]:
    """Messages, books, and the vectors of all texts, at production shapes."""
    rng = np.random.default_rng(seed)
    vectors = samples.vectors(rng, 200, width)
    books = samples.lengthened(samples.ragged(rng, users, examples, texts=200, skills=40), vectors)
    text = rng.integers(0, 200, users).astype(np.int32)
    return samples.query(text, Rows(vectors), books), books, vectors


def of(router: Router, query: Query, books: Skillbooks) -> list[dict[int, float]]:
    """Similarity by skill, for each user."""
    made = router.route(query, books)
    return [
        {s: x for s, x in zip(skill, similarity, strict=True) if s >= 0}
        for skill, similarity in zip(made.skill.tolist(), made.similarity.tolist(), strict=True)
    ]


@settings(deadline=None, max_examples=8)
@given(seed=seeds, users=st.integers(1, 40), examples=st.integers(0, 300))
def test_similarity_is_the_cosine_to_the_mean_of_a_skills_examples(seed: int, users: int, examples: int) -> None:
    query, books, vectors = world(seed, users, examples)
    real = vectors.astype(np.float64) / 4000.0
    made = Centroid(ALL).route(query, books)
    for u in range(users):
        skills = books.examples.skill[u, : books.examples.count[u]]
        scores = {int(s): x for s, x in zip(made.skill[u], made.similarity[u], strict=True) if s >= 0}
        assert set(scores) == set(np.flatnonzero(books.active[u]).tolist())
        for s, similarity in scores.items():
            mean = real[books.examples.text[u, : len(skills)][skills == s]].mean(axis=0)
            exact = real[query.text[u]] @ mean / np.linalg.norm(mean)
            assert similarity == pytest.approx(np.clip(exact, 0, 1), abs=1.01 * UNIT)
        assert list(scores) == sorted(scores, key=lambda s: (-scores[s], s))


@settings(deadline=None, max_examples=8)
@given(seed=seeds, users=st.integers(2, 300))
def test_a_centroid_is_the_same_bits_looked_up_computed_alone_and_in_any_company(seed: int, users: int) -> None:
    query, books, vectors = world(seed, users, 60)
    wide = vectors.astype(np.float32)
    routers: list[Router] = [Centroid(5), MaxSimCentroid(5, 0.3)]
    order = np.random.default_rng(seed).permutation(users)
    for router in routers:
        computed = router.route(query, books)
        looked_up = router.route(samples.asked_with(query, books, SimilarityTable(wide @ wide.T)), books)
        fresh = samples.asked_with(query, books, Rows(vectors))
        mixed = router.route(samples.some_queries(fresh, order), samples.some(books, order))
        for other, rows in ((looked_up, np.arange(users)), (mixed, order)):
            assert np.array_equal(other.skill, computed.skill[rows])
            assert np.array_equal(other.similarity, computed.similarity[rows])
        for u in (0, users - 1):
            alone = samples.one(books, u)
            single = samples.asked_with(
                samples.some_queries(query, [u]), alone, Pinned(vectors, alone.examples.text[0])
            )
            online = router.route(single, alone)
            assert np.array_equal(online.skill, computed.skill[[u]])
            assert np.array_equal(online.similarity, computed.similarity[[u]])


def test_a_skill_with_one_example_has_the_similarity_that_maxsim_gives_it() -> None:
    rng = np.random.default_rng(0)
    vectors = samples.vectors(rng, 200, 384)
    books = samples.ragged(rng, 50, 20, texts=200)
    place = np.arange(books.examples.text.shape[1], dtype=np.int32)
    single = samples.with_examples(books, skill=np.tile(place, (50, 1)))
    single = replace(single, active=place < books.examples.count[:, None])
    single = samples.lengthened(single, vectors)
    query = samples.query(rng.integers(0, 200, 50).astype(np.int32), Rows(vectors), single)
    for u, (centre, nearest) in enumerate(
        zip(of(Centroid(ALL), query, single), of(MaxSim(ALL), query, single), strict=True)
    ):
        assert len(centre) == books.examples.count[u]
        # an example's length is 4000 but for rounding, so that the two may differ by that
        assert centre == pytest.approx(nearest, abs=0.005)


@settings(deadline=None, max_examples=8)
@given(seed=seeds, weight=st.integers(0, 8))
def test_half_and_half_is_the_weighted_mean_of_both(seed: int, weight: int) -> None:
    query, books, _ = world(seed, 20, 50, 64)
    w = weight / 8

    def similarities(router: Centroid | MaxSim | MaxSimCentroid) -> list[dict[int, float]]:
        made = router.route(query, books)
        return [
            dict(zip(s.tolist(), x.tolist(), strict=True)) for s, x in zip(made.skill, made.similarity, strict=True)
        ]

    for mixed, nearest, centre in zip(
        similarities(MaxSimCentroid(ALL, w)), similarities(MaxSim(ALL)), similarities(Centroid(ALL)), strict=True
    ):
        for s, similarity in mixed.items():
            assert similarity == pytest.approx(w * nearest[s] + (1 - w) * centre[s], abs=UNIT)


def test_examples_that_cancel_out_have_no_direction() -> None:
    query, books, vectors = world(1, 20, 30)
    books = samples.with_examples(books, square=np.zeros_like(books.examples.square))
    opposite = np.concatenate([vectors, -vectors])
    examples = np.where(
        np.arange(books.examples.text.shape[1]) % 2, books.examples.text[:, :1] + 200, books.examples.text[:, :1]
    )
    n = np.full(20, 2, np.int32)
    books = samples.with_examples(books, text=examples.astype(np.int32), skill=books.examples.skill * 0, count=n)
    made = Centroid(5).route(samples.asked_with(query, books, Rows(opposite)), books)
    assert not made.similarity.any()
    assert np.isfinite(made.similarity).all()


def test_parameters_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match=r"router\.top_k=0 must be at least 1"):
        Centroid(0)
    with pytest.raises(UsageError, match=r"router\.top_k=0 must be at least 1"):
        MaxSimCentroid(0, 0.5)
    for weight in (-0.1, 1.1, float("nan")):
        with pytest.raises(UsageError, match=r"router\.weight=.* must lie in \[0, 1\]"):
            MaxSimCentroid(5, weight)
