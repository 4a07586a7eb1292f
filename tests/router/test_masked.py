"""What a masked router does not find, and that it finds the rest as the router inside does."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.errors import UsageError
from skg_bench.core.types import Router
from skg_bench.engine.vectors import SimilarityTable
from skg_bench.router.exact import Exact
from skg_bench.router.frequency import Frequency
from skg_bench.router.masked import Masked
from skg_bench.router.maxsim import MaxSim
from tests.core import samples

TEXTS = 40
INSIDE: list[Router] = [MaxSim(70), Frequency(70), Exact(70)]
seeds = st.integers(0, 2**32)


@pytest.mark.parametrize("inside", INSIDE, ids=repr)
@settings(deadline=None, max_examples=10)
@given(seed=seeds, skill=st.integers(0, 14))
def test_the_skill_alone_is_missing_and_the_rest_keeps_its_order(inside: Router, seed: int, skill: int) -> None:
    rng = np.random.default_rng(seed)
    books = samples.ragged(rng, 30, 60, texts=TEXTS, skills=12)
    query = samples.query(rng.integers(0, TEXTS, 30).astype(np.int32), samples.table(rng, TEXTS, 64), books)
    whole, rest = inside.route(query, books), Masked(inside, skill, None).route(query, books)
    for u in range(30):
        kept = (whole.skill[u] >= 0) & (whole.skill[u] != skill)
        n = int(kept.sum())
        assert rest.skill[u, :n].tolist() == whole.skill[u][kept].tolist()
        assert rest.similarity[u, :n].tolist() == whole.similarity[u][kept].tolist()
        assert (rest.skill[u, n:] == -1).all()


def test_another_skill_takes_the_place_of_the_one_that_is_masked() -> None:
    rng = np.random.default_rng(1)
    books = samples.ragged(rng, 40, 60, texts=TEXTS, skills=12)
    query = samples.query(rng.integers(0, TEXTS, 40).astype(np.int32), samples.table(rng, TEXTS, 64), books)
    whole, rest = MaxSim(5).route(query, books), Masked(MaxSim(5), 0, None).route(query, books)
    crowded = (whole.skill == 0).any(axis=1) & (books.active.sum(axis=1) > 5)
    assert crowded.any()
    assert (rest.skill[crowded] >= 0).all()


@settings(deadline=None, max_examples=15)
@given(seed=seeds, skill=st.integers(0, 5), lineage=st.sampled_from([0.25, 0.5, 0.875, 1.0]))
def test_a_lineage_is_every_skill_with_an_example_near_the_first_of_the_skill(
    seed: int, skill: int, lineage: float
) -> None:
    rng = np.random.default_rng(seed)
    books = samples.ragged(rng, 20, 30, texts=TEXTS, skills=10)
    vectors = samples.vectors(rng, TEXTS, 64).astype(np.float64) / 4000.0
    grid = (vectors * 4000).astype(np.float32)
    query = samples.query(rng.integers(0, TEXTS, 20).astype(np.int32), SimilarityTable(grid @ grid.T), books)
    skills = Masked(MaxSim(70), skill, lineage).route(query, books).skill
    for u in range(20):
        examples = list(zip(books.examples.text[u, : books.examples.count[u]], books.examples.skill[u], strict=False))
        first = next((text for text, s in examples if s == skill), None)
        gone = {skill}
        if first is not None:
            gone |= {int(s) for text, s in examples if vectors[text] @ vectors[first] >= lineage - 2.0**-17}
        left = set(np.flatnonzero(books.active[u]).tolist()) - gone
        assert set(skills[u][skills[u] >= 0].tolist()) == left


def test_a_book_that_never_had_the_skill_is_routed_as_it_is() -> None:
    rng = np.random.default_rng(3)
    books = samples.ragged(rng, 20, 30, texts=TEXTS, skills=10)
    query = samples.query(rng.integers(0, TEXTS, 20).astype(np.int32), samples.table(rng, TEXTS, 64), books)
    whole = MaxSim(5).route(query, books)
    for lineage in (None, 0.1):
        assert np.array_equal(Masked(MaxSim(5), 99, lineage).route(query, books).skill, whole.skill)


def test_the_book_that_it_was_given_stays_as_it_was() -> None:
    rng = np.random.default_rng(4)
    books = samples.ragged(rng, 20, 30, texts=TEXTS, skills=10)
    before = replace(books, active=books.active.copy())
    query = samples.query(rng.integers(0, TEXTS, 20).astype(np.int32), samples.table(rng, TEXTS, 64), books)
    Masked(MaxSim(5), 0, 0.2).route(query, books)
    assert np.array_equal(books.active, before.active)


def test_its_shortlist_is_as_long_as_that_of_the_router_inside() -> None:
    assert Masked(MaxSim(7), 0, None).top_k == 7


@pytest.mark.parametrize(
    ("skill", "lineage", "message"),
    [(-1, None, r"router\.skill=-1 must not be negative"), (0, 1.5, r"router\.lineage=1\.5 must lie in \[0, 1\]")],
)
def test_values_out_of_range_are_refused_by_name(skill: int, lineage: float | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Masked(MaxSim(5), skill, lineage)
