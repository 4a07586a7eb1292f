"""The recipe as a router: scores against a library's kernel ridge regression, order of storage, what it finds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import UNIT
from skg_bench.core.types import Query, Skillbooks
from skg_bench.engine.vectors import SimilarityTable
from skg_bench.router.maxsim import MaxSim
from skg_bench.router.recipe import Recipe
from tests.core import samples
from tests.router.regressions import world

seeds = st.integers(0, 2**32)
GRID = np.array([[4000, 0], [3200, 2400], [2400, 3200], [0, 4000], [2400, -3200]], np.float32)


def planar(asked: int, example: list[int], skill: list[int]) -> tuple[Query, Skillbooks]:
    """One user whose messages are rows of GRID."""
    books = samples.ragged(np.random.default_rng(0), 1, 1)
    books = samples.with_examples(
        replace(books, n_skills=np.full(1, 3, np.int32), active=np.ones((1, 3), np.bool_)),
        count=np.full(1, len(example), np.int32), text=np.array([example], np.int32),
        skill=np.array([skill], np.int32),
    )  # fmt: skip
    return samples.query(np.array([asked], np.int32), SimilarityTable(GRID @ GRID.T), books), books


@settings(deadline=None, max_examples=10)
@given(seed=seeds, width=st.floats(0.5, 16), ridge=st.floats(0.05, 5))
def test_scores_are_those_of_a_weighted_kernel_ridge_regression(seed: int, width: float, ridge: float) -> None:
    """scikit-learn divides the penalty by a sample's weight, which is that of its skill's size here."""
    query, books, real = world(seed)
    made = Recipe(70, 25, width, ridge).route(query, books)

    def kernel(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.exp(width * (x @ y - 1.0)))

    for u in range(20):
        known = np.flatnonzero(books.active[u, books.examples.skill[u, : books.examples.count[u]]])
        skill = books.examples.skill[u, known]
        listed = made.skill[u][made.skill[u] >= 0]
        assert sorted(listed.tolist()) == sorted(set(skill.tolist()))
        if not len(known):
            continue
        sizes = np.bincount(skill)
        weight = np.median(sizes[sizes > 0]) / sizes[skill]
        for k, s in enumerate(listed):
            fitted = KernelRidge(alpha=ridge, kernel=kernel).fit(
                real[books.examples.text[u, known]], skill == s, weight
            )
            score = (1.0 + ridge) * float(fitted.predict(real[query.text[[u]]])[0])
            expected = 1.0 + np.log(score) / width if score > 1e-9 else 0.0
            if not 0 < score < 1e-6:  # else rounding of the kernel decides
                assert made.similarity[u, k] == pytest.approx(np.clip(expected, 0.0, 1.0), abs=1e-4)


@settings(deadline=None, max_examples=10)
@given(seed=seeds, neighbours=st.integers(1, 30))
def test_the_order_in_which_a_book_stores_its_examples_changes_no_bit(seed: int, neighbours: int) -> None:
    query, books, _ = world(seed)
    books = samples.with_examples(
        books, text=books.examples.text % 6
    )  # so that a message is an example of two skills, or twice of one
    rng = np.random.default_rng(seed)
    beyond = np.arange(books.examples.text.shape[1]) >= books.examples.count[:, None]
    order = np.argsort(beyond + 0.5 * rng.random(books.examples.text.shape), axis=1)
    example, skill = (np.take_along_axis(a, order, axis=1) for a in (books.examples.text, books.examples.skill))
    first, other = (
        Recipe(5, neighbours, 4.0, 0.3).route(samples.asked_with(query, b), b)
        for b in (books, samples.with_examples(books, text=example, skill=skill))
    )
    assert np.array_equal(first.skill, other.skill)
    assert np.array_equal(first.similarity, other.similarity)


@pytest.mark.parametrize("width", [0.5, 4.0, 30.0])
@pytest.mark.parametrize("ridge", [0.1, 0.3, 3.0])
def test_similarity_to_the_only_example_is_the_cosine_as_of_maxsim(width: float, ridge: float) -> None:
    query, books = planar(0, [2], [1])
    made, nearest = (r.route(query, books) for r in (Recipe(5, 32, width, ridge), MaxSim(5)))
    assert made.skill.tolist() == nearest.skill.tolist()
    assert made.similarity[0, 0] == pytest.approx(nearest.similarity[0, 0], abs=2 * UNIT)


def test_an_example_of_another_skill_beside_the_message_lowers_a_similarity_and_does_not_change_maxsims() -> None:
    alone, beside = (planar(1, *book) for book in (([2], [1]), ([2, 0], [1, 0])))
    first, second = (Recipe(5, 32, 4.0, 0.3).route(*b) for b in (alone, beside))
    at = second.skill[0].tolist().index(1)
    assert second.similarity[0, at] < first.similarity[0, 0] - 0.01
    assert MaxSim(5).route(*beside).similarity[0, 0] == MaxSim(5).route(*alone).similarity[0, 0]


def test_a_second_example_on_the_messages_other_side_raises_a_similarity() -> None:
    one, two = (Recipe(5, 32, 4.0, 0.3).route(*planar(0, *book)) for book in (([1], [1]), ([1, 4], [1, 1])))
    assert two.similarity[0, 0] > one.similarity[0, 0]


def test_a_skill_captured_more_often_is_not_preferred_for_that() -> None:
    """Messages 1 and 4 mirror each other roughly; skill 0 has one of them four times over."""
    query, books = planar(0, [2, 2, 2, 2, 4], [0, 0, 0, 0, 1])
    weighed = Recipe(5, 32, 4.0, 0.3).route(query, books).similarity[0]
    assert abs(weighed[0] - weighed[1]) < 0.02  # 0.04 without the weights of skills


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ((0, 1, 1.0, 1.0), r"router\.top_k=0 must be at least 1"),
        ((1, 0, 1.0, 1.0), r"router\.neighbours=0 must be at least 1"),
        ((1, 1, 0.0, 1.0), r"router\.width=0\.0 must lie in \(0, 100\]"),
        ((1, 1, float("nan"), 1.0), r"router\.width=nan must lie"),
        ((1, 1, 1.0, 0.0), r"router\.ridge=0\.0 must lie in \[0\.001, 1000\]"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(parameters: tuple[int, int, float, float], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        Recipe(*parameters)
