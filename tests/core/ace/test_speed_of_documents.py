"""What `experiments/speed/documents.py` times is work: each batch changes the book."""

from experiments.speed.documents import SIZES, WAYS, batches, rate, rows
from skg_bench.core.ace.book import AceBook, to_dict
from skg_bench.core.ace.strict import strict
from tests.core.ace.test_strict import ADD, batch


def test_every_batch_that_is_timed_changes_the_book() -> None:
    for step in WAYS.values():
        book = strict(AceBook("v2"), batch(*[ADD] * 3), "")
        for work in batches(3, 6):
            before, book = book, step(book, work)
            assert to_dict(book) != to_dict(before)


def test_there_is_a_row_for_each_size_and_way() -> None:
    assert [row[0] for row in rows(count=20)] == [
        f"documents of {skills} skills, {name}" for skills in SIZES for name in WAYS
    ]


def test_the_cost_of_an_operation_does_not_grow_with_the_book() -> None:
    """A batch copies 100 references, small beside parsing it; to copy 100 skills would cost 30 times as much."""
    for step in WAYS.values():
        assert rate(step, 10, 2_000) < 3 * rate(step, 100, 2_000)
