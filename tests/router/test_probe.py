"""The probe on captured messages: scores against a library's ridge regression, order of storage, what it finds."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.embedding_grid import quantise
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import UNIT
from skg_bench.core.types import Shortlist
from skg_bench.engine.vectors import SimilarityTable
from skg_bench.router.centroid import Centroid
from skg_bench.router.maxsim import MaxSim
from skg_bench.router.probe import Probe
from tests.core import samples
from tests.router.regressions import world

seeds = st.integers(0, 2**32)


@settings(deadline=None, max_examples=10)
@given(seed=seeds, l2=st.floats(0.05, 5))
def test_scores_are_those_of_a_ridge_regression_on_who_an_example_belongs_to(seed: int, l2: float) -> None:
    from sklearn.linear_model import Ridge  # takes long to import

    query, books, real = world(seed)
    made = Probe(70, 25, l2).route(query, books)
    for u in range(20):
        known = np.flatnonzero(books.active[u, books.examples.skill[u, : books.examples.count[u]]])
        skill = books.examples.skill[u, known]
        listed = made.skill[u][made.skill[u] >= 0]
        assert sorted(listed.tolist()) == sorted(set(skill.tolist()))
        for k, s in enumerate(listed):
            ridge = Ridge(alpha=l2, fit_intercept=False, tol=1e-12).fit(real[books.examples.text[u, known]], skill == s)
            expected = float(ridge.predict(real[query.text[[u]]])[0])
            assert made.similarity[u, k] == pytest.approx(min(max(expected, 0.0), 1.0), abs=2 * UNIT)


@settings(deadline=None, max_examples=10)
@given(seed=seeds, neighbours=st.integers(1, 30))
def test_the_order_in_which_a_book_stores_its_examples_changes_no_bit(seed: int, neighbours: int) -> None:
    """Though the same message may be an example of two skills, or twice of one."""
    query, books, _ = world(seed)
    rng = np.random.default_rng(seed)
    books = samples.with_examples(books, text=books.examples.text % 6)
    kept = books.examples
    beyond = np.arange(kept.text.shape[1]) >= kept.count[:, None]
    order = np.argsort(beyond + 0.5 * rng.random(kept.text.shape), axis=1)
    example, skill = (np.take_along_axis(a, order, axis=1) for a in (kept.text, kept.skill))
    first, other = (
        Probe(5, neighbours, 0.3).route(samples.asked_with(query, b), b)
        for b in (books, samples.with_examples(books, text=example, skill=skill))
    )
    assert np.array_equal(first.skill, other.skill)
    assert np.array_equal(first.similarity, other.similarity)


ASKED, NEAREST, LEFT, RIGHT = range(4)  # LEFT and RIGHT are equally near to ASKED, and only LEFT is near to NEAREST
IDS = list(permutations(range(4)))
GRID = np.array([[4000, 0], [3200, 2400], [2400, 3200], [2400, -3200]], np.float32)


def found_by_two(ids: Sequence[int], example: Sequence[int], skill: Sequence[int]) -> Shortlist:
    """What two neighbours give for ASKED in a book of these texts, which are known by `ids`."""
    named = np.array(ids, np.int32)
    n, vectors = len(example), GRID[np.argsort(named)]
    books = samples.ragged(np.random.default_rng(0), 1, 1)
    books = samples.with_examples(
        replace(books, n_skills=np.full(1, 3, np.int32), active=np.ones((1, 3), np.bool_)),
        count=np.full(1, n, np.int32), text=named[[example]], skill=np.array([skill], np.int32),
    )  # fmt: skip
    return Probe(3, 2, 0.3).route(samples.query(named[[ASKED]], SimilarityTable(vectors @ vectors.T), books), books)


@pytest.mark.parametrize("ids", IDS)
def test_of_equally_near_examples_the_one_of_the_first_skill_is_a_neighbour(ids: tuple[int, ...]) -> None:
    assert set(found_by_two(ids, [NEAREST, LEFT, RIGHT], [0, 2, 1]).skill[0].tolist()) == {0, 1, -1}
    assert set(found_by_two(ids, [NEAREST, LEFT, RIGHT], [0, 1, 2]).skill[0].tolist()) == {0, 1, -1}
    assert set(found_by_two(ids, [LEFT, RIGHT, NEAREST], [1, 0, 2]).skill[0].tolist()) == {0, 2, -1}


@pytest.mark.parametrize("ids", IDS)
def test_of_equally_near_examples_of_a_skill_the_oldest_is_a_neighbour(ids: tuple[int, ...]) -> None:
    left, right = (found_by_two(ids, [NEAREST, e], [0, 0]).similarity.tolist() for e in (LEFT, RIGHT))
    assert left != right
    assert found_by_two(ids, [NEAREST, LEFT, RIGHT], [0, 0, 0]).similarity.tolist() == left
    assert found_by_two(ids, [NEAREST, RIGHT, LEFT], [0, 0, 0]).similarity.tolist() == right


@pytest.mark.req("K10")
def test_it_finds_the_skill_of_messages_that_maxsim_and_centroid_mistake() -> None:
    """Skills differ in a small part of what is said; the rest is shared by all, and loud."""
    rng = np.random.default_rng(0)
    skills, each, width = 6, 5, 64
    signs, loud = rng.standard_normal((skills, width)), rng.standard_normal((4, width))
    owner = np.repeat(np.arange(skills), each)
    truth = np.concatenate([owner, np.tile(np.arange(skills), 50)])
    raw = (
        0.8 * signs[truth]
        + 2.5 * rng.standard_normal((len(truth), 4)) @ loud / 2
        + 0.8 * rng.standard_normal((len(truth), width))
    )
    vectors = quantise(raw)
    wide = vectors.astype(np.float32)
    n, users = len(owner), skills * 50
    books = samples.ragged(rng, users, 1, texts=n, skills=1)
    known = np.ones((users, skills), np.bool_)
    books = samples.with_examples(
        replace(books, n_skills=np.full(users, skills, np.int32), active=known),
        count=np.full(users, n, np.int32), text=np.tile(np.arange(n, dtype=np.int32), (users, 1)),
        skill=np.tile(owner.astype(np.int32), (users, 1)),
    )  # fmt: skip
    square = np.stack([(vectors[:n][owner == s].astype(np.int64).sum(axis=0) ** 2).sum() for s in range(skills)])
    books = samples.with_examples(books, square=np.tile(square, (users, 1)))
    query = samples.query(np.arange(n, n + users, dtype=np.int32), SimilarityTable(wide @ wide.T), books)
    right = {
        type(router).__name__: float((router.route(query, books).skill[:, 0] == truth[n:]).mean())
        for router in (Probe(5, 32, 0.3), MaxSim(5), Centroid(5))
    }
    assert right["Probe"] > 0.8
    assert right["Probe"] > max(right["MaxSim"], right["Centroid"]) + 0.1, right


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [((0, 1, 1.0), r"router\.top_k=0"), ((1, 0, 1.0), r"router\.neighbours=0"), ((1, 1, 0.0), r"router\.l2=0\.0")],
)
def test_parameters_out_of_range_are_refused_by_name(parameters: tuple[int, int, float], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        Probe(*parameters)
