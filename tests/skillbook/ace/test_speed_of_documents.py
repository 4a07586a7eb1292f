"""What `experiments/bench/speed/documents.py` times is work: each batch changes the book."""

from experiments.bench.speed.documents import SIZES, WAYS, batches, rows
from skg_bench.skillbook.ace.book import AceBook, to_dict
from skg_bench.skillbook.ace.strict import strict
from tests.skillbook.ace.test_strict import ADD, batch


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
