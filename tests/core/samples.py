"""Random skillbooks, messages and draws at production shapes, for tests of any component."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from skg_bench.assistant.pipeline.in_book import InBook
from skg_bench.core.batch import lineage
from skg_bench.core.embedding_grid import quantise
from skg_bench.core.grid import I16, I32
from skg_bench.core.texts import Texts
from skg_bench.core.types import (
    NO_STARTS,
    BookExamples,
    BookSimilarity,
    LearningContext,
    Query,
    Similarity,
    Skillbooks,
    TurnTruth,
    UseHistory,
)
from skg_bench.core.vocabulary import Vocabulary, vocabulary_of
from skg_bench.core.world import Draws
from skg_bench.engine.vectors import SimilarityTable
from skg_bench.skillbook.terms_of_book import TermsOfBook

Which = list[int] | npt.NDArray[Any]
NOW = 40 * 86_400 + 7 * 3600
_LOT = np.random.default_rng(0)
MESSAGES = [" ".join(f"w{w}" for w in _LOT.geometric(0.1, _LOT.integers(0, 12))) for _ in range(300)]
VOCABULARY = vocabulary_of(MESSAGES)
TEXTS = Texts(MESSAGES, [], None)


def vectors(rng: np.random.Generator, n: int, width: int) -> I16:
    """Vectors on the grid, in clusters, so that similarities differ."""
    centres = rng.standard_normal((max(n // 8, 1), width))
    return quantise(centres[rng.integers(0, len(centres), n)] + 0.7 * rng.standard_normal((n, width)))


def table(rng: np.random.Generator, n: int, width: int = 384) -> SimilarityTable:
    """Similarities of such vectors."""
    whole = vectors(rng, n, width).astype(np.float32)
    return SimilarityTable(whole @ whole.T)


def ragged(
    rng: np.random.Generator, users: int, examples: int, texts: int = 100, *, skills: int | None = None
) -> Skillbooks:
    """Books of up to `examples` examples; examples lie in any order, and beyond the end lies anything."""
    n_examples = rng.integers(0, examples + 1, users).astype(np.int32)
    n_skills = np.minimum(n_examples, rng.integers(1, (skills or examples or 1) + 1, users)).astype(np.int32)
    s, e = int(n_skills.max(initial=0)) + 3, int(n_examples.max(initial=0)) + 2
    mask = np.arange(s)[None] < n_skills[:, None]
    example_skill = rng.integers(0, s, (users, e)).astype(np.int32)
    for u in range(users):  # each skill has an example
        more = rng.integers(0, max(n_skills[u], 1), n_examples[u] - n_skills[u])
        example_skill[u, : n_examples[u]] = rng.permutation(np.concatenate([np.arange(n_skills[u]), more]))
    examples_of = np.zeros((users, s), np.int32)
    known = np.arange(e)[None] < n_examples[:, None]
    row, place = np.nonzero(known)
    np.add.at(examples_of, (row, example_skill[row, place]), 1)

    def count(high: int) -> I32:
        return np.where(mask, rng.integers(0, high, mask.shape), 0).astype(np.int32)

    uses = count(30)
    ok, partial = rng.binomial(uses, 0.3), rng.binomial(uses, 0.1)
    born = np.where(mask, rng.integers(0, NOW - 86_400, mask.shape), 0)
    last_used = np.where(mask, rng.integers(born, NOW), 0)
    moments = uses + examples_of  # uses and captures
    hours = np.zeros((users, s, 8), np.int16)
    for row_, skill in zip(*np.nonzero(mask), strict=True):
        hours[row_, skill] = rng.multinomial(moments[row_, skill], [1 / 8] * 8)
    return Skillbooks(
        n_skills=n_skills,
        active=mask & (rng.random(mask.shape) < 0.8),
        name=np.where(mask, rng.permuted(np.broadcast_to(np.arange(s), mask.shape), axis=1), -1).astype(np.int32),
        source=np.where(mask, rng.integers(0, 90, mask.shape), -1).astype(np.int32),
        uses=uses,
        ok=ok.astype(np.int32),
        partial=np.minimum(partial, uses - ok).astype(np.int32),
        miss=np.maximum(uses - ok - partial, 0).astype(np.int32) // 2,
        born=born,
        last_used=last_used,
        lineage=np.where(mask, lineage(3 * np.arange(s, dtype=np.int32), np.arange(s) % 2), -1),
        content=np.zeros(mask.shape, np.uint64),
        history=UseHistory(
            last_ok=np.where(mask, rng.integers(born, NOW), 0),
            hours=hours,
            weekend=rng.binomial(moments, 0.3).astype(np.int32),
            after=np.where(mask, rng.integers(-1, s, mask.shape), -1).astype(np.int32),
        ),
        examples=BookExamples(
            count=n_examples,
            text=rng.integers(0, texts, (users, e)).astype(np.int32),
            skill=example_skill,
            of_skill=examples_of,
            square=np.square(examples_of.astype(np.int64)) * 4000**2,
            starts=NO_STARTS,
        ),
    )


def with_examples(books: Skillbooks, **columns: Any) -> Skillbooks:
    """The books with these columns of their examples."""
    return replace(books, examples=replace(books.examples, **columns))


def lengthened(books: Skillbooks, vectors: I16) -> Skillbooks:
    """The book with the lengths that the sums of its examples have."""
    total = np.zeros((*books.active.shape, vectors.shape[1]), np.int64)
    row, place = np.nonzero(np.arange(books.examples.text.shape[1]) < books.examples.count[:, None])
    np.add.at(total, (row, books.examples.skill[row, place]), vectors[books.examples.text[row, place]])
    return with_examples(books, square=np.square(total).sum(axis=2))


def some(books: Skillbooks, rows: Which) -> Skillbooks:
    """The books of these users, in this order."""

    def columns(of: Any) -> dict[str, Any]:
        return {
            f.name: getattr(of, f.name)[rows] for f in fields(of) if f.name not in ("starts", "examples", "history")
        }

    examples = BookExamples(**columns(books.examples), starts=NO_STARTS)
    return Skillbooks(**columns(books), examples=examples, history=UseHistory(**columns(books.history)))


def one(books: Skillbooks, row: int) -> Skillbooks:
    """One user's book as it is served online: no padding, examples in order of their skills."""
    single, n = some(books, [row]), int(books.examples.count[row])
    order = np.argsort(single.examples.skill[0, :n], kind="stable")
    example, skill = single.examples.text[:, :n][:, order], single.examples.skill[:, :n][:, order]
    starts = np.searchsorted(skill[0], np.arange(single.n_skills[0]))
    return with_examples(single, text=example, skill=skill, starts=starts)


def query(text: I32, similarity: Similarity, books: Skillbooks, truth: TurnTruth | None = None) -> Query:
    """Messages of a Saturday morning, each to a book."""
    b = len(text)
    return Query(
        turn=9,
        time=np.full(b, NOW) + np.arange(b),
        text=text,
        words=(text % 30 + 1).astype(np.int32),
        gap=np.array([60, 1799, 1800, 7200])[text % 4],
        last_skill=(text % 4 - 1).astype(np.int32),
        similarity=InBook(similarity, text, books),
        terms=TermsOfBook(VOCABULARY, text, books),
        truth=truth,
        local=np.full(b, NOW) + np.arange(b),
        contents=Texts([], [], None).contents,
    )


def asked_with(
    asked: Query, books: Skillbooks, similarity: Similarity | None = None, words: Vocabulary | None = None
) -> Query:
    """The messages to these books, by other similarities and words of all texts if they are given.

    Needed wherever messages, or the examples of the books, are not those that the messages were made with.
    """
    near, said = asked.similarity, asked.terms
    assert isinstance(near, InBook)
    assert isinstance(said, TermsOfBook)
    return replace(
        asked,
        similarity=InBook(similarity or near.similarity, asked.text, books),
        terms=TermsOfBook(words or said.vocabulary, asked.text, books),
    )


def _books_of(of: InBook | TermsOfBook, rows: Which) -> Skillbooks:
    """Books of these users, of which only the examples are read."""
    return with_examples(of.books, text=of.example[rows])


def some_similarity(similarity: BookSimilarity, rows: Which) -> InBook:
    """That of these users, in this order."""
    assert isinstance(similarity, InBook)
    return InBook(similarity.similarity, similarity.text[rows], _books_of(similarity, rows))


def some_queries(queries: Query, rows: Which) -> Query:
    """The messages of these users, in this order, to their own books."""
    names = ("time", "text", "words", "gap", "last_skill", "local")
    kept: dict[str, Any] = {name: getattr(queries, name)[rows] for name in names}
    t = queries.truth
    truth = t and TurnTruth(t.quality[rows], t.type[rows], t.llm_right[rows], t.worth[rows])
    said = queries.terms
    assert isinstance(said, TermsOfBook)
    words = TermsOfBook(said.vocabulary, said.text[rows], _books_of(said, rows))
    return replace(queries, **kept, similarity=some_similarity(queries.similarity, rows), terms=words, truth=truth)


def context(
    rng: np.random.Generator, text: I32, books: Skillbooks, turns: int = 17, texts: int = 100
) -> LearningContext:
    """Context of a turn: `past`, similarities of messages `text` to books, and keys of events; all books may learn."""
    b = len(text)
    past = np.where(rng.random((b, turns)) < 0.7, rng.integers(0, texts, (b, turns)), -1).astype(np.int32)
    similarity, event = InBook(table(rng, texts, 32), text, books), rng.integers(0, 2**64, b, np.uint64)
    messages, nobody = np.concatenate([np.maximum(past, 0), text[:, None]], axis=1), np.full((b, 1), -1, np.int32)
    every = np.ones(b, np.bool_)
    words = [f"answer {user}" for user in range(b)]
    return LearningContext(event, similarity, TEXTS, messages, past, nobody, every, ~every, words=words.copy)


def draws(rng: np.random.Generator, b: int) -> Draws:
    """Uniforms and keys of `b` turns."""
    lots: dict[str, Any] = {f.name: rng.uniform(1e-12, 1 - 1e-12, b) for f in fields(Draws)}
    return Draws(**lots | {"event": rng.integers(0, 2**64, b, np.uint64)})


def some_draws(draws: Draws, rows: Which) -> Draws:
    """The draws of these users."""
    return Draws(*(getattr(draws, f.name)[rows] for f in fields(Draws)))
