"""The skills that a model could have read: those of the prompt, in its order, up to its limit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.core.shortlist import max_dots
from skg_bench.core.texts import Texts
from skg_bench.core.types import Query, Skillbooks
from skg_bench.router.in_prompt import InPrompt
from skg_bench.skillbook.prompt_layout import SkillOrder
from skg_bench.skillbook.rendering import render
from skg_bench.skillbook.skillbook import Skill, Skillbook
from tests.core import samples

USERS = 30
seeds = st.integers(0, 2**32)


def world(seed: int) -> tuple[Query, Skillbooks]:
    """Books in which some skills say something, at very different lengths."""
    rng = np.random.default_rng(seed)
    texts = Texts([], [], None)
    words = [Content("context", f"issue {i} " + "x" * int(rng.integers(0, 300))) for i in range(30)]
    keys = np.array([0, *(texts.contents.add(content) for content in words)], np.uint64)
    books = samples.ragged(rng, USERS, 60, skills=25)
    said = keys[rng.integers(0, len(keys), books.active.shape)]
    books = replace(books, content=np.where(books.active | (rng.random(said.shape) < 0.5), said, 0))
    counter = rng.integers(0, 3, books.active.shape).astype(np.int32) * rng.choice([1, 60], books.active.shape)
    books = replace(books, ok=counter.astype(np.int32), miss=np.minimum(books.miss, 2))
    text = rng.integers(0, 40, USERS).astype(np.int32)
    return replace(samples.query(text, samples.table(rng, 100, 32), books), contents=texts.contents), books


def book_of(books: Skillbooks, query: Query, row: int) -> Skillbook:
    """A user's book as a value."""
    n = int(books.n_skills[row])
    columns = (books.active, books.uses, books.ok, books.partial, books.miss)
    values = zip(*(column[row, :n].tolist() for column in columns), strict=True)
    words = query.contents.of(books.content[row, :n])
    return Skillbook(
        tuple(
            Skill(i, "", -1, (), active, uses, ok, partial, miss, 0, 0, 0, (0,) * 8, 0, -1, content)
            for i, ((active, uses, ok, partial, miss), content) in enumerate(zip(values, words, strict=True))
        )
    )


@pytest.mark.req("P13", "P14", "P45")
@pytest.mark.parametrize("order", ["evidence", "inserted"])
@settings(deadline=None, max_examples=25)
@given(seed=seeds, limit=st.integers(100, 4000))
def test_the_shortlist_is_what_the_rendered_book_holds(order: SkillOrder, seed: int, limit: int) -> None:
    query, books = world(seed)
    listed = InPrompt(order, limit, 40).route(query, books).skill
    for row in range(USERS):
        expected = render(book_of(books, query, row), limit, order).skills
        assert listed[row][listed[row] >= 0].tolist() == list(expected)
    short = InPrompt(order, limit, 3).route(query, books).skill
    assert np.array_equal(short, listed[:, :3])


def test_the_limit_cuts_some_books_and_not_others() -> None:
    query, books = world(1)
    inside = (books.active & (books.content != 0)).sum(axis=1)
    n = (InPrompt("evidence", 1500, 40).route(query, books).skill >= 0).sum(axis=1)
    assert (n < inside).sum() > 5
    assert (n == inside).sum() > 5


def test_similarity_is_maxsim_and_orders_nothing() -> None:
    query, books = world(2)
    made = InPrompt("evidence", 8000, 16).route(query, books)
    dots = max_dots(query, books)
    rows = np.arange(USERS)[:, None]
    expected = np.where(made.skill >= 0, np.clip(dots[rows, made.skill] / 4000.0**2, 0, 1), 0.0)
    assert made.similarity == pytest.approx(expected, abs=2.0**-16)
    assert (np.diff(made.similarity, axis=1) > 0).any()


@settings(deadline=None, max_examples=15)
@given(seed=seeds)
def test_a_user_is_routed_the_same_alone_and_among_others(seed: int) -> None:
    query, books = world(seed)
    router = InPrompt("evidence", 900, 5)
    whole = router.route(query, books)
    order = np.random.default_rng(seed).permutation(USERS)
    for rows in (order, order[:7], order[:1]):
        some = router.route(replace(samples.some_queries(query, rows)), samples.some(books, rows))
        assert np.array_equal(some.skill, whole.skill[rows])
        assert np.array_equal(some.similarity, whole.similarity[rows])


def test_skills_that_say_nothing_are_in_no_prompt() -> None:
    query, books = world(3)
    router = InPrompt("evidence", 8000, 16)
    silent = replace(books, content=np.zeros_like(books.content))
    assert (router.route(query, silent).skill == -1).all()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (("random", 8000, 16), "router.order='random', valid are evidence, inserted"),
        (("evidence", 99, 16), "router.limit=99 characters hold no skill; valid are at least 100"),
        (("evidence", 8000, 0), "router.top_k=0 must be at least 1"),
    ],
)
def test_orders_limits_and_lengths_that_are_none_are_refused_by_name(values: Any, says: str) -> None:
    with pytest.raises(UsageError) as error:
        InPrompt(*values)
    assert says in str(error.value)
