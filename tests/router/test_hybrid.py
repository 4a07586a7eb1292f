"""Reciprocal rank fusion, place by place."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.errors import UsageError
from skg_bench.core.types import Query, Shortlist, Skillbooks
from skg_bench.router.hybrid import Hybrid
from skg_bench.router.knn import KNN
from skg_bench.router.maxsim import MaxSim
from skg_bench.router.oracle import RightSkill
from tests.core import samples


@dataclass(frozen=True)
class Fixed:
    """Lists the same skills for everybody."""

    skill: tuple[int, ...]
    similarity: tuple[float, ...]
    top_k: ClassVar[int] = 1
    sees_truth: ClassVar[bool] = False

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        b = len(query.text)
        return Shortlist(np.tile(np.array(self.skill, np.int32), (b, 1)), np.tile(self.similarity, (b, 1)))


def routed(hybrid: Hybrid) -> tuple[list[int], list[float]]:
    rng = np.random.default_rng(0)
    books = replace(samples.ragged(rng, 2, 40), active=np.ones((2, 12), np.bool_))
    query = samples.query(np.zeros(2, np.int32), samples.table(rng, 100, 8), books)
    made = hybrid.route(query, books)
    assert np.array_equal(made.skill[0], made.skill[1])
    return made.skill[0].tolist(), made.similarity[0].tolist()


def test_places_count_and_scores_do_not() -> None:
    skill, similarity = routed(Hybrid(Fixed((3, 1, 2), (0.9, 0.8, 0.1)), Fixed((1, 2, 4), (0.2, 0.1, 0.0)), 60, 5))
    assert skill == [1, 2, 3, 4, -1]
    top = 2 / 61
    share = [(1 / 62 + 1 / 61) / top, (1 / 63 + 1 / 62) / top, (1 / 61) / top, (1 / 63) / top]
    assert similarity == pytest.approx([0.9 * x for x in share] + [0.0], abs=2**-16)


def test_what_both_put_first_has_the_larger_of_their_similarities() -> None:
    skill, similarity = routed(Hybrid(Fixed((6, 5), (0.25, 0.125)), Fixed((6, -1), (0.75, 0.0)), 60, 1))
    assert skill == [6]
    assert similarity == [0.75]


def test_equal_sums_are_ordered_by_id_even_if_nothing_is_similar() -> None:
    skill, similarity = routed(Hybrid(Fixed((7, 2), (0.0, 0.0)), Fixed((2, 7), (0.0, 0.0)), 60, 3))
    assert skill == [2, 7, -1]
    assert similarity == [0, 0, 0]


def test_a_skill_that_comes_later_is_never_first_only_because_similarities_are_zero() -> None:
    skill, _ = routed(Hybrid(Fixed((7, 2), (0.0, 0.0)), Fixed((7, 2), (0.0, 0.0)), 60, 2))
    assert skill == [7, 2]


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_a_router_with_itself_keeps_its_order_and_its_best_similarity(seed: int) -> None:
    rng = np.random.default_rng(seed)
    books = samples.ragged(rng, 40, 60, texts=100, skills=20)
    query = samples.query(rng.integers(0, 100, 40).astype(np.int32), samples.table(rng, 100), books)
    alone = MaxSim(5).route(query, books)
    twice = Hybrid(MaxSim(5), MaxSim(5), 60, 5).route(query, books)
    assert np.array_equal(twice.skill, alone.skill)
    assert np.array_equal(twice.similarity[:, 0], alone.similarity[:, 0])


def test_it_sees_the_truth_exactly_if_a_part_does() -> None:
    assert Hybrid(RightSkill(near=False), KNN(5, 5), 60, 5).sees_truth
    assert not Hybrid(MaxSim(5), KNN(5, 5), 60, 5).sees_truth


@pytest.mark.parametrize(
    ("constant", "top_k", "says"), [(60, 0, "top_k=0"), (-1, 5, "constant=-1"), (float("inf"), 5, "inf")]
)
def test_parameters_that_make_no_sense_are_refused(constant: float, top_k: int, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Hybrid(MaxSim(5), MaxSim(5), constant, top_k)
