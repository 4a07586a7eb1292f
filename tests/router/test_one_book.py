"""One book for many users: what each of them sees of it."""

import numpy as np
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.core.types import Router
from skg_bench.engine.vectors import Pinned, SimilarityTable
from skg_bench.router.centroid import Centroid
from skg_bench.router.maxsim import MaxSim
from skg_bench.router.shared.one_book import shared_book
from tests.core import samples

EXAMPLE = np.array([5, 9, 2, 7, 7, 1], np.int32)
SKILL = np.array([0, 0, 1, 2, 2, 2], np.int32)


@pytest.mark.parametrize("router", [MaxSim(3), Centroid(3)], ids=repr)
def test_many_users_and_one_find_the_same_in_a_shared_book(router: Router) -> None:
    rng = np.random.default_rng(0)
    vectors = samples.vectors(rng, 40, 384)
    whole = vectors.astype(np.float32)
    text = rng.integers(0, 40, 30).astype(np.int32)
    books, own = (shared_book(vectors, EXAMPLE, SKILL, rows) for rows in (30, 1))
    together = router.route(samples.query(text, Pinned(vectors, EXAMPLE), books), books)
    for u in range(30):
        alone = router.route(samples.query(text[u : u + 1], SimilarityTable(whole @ whole.T), own), own)
        assert np.array_equal(alone.skill, together.skill[u : u + 1])
        assert np.array_equal(alone.similarity, together.similarity[u : u + 1])
    assert sorted(set(together.skill[:, 0].tolist())) == [0, 1, 2]


def test_a_shared_book_takes_no_room_for_each_user_and_cannot_be_changed() -> None:
    vectors = samples.vectors(np.random.default_rng(0), 40, 384)
    books = shared_book(vectors, EXAMPLE, SKILL, 1000)
    assert books.examples.text.shape == (1000, 6)
    assert books.examples.text.strides[0] == books.examples.square.strides[0] == 0
    assert not books.examples.text.flags.writeable
    sums = np.stack([vectors[EXAMPLE[s == SKILL]].sum(axis=0, dtype=np.int64) for s in range(3)])
    assert books.examples.square[999].tolist() == (sums**2).sum(axis=1).tolist()
    assert books.examples.of_skill[0].tolist() == [2, 1, 3]


@pytest.mark.parametrize("skill", [[1, 0, 0], [0, 2, 2], [1, 1, 2], [0, 1, 0]])
def test_examples_out_of_order_and_skills_without_any_are_refused(skill: list[int]) -> None:
    vectors = samples.vectors(np.random.default_rng(0), 5, 16)
    with pytest.raises(UsageError, match="in order of their skills"):
        shared_book(vectors, np.arange(3, dtype=np.int32), np.array(skill, np.int32), 1)
