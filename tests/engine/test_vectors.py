"""Similarities are the same exact integers however they are come by."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.embedding_grid import check
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import SCALE
from skg_bench.core.texts import Embedding, Texts
from skg_bench.embedder.hashing import Hashing
from skg_bench.engine.vectors import Pinned, Rows, SimilarityTable, WithWritten, open_table, write_table
from tests.core import samples


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 300), st.integers(0, 60), st.sampled_from([3, 32, 384, 1024]))
@pytest.mark.req("K08")
def test_looked_up_kept_and_pinned_similarities_are_equal(seed: int, b: int, e: int, width: int) -> None:
    """Users leave from the end, books grow, and a row's examples may be others than before."""
    rng = np.random.default_rng(seed)
    vectors = samples.vectors(rng, 90, width)
    whole = vectors.astype(np.int64)
    table, kept = SimilarityTable(vectors.astype(np.float32) @ vectors.astype(np.float32).T), Rows(vectors)
    partly, converted = Rows(vectors, kept_bytes=11 * 4 * b * width), Rows(vectors, kept_bytes=0)
    example = rng.integers(0, 90, (b, 60)).astype(np.int32)
    for step in range(3):
        here, known = max(1, b - step * b // 3), min(60, e + step * 7)
        if step == 2:
            example = rng.permutation(example)
        query, shown = rng.integers(0, 90, here).astype(np.int32), example[:here, :known]
        exact = np.einsum("bd,bed->be", whole[query], whole[shown])
        for dots in (similarity.dots(query, shown) for similarity in (table, kept, partly, converted)):
            assert dots.dtype == np.float32
            assert np.array_equal(dots, exact)
        for u in (0, here - 1):
            dots = Pinned(vectors, shown[u]).dots(query[u : u + 1], shown[u : u + 1])
            assert dots.dtype == np.float32
            assert np.array_equal(dots, exact[u : u + 1])
        among = np.einsum("bed,bfd->bef", whole[shown[:9, :20]], whole[shown[:9, :20]])
        for similarity in (table, kept, Pinned(vectors, shown[0])):
            assert np.array_equal(similarity.gram(shown[:9, :20]), among)


def test_examples_of_large_books_take_no_more_memory_than_they_may() -> None:
    """300 users with 400 examples of 384 float32 each would take 176 MiB."""
    rng = np.random.default_rng(0)
    rows, query = Rows(samples.vectors(rng, 500, 384), kept_bytes=2**24), np.arange(300, dtype=np.int32)
    example = rng.integers(0, 500, (300, 400)).astype(np.int32)
    tracemalloc.start()
    try:
        for books in (100, 200, 300, 400):
            rows.dots(query, example[:, :books])
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 2.5 * 2**24


def test_beyond_the_end_of_a_large_book_products_are_numbers() -> None:
    example = np.full((2, 700), -1, np.int32)
    example[0, :300], example[1, :2] = 0, 1
    vectors = samples.vectors(np.random.default_rng(0), 2, 32)
    dots = Rows(vectors, kept_bytes=0).dots(np.arange(2, dtype=np.int32), example)
    own = (vectors.astype(np.int64) ** 2).sum(axis=1)
    assert [row[row != 0].tolist() for row in dots] == [[own[0]] * 300, [own[1]] * 2]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.booleans())
def test_products_of_written_texts_are_computed_and_others_are_as_they_are(seed: int, looked_up: bool) -> None:
    """Places beyond the end of a book, -1, may have any product."""
    rng, hashing = np.random.default_rng(seed), Hashing(64, 0)
    messages, names = [f"message {i}" for i in range(30)], ["name", "other"]
    vectors = hashing.embed(messages)
    wide = vectors.astype(np.float32)
    texts = Texts(messages, names, Embedding(lambda: vectors, hashing))
    similarity = WithWritten(SimilarityTable(wide @ wide.T) if looked_up else Rows(vectors), texts)
    every = vectors.astype(np.int64)
    for _ in range(3):
        example = rng.integers(-1, len(every), (9, 12)).astype(np.int32)
        query = rng.integers(0, len(every), 9).astype(np.int32)
        exact, known = np.einsum("bd,bed->be", every[query], every[example]), example >= 0
        dots = similarity.dots(query, example)
        assert dots.dtype == np.float32
        assert np.array_equal(dots[known], exact[known])
        assert np.array_equal(similarity.pairs(query, query[::-1]), (every[query] * every[query[::-1]]).sum(axis=1))
        whole = np.abs(example)
        assert np.array_equal(similarity.gram(whole), np.einsum("bed,bfd->bef", every[whole], every[whole]))
        more = [f"note {i}" for i in rng.integers(0, 99, rng.integers(0, 4))]
        texts.know(np.append(texts.add(more), np.arange(30, 32, dtype=np.int32)))
        every = hashing.embed(texts.read(np.arange(len(texts), dtype=np.int32))).astype(np.int64)


def test_the_table_on_disk_is_the_table(tmp_path: Path) -> None:
    vectors = samples.vectors(np.random.default_rng(0), 2100, 384)  # more than two blocks
    write_table(vectors, tmp_path / "table.npy")
    table = open_table(tmp_path / "table.npy").table
    whole = vectors.astype(np.float64)
    assert np.array_equal(table.astype(np.float64), whole @ whole.T)
    assert not table.flags.writeable


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_table_that_does_not_fit_on_the_disk_is_an_error_and_not_the_end_of_the_process() -> None:
    with pytest.raises(OSError, match="No space left"):
        write_table(samples.vectors(np.random.default_rng(0), 2100, 16), Path("/dev/full"))


@pytest.mark.parametrize(
    ("vectors", "says"),
    [
        (np.ones((3, 4), np.float32), r"float32 \(3, 4\) for 3 texts"),
        (np.ones((2, 4), np.int16), r"int16 \(2, 4\) for 3 texts"),
        (np.ones(3, np.int16), r"int16 \(3,\)"),
    ],
)
def test_vectors_of_another_kind_are_refused(vectors: np.ndarray, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check(vectors, 3)


def test_vectors_off_the_grid_are_refused_as_their_sums_would_not_be_exact() -> None:
    vectors = samples.vectors(np.random.default_rng(0), 3, 384)
    check(vectors, 3)
    for row in (np.zeros(384, np.int16), np.full(384, 3000, np.int16), vectors[1] * np.int16(2), vectors[1] // 8):
        wrong = vectors.copy()
        wrong[1] = row
        with pytest.raises(UsageError, match=rf"row 1 has length .*{SCALE:.0f}"):
            check(wrong, 3)
