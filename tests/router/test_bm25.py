"""BM25 over a user's own examples against the library bm25s, and the share of a verbatim repeat that it reports."""

from dataclasses import replace
from typing import Any

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.errors import UsageError
from skg_bench.core.types import Similarity
from skg_bench.core.vocabulary import vocabulary_of
from skg_bench.router.bm25 import BM25
from tests.core import samples
from tests.core.samples import MESSAGES

N = len(MESSAGES)
seeds = st.integers(0, 2**32)


def silent(rng: np.random.Generator) -> Similarity:
    return samples.table(rng, N, 8)  # BM25 does not look at vectors


@settings(deadline=None, max_examples=10)
@given(seed=seeds, k1=st.sampled_from([0.5, 1.2, 1.5, 2.0]), b=st.sampled_from([0.0, 0.4, 0.75, 1.0]))
def test_scores_are_those_of_the_library_in_units_of_a_verbatim_repeat(seed: int, k1: float, b: float) -> None:
    rng = np.random.default_rng(seed)
    books = samples.ragged(rng, 12, 60, texts=N, skills=30)
    query = samples.query(rng.integers(0, N, 12).astype(np.int32), silent(rng), books)
    made = BM25(40, k1, b).route(query, books)
    for u in range(12):
        active = [e for e in range(books.examples.count[u]) if books.active[u, books.examples.skill[u, e]]]
        corpus = [MESSAGES[books.examples.text[u, e]].split() for e in active]
        words = MESSAGES[query.text[u]].split()
        if corpus and 0 < np.mean([len(d) for d in corpus]) < 1:
            continue  # ours counts no fewer than one word a document on average, the library does
        if not words or not any(corpus):
            assert (made.skill[u] == -1).all()
            continue
        oracle: Any = bm25s.BM25(method="lucene", k1=k1, b=b)
        oracle.index(corpus, show_progress=False)
        known = [w for w in words if w in oracle.vocab_dict]
        scores = oracle.get_scores(known) if known else np.zeros(len(corpus))
        # a repeat as one more document of the same collection: its score by the same formula
        mean, n = np.mean([len(d) for d in corpus]), len(corpus)
        repeat: float = 0.0
        for w in words:
            having, often = sum(w in d for d in corpus), words.count(w)
            idf = np.log(1 + (n - having + 0.5) / (having + 0.5))
            repeat += idf * often / (often + k1 * (1 - b + b * len(words) / max(float(mean), 1.0)))
        best: dict[int, float] = {}
        for e, score in zip(active, scores, strict=True):
            s = int(books.examples.skill[u, e])
            best[s] = max(best.get(s, 0.0), min(float(score) / repeat, 1.0))
        expected = {s: x for s, x in best.items() if x > 2**-16}
        shares = {int(s): x for s, x in zip(made.skill[u], made.similarity[u], strict=True) if s >= 0}
        assert shares == pytest.approx(expected, abs=2e-4)


def test_a_verbatim_repeat_has_similarity_one_and_no_word_in_common_finds_nothing() -> None:
    words = vocabulary_of(["turn on the kitchen lights", "Turn ON the kitchen lights!", "what is my balance", "", "?!"])
    rng = np.random.default_rng(0)
    books = samples.ragged(rng, 1, 1, texts=1)
    books = replace(books, active=np.arange(books.active.shape[1])[None] == 0)
    nothing = np.zeros_like(books.examples.text)
    books = samples.with_examples(books, count=np.ones(1, np.int32), text=nothing, skill=nothing)
    made = {}
    for text in range(5):
        query = samples.asked_with(samples.query(np.array([text], np.int32), silent(rng), books), books, words=words)
        made[text] = BM25(1, 1.5, 0.75).route(query, books)
    assert [made[t].similarity.item() for t in range(5)] == [1, 1, 0, 0, 0]
    assert [made[t].skill.item() for t in range(5)] == [0, 0, -1, -1, -1]


def test_an_opposite_is_nearly_a_repeat_as_its_words_are_the_same() -> None:
    """What vectors share with words: polarity is one word."""
    words = vocabulary_of(["turn on the kitchen lights", "turn off the kitchen lights", "play jazz in the kitchen"])
    rng = np.random.default_rng(0)
    books = samples.ragged(rng, 1, 3, texts=1)
    books = samples.with_examples(
        replace(books, active=np.arange(books.active.shape[1])[None] < 2),
        count=np.array([2], np.int32), text=np.array([[0, 2, 0, 0]], np.int32),
        skill=np.array([[0, 1, 0, 0]], np.int32),
    )  # fmt: skip
    query = samples.asked_with(samples.query(np.array([1], np.int32), silent(rng), books), books, words=words)
    made = BM25(2, 1.5, 0.75).route(query, books)
    assert made.skill.tolist() == [[0, 1]]
    assert made.similarity[0, 0] > 4 * made.similarity[0, 1] > 0


@settings(deadline=None, max_examples=15)
@given(seed=seeds, users=st.integers(1, 300))
def test_users_do_not_know_of_one_another(seed: int, users: int) -> None:
    rng = np.random.default_rng(seed)
    books = samples.ragged(rng, users, 40, texts=N, skills=20)
    query = samples.query(rng.integers(0, N, users).astype(np.int32), silent(rng), books)
    whole, order = BM25(5, 1.5, 0.75).route(query, books), rng.permutation(users)
    mixed = BM25(5, 1.5, 0.75).route(samples.some_queries(query, order), samples.some(books, order))
    assert np.array_equal(mixed.skill, whole.skill[order])
    assert np.array_equal(mixed.similarity, whole.similarity[order])
    own = samples.one(books, 0)
    alone = BM25(5, 1.5, 0.75).route(samples.asked_with(samples.some_queries(query, [0]), own), own)
    assert np.array_equal(alone.similarity, whole.similarity[:1])


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ((0, 1.5, 0.75), "top_k=0"),
        ((5, -1.0, 0.75), "k1=-1.0"),
        ((5, 1.5, 1.5), "b=1.5"),
        ((5, float("nan"), 0), "k1="),
    ],
)
def test_parameters_out_of_range_are_refused(parameters: tuple[int, float, float], says: str) -> None:
    with pytest.raises(UsageError, match=rf"router\.{says}"):
        BM25(*parameters)
