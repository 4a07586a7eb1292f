"""MaxSim against plain integers, and the choice of the K best against a sort."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.grid import cosine
from skg_bench.core.shortlist import max_dots, shortlist, top
from skg_bench.core.types import Similarity
from skg_bench.engine.vectors import Pinned, Rows, SimilarityTable
from tests.core import samples

NONE = -(2**24)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32), users=st.integers(1, 300), examples=st.integers(0, 300))
@pytest.mark.req("K08")
def test_maxsim_is_the_exact_largest_dot_product_to_any_example(seed: int, users: int, examples: int) -> None:
    """Against integers, for looked up, kept and computed vectors, in a batch and one by one with a grouped book."""
    rng = np.random.default_rng(seed)
    users = min(users, max(1, 9000 // (examples + 1)))
    vectors, books = samples.vectors(rng, 120, 384), samples.ragged(rng, users, examples, texts=120)
    text = rng.integers(0, 120, users).astype(np.int32)
    expected = np.full(books.active.shape, NONE, np.int64)
    whole = vectors.astype(np.int64)
    for u in range(users):
        for e in range(books.examples.count[u]):
            s = books.examples.skill[u, e]
            if books.active[u, s]:
                dot = int(whole[text[u]] @ whole[books.examples.text[u, e]])
                expected[u, s] = max(expected[u, s], dot)
    table = SimilarityTable(vectors.astype(np.float32) @ vectors.astype(np.float32).T)
    kept = Rows(vectors)
    sources: list[Similarity] = [table, kept, kept]
    for similarity in sources:
        dots = max_dots(samples.query(text, similarity, books), books)
        assert dots.dtype == np.float32
        assert np.array_equal(dots.astype(np.int64), expected)
    double = vectors.astype(np.float64) @ vectors.astype(np.float64).T
    assert np.array_equal(table.table.astype(np.float64), double)
    for u in range(min(users, 20)):
        alone = samples.one(books, u)
        dots = max_dots(samples.query(text[u : u + 1], Pinned(vectors, alone.examples.text[0]), alone), alone)
        n = int(books.n_skills[u])
        assert np.array_equal(dots[0, :n].astype(np.int64), expected[u, :n])


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), b=st.integers(1, 300), width=st.integers(1, 60), k=st.integers(1, 70))
def test_the_k_best_are_those_of_a_full_sort_with_ties_by_id(seed: int, b: int, width: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    value = rng.integers(-4, 4, (b, width)) * rng.choice([1, 2**20])
    allowed = rng.random((b, width)) < 0.7
    best = top(value.astype(np.float32), allowed, k)
    assert best.shape == (b, k)
    assert best.dtype == np.int32
    for row in range(b):
        ids = sorted(np.flatnonzero(allowed[row]), key=lambda s: (-value[row, s], s))[:k]
        assert best[row].tolist() == ids + [-1] * (k - len(ids))


def test_a_shortlist_carries_cosines_and_zeros_beyond_the_end() -> None:
    dots = np.array([[16e6, -5e6, 8e6]], np.float32)
    made = shortlist(np.array([[2, 1, -1]], np.int32), dots)
    assert made.similarity.tolist() == [[0.5, 0.0, 0.0]]
    assert made.similarity.dtype == np.float64
    assert made.similarity[0, 0] == cosine(dots)[0, 2]
