"""Prompts of skillbooks: order, limit, and what is inside."""

import pytest

from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.skillbook.prompt_layout import TRUNCATED
from skg_bench.skillbook.rendering import render
from skg_bench.skillbook.skillbook import Operation, Skillbook, apply


def advice(i: int, *, ok: int = 0, partial: int = 0, miss: int = 0, size: int = 30) -> list[Operation]:
    """Operations that add skill `i` with these counters."""
    added = Operation("ADD", i, i, name=f"n{i}", content=Content("context", f"issue {i} " + "x" * size, f"do {i}"))
    rated = [("ok", ok), ("partial", partial), ("miss", miss)]
    return [added, *(Operation("TAG", i, i, rating=rating) for rating, n in rated for _ in range(n))]


def book_of(*parts: list[Operation]) -> Skillbook:
    book = Skillbook()
    for operation in (operation for part in parts for operation in part):
        book = apply(book, [operation])
    return book


MIXED = book_of(advice(0, miss=3), advice(1), advice(2, ok=4, miss=1), advice(3, ok=1), advice(4, ok=8, miss=3))


@pytest.mark.req("P14")
def test_what_helped_comes_first_and_what_harmed_last() -> None:
    assert render(MIXED).skills == (2, 4, 3, 1, 0)  # posterior means 5/7, 9/13, 2/3, 1/2, 1/5


def test_of_equal_means_the_one_with_more_evidence_comes_first_and_then_the_older_one() -> None:
    book = book_of(advice(0, ok=1, miss=1), advice(1, ok=2, miss=2), advice(2), advice(3, ok=2, miss=2))
    assert render(book).skills == (1, 3, 0, 2)


@pytest.mark.req("P14")
def test_the_order_of_the_published_engine_knows_no_counters() -> None:
    assert render(MIXED, order="inserted").skills == (0, 1, 2, 3, 4)


def test_neutral_uses_count_for_nothing() -> None:
    assert render(book_of(advice(0), advice(1, partial=9))).skills == (0, 1)


@pytest.mark.req("P13", "U06")
def test_a_long_book_is_cut_between_skills_and_says_so() -> None:
    whole = render(MIXED)
    assert TRUNCATED not in whole.text
    assert whole.text.startswith("[context-00003] context\nIssue: issue 2 ")
    for limit in range(len(TRUNCATED), len(whole.text)):
        part = render(MIXED, limit)
        assert len(part.text) <= limit
        assert part.text.endswith(TRUNCATED)
        assert part.skills == whole.skills[: len(part.skills)]
        kept = part.text.removesuffix(TRUNCATED)
        assert whole.text.startswith(kept)
        assert kept.count("Helpful") == len(part.skills)
        following = render(MIXED, len(part.text) + len(TRUNCATED) + 200)
        assert len(following.skills) > len(part.skills)
    assert render(MIXED, len(whole.text)) == whole


def test_removed_skills_and_stored_answers_are_not_in_the_prompt() -> None:
    silent = [Operation("ADD", 0, 0, name="stored", message="hello", source_turn=3)]
    book = book_of(silent, advice(1), advice(2), [Operation("REMOVE", 1, 9)])
    assert render(book).skills == (2,)
    assert render(book_of(silent)).text == ""


def test_tokens_are_estimated_from_the_words_that_are_there() -> None:
    rendered = render(MIXED)
    assert rendered.tokens == round(1.3 * len(rendered.text.split())) > 50


def test_other_orders_and_limits_without_room_are_refused() -> None:
    with pytest.raises(UsageError, match="order='random', valid are evidence, inserted"):
        render(MIXED, order="random")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="limit=10: a prompt needs room for"):
        render(MIXED, limit=10)
