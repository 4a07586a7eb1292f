"""How often a router takes a request for another that shares nearly all its words: `data/hard_negatives.yaml`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

import numpy as np
import yaml

from skg_bench.assistant.pipeline.in_book import InBook
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I16, I32
from skg_bench.core.package import DATA
from skg_bench.core.texts import Texts
from skg_bench.core.types import Query, Router, Shortlist
from skg_bench.core.vocabulary import Vocabulary, vocabulary_of
from skg_bench.embedder.precomputed import Precomputed
from skg_bench.engine.vectors import Pinned
from skg_bench.router.shared.one_book import shared_book
from skg_bench.skillbook.terms_of_book import TermsOfBook

KINDS = ("polarity", "numbers", "entities", "negation")
HEADINGS = ("router", "threshold", *KINDS, "all confused", "paraphrases answered", "opposite before paraphrase")


@dataclass(frozen=True)
class Suite:
    """P pairs of requests that look alike, each with a paraphrase of the first; text ids count through all of them."""

    kind: I32  # [P] index into KINDS
    said: I32  # [P] the request
    same: I32  # [P] the same in other words
    other: I32  # [P] another that shares nearly all words with it
    vectors: I16  # [3 P, D]
    vocabulary: Vocabulary


@dataclass(frozen=True)
class Confusion:
    """Shares of pairs, in percent."""

    confused: F64  # [4] by kind: the other is answered from the request's skill
    all: float
    answered: float  # the paraphrase is answered from it
    nearer: float  # of two skills, the other's is put before the request's for the paraphrase


@cache
def suite() -> Suite:
    """The committed pairs.

    Raises UsageError if the file has other kinds, or entries that are not three texts each.
    """
    file = DATA / "hard_negatives.yaml"
    content = yaml.safe_load(file.read_text("utf-8"))
    if tuple(content) != KINDS or not all(
        isinstance(three, list) and len(three) == 3 and all(isinstance(t, str) for t in three)
        for three in chain.from_iterable(content.values())
    ):
        raise UsageError(f"{file} must have the kinds {', '.join(KINDS)}, each a list of [request, paraphrase, other]")
    texts = list(chain.from_iterable(chain.from_iterable(content.values())))
    kind = np.repeat(np.arange(len(KINDS), dtype=np.int32), [len(pairs) for pairs in content.values()])
    first = 3 * np.arange(len(kind), dtype=np.int32)
    vectors = Precomputed(str(DATA / "hard_negatives")).embed(texts)
    return Suite(kind, first, first + 1, first + 2, vectors, vocabulary_of(texts))


def confusion(router: Router, threshold: float) -> Confusion:
    """A router at a threshold of its similarity, over one skillbook in which each request is the example of a skill."""
    s = suite()
    pairs = np.arange(len(s.kind), dtype=np.int32)
    confused = _answers(router, threshold, s.said, s.other) == pairs
    answered = _answers(router, threshold, s.said, s.same) == pairs
    both = _route(router, np.concatenate([s.said, s.other]), s.same)
    ours, others = (_similarity(both, skill) for skill in (pairs, pairs + np.int32(len(pairs))))
    counts = np.bincount(s.kind)
    return Confusion(
        100.0 * np.bincount(s.kind, confused) / counts,
        100.0 * float(confused.mean()),
        100.0 * float(answered.mean()),
        100.0 * float(((others >= 0) & (others >= ours)).mean()),  # what is equally near is no less of a mistake
    )


def table(entries: Sequence[tuple[str, Router, float]]) -> list[tuple[str, ...]]:
    """Rows under HEADINGS for named routers at their thresholds."""
    rows = []
    for name, router, threshold in entries:
        c = confusion(router, threshold)
        cells = (f"{x:.0f} %" for x in (*c.confused, c.all, c.answered, c.nearer))
        rows.append((name, f"{threshold:.3f}", *cells))
    return rows


def _answers(router: Router, threshold: float, example: I32, messages: I32) -> I32:
    """The skill that answers each message, `[n]`, -1: none reaches the threshold."""
    shortlist = _route(router, example, messages)
    return np.where(shortlist.similarity[:, 0] >= threshold, shortlist.skill[:, 0], -1).astype(np.int32)


def _similarity(shortlist: Shortlist, skill: I32) -> F64:
    """Similarity of one skill for each message, `[n]`; -1 if it is not listed."""
    listed = shortlist.skill == skill[:, None]
    return np.where(listed.any(axis=1), (shortlist.similarity * listed).sum(axis=1), -1.0)


def _route(router: Router, example: I32, messages: I32) -> Shortlist:
    """Messages over one book, each `example` a skill of its own."""
    s, n = suite(), len(messages)
    skill = np.arange(len(example), dtype=np.int32)
    zero, when = np.zeros(n, np.int32), np.zeros(n, np.int64)
    books = shared_book(s.vectors, example, skill, n)
    query = Query(
        turn=0, time=when, text=messages, words=s.vocabulary.words[messages], gap=when, last_skill=zero - 1,
        similarity=InBook(Pinned(s.vectors, example), messages, books),
        terms=TermsOfBook(s.vocabulary, messages, books), truth=None, local=when,
        contents=Texts([], [], None).contents,
    )  # fmt: skip
    return router.route(query, books)
