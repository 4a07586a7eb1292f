"""The vote of the nearest examples, counted one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import cosine
from skg_bench.engine.vectors import Rows
from skg_bench.router.knn import KNN
from skg_bench.router.maxsim import MaxSim
from tests.core import samples

seeds = st.integers(0, 2**32)


@settings(deadline=None, max_examples=15)
@given(seed=seeds, neighbours=st.integers(1, 60), examples=st.integers(0, 200))
def test_a_skills_similarity_is_its_share_of_the_votes_each_weighing_its_cosine(
    seed: int, neighbours: int, examples: int
) -> None:
    rng = np.random.default_rng(seed)
    vectors = samples.vectors(rng, 200, 384)
    books = samples.ragged(rng, 30, examples, texts=200, skills=20)
    query = samples.query(rng.integers(0, 200, 30).astype(np.int32), Rows(vectors), books)
    made = KNN(30, neighbours).route(query, books)
    whole = vectors.astype(np.int64)
    for u in range(30):
        near = []
        for e in range(books.examples.count[u]):
            s = int(books.examples.skill[u, e])
            if books.active[u, s]:
                near.append((-int(whole[query.text[u]] @ whole[books.examples.text[u, e]]), s))
        near = sorted(near)[:neighbours]
        votes: dict[int, float] = {}
        for minus, s in near:
            votes[s] = votes.get(s, 0.0) + float(cosine(np.array([-minus], np.float64))[0])
        expected = {s: round(v / len(near) * 65536) / 65536 for s, v in votes.items()}
        scores = {int(s): x for s, x in zip(made.skill[u], made.similarity[u], strict=True) if s >= 0}
        assert scores == pytest.approx(expected, abs=2**-16)
        assert list(scores) == sorted(scores, key=lambda s: (-scores[s], s))


@settings(deadline=None, max_examples=15)
@given(seed=seeds)
def test_with_one_neighbour_the_skill_of_maxsim_wins_with_the_same_similarity(seed: int) -> None:
    rng = np.random.default_rng(seed)
    books = samples.ragged(rng, 60, 60, texts=200, skills=20)
    query = samples.query(rng.integers(0, 200, 60).astype(np.int32), samples.table(rng, 200), books)
    single, nearest = KNN(5, 1).route(query, books), MaxSim(1).route(query, books)
    assert np.array_equal(single.skill[:, :1], nearest.skill)
    assert np.array_equal(single.similarity[:, :1], nearest.similarity)
    assert (single.skill[:, 1:] == -1).all()


@pytest.mark.parametrize(("parameters", "says"), [((0, 5), "top_k=0"), ((5, 0), "neighbours=0")])
def test_no_places_and_no_neighbours_are_refused(parameters: tuple[int, int], says: str) -> None:
    with pytest.raises(UsageError, match=rf"router\.{says} must be at least 1"):
        KNN(*parameters)
