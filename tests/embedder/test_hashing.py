"""Vectors of words and their parts: no model, the same bits everywhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import SCALE
from skg_bench.embedder import hashing
from skg_bench.embedder.hashing import Hashing

TEXTS = ["turn on the light", "switch the light on", "weather in oslo tomorrow"]


def test_the_bits_are_these_on_any_machine() -> None:
    assert Hashing(64, 0).embed(["turn on the light"])[0, :8].tolist() == [278, 0, -556, -556, 556, 556, -278, 0]


def test_texts_that_share_words_are_near_and_others_are_not() -> None:
    vectors = Hashing(384, 0).embed(TEXTS).astype(np.float64) / SCALE
    cosine = vectors @ vectors.T
    assert cosine[0, 1] > 0.5
    assert abs(cosine[0, 2]) < 0.3
    assert Hashing(384, 0).embed(["Turn ON, the light!"]).tolist() == Hashing(384, 0).embed(TEXTS[:1]).tolist()


@settings(deadline=None, max_examples=30)
@given(st.lists(st.text(max_size=40), max_size=12), st.integers(0, 3))
def test_any_text_has_a_vector_of_its_own_on_the_grid(texts: list[str], key: int) -> None:
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    embedder = Hashing(128, key)
    vectors = embedder.embed(texts)
    assert vectors.dtype == np.int16
    assert vectors.shape == (len(texts), 128)
    assert (np.abs(np.linalg.norm(vectors.astype(np.float64), axis=1) - SCALE) < 1 + 0.5 * np.sqrt(128)).all()
    for row, text in zip(vectors, texts, strict=True):
        assert np.array_equal(embedder.embed([text])[0], row)


def test_texts_are_embedded_some_at_a_time_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Hashing(64, 0).embed(TEXTS)
    monkeypatch.setattr(hashing, "_TOGETHER", 2)
    assert np.array_equal(Hashing(64, 0).embed(TEXTS), whole)


def test_another_key_gives_other_vectors_and_another_digest() -> None:
    first, other = Hashing(384, 0), Hashing(384, 1)
    assert first.digest != other.digest
    dots = (first.embed(TEXTS).astype(np.float64) * other.embed(TEXTS)).sum(axis=1) / SCALE**2
    assert np.abs(dots).max() < 0.3


@pytest.mark.parametrize("dimensions", [0, -64, 100])
def test_dimensions_come_in_words_of_a_hash(dimensions: int) -> None:
    with pytest.raises(UsageError, match=rf"embedder\.dimensions={dimensions} must be a multiple of 64, such as 384"):
        Hashing(dimensions, 0)
