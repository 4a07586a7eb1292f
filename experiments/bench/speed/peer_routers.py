"""semantic-router 1.1.1 and GPTCache 0.1.44 as routers, on vectors that are given. `make peers` installs them.

A text is known to them by the digits of its text id, and embedding it is looking its vector up. Nothing of theirs is
changed: routes and answers go in, and decisions come out, through their public calls.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F32, F64, I32, snap
from skg_bench.core.shortlist import ranked
from skg_bench.core.types import Query, Shortlist, Skillbooks

MISSING = "the peers are not installed here; run `make peers`, which makes an environment for them"
Vectors = F32 | F64


@dataclass(frozen=True, eq=False)
class Encoder:
    """An encoder of both libraries: digits to vectors."""

    vectors: Vectors  # [N, D]
    lists: bool = False  # as lists of numbers, semantic-router's own type, and not as arrays, which it takes as well
    name: str = "given"

    def __call__(self, texts: Sequence[str]) -> list[Any]:
        """Vectors of texts, as semantic-router asks for them."""
        rows = self.vectors[[int(text) for text in texts]]
        made: list[Any] = rows.tolist() if self.lists else list(rows)
        return made

    async def acall(self, texts: Sequence[str]) -> list[Any]:
        """The same."""
        return self(texts)

    @property
    def dimension(self) -> int:
        """Width of a vector, as GPTCache asks for it."""
        return int(self.vectors.shape[1])

    def to_embeddings(self, text: str, **_: object) -> Vectors:
        """Vector of a text, as GPTCache asks for it."""
        row: Vectors = self.vectors[int(text)]
        return row


def semantic_router(encoder: Encoder, example: I32, skill: I32, aggregation: Literal["mean", "max"]) -> Any:
    """Router of semantic-router over examples `[E]` of skills `[E]`, else as it comes; routes are called by skill."""
    try:
        from semantic_router import IndexedRouter, Route
    except ImportError as error:
        raise UsageError(MISSING) from error
    texts_by_skill = {s: [str(text) for text in example[skill == s].tolist()] for s in np.unique(skill).tolist()}
    routes = [Route(name=str(s), utterances=texts) for s, texts in texts_by_skill.items()]
    return IndexedRouter(encoder, routes, aggregation=aggregation)


def gptcache(encoder: Encoder, folder: Path) -> Any:
    """Cache of GPTCache for similar questions (SQLite and FAISS) as it comes, but with room for a million answers:
    beyond a thousand the default forgets.
    """
    try:
        from gptcache import Cache
        from gptcache.adapter.api import init_similar_cache
        from gptcache.manager import manager_factory
    except ImportError as error:
        raise UsageError(MISSING) from error
    made = Cache()
    manager = manager_factory(
        "sqlite,faiss",
        data_dir=str(folder),
        vector_params={"dimension": encoder.dimension},
        eviction_params={"max_size": 10**6},
    )
    init_similar_cache(cache_obj=made, embedding=encoder, data_manager=manager)
    return made


def cached(cache: Any, text: int, factor: float = 1.0) -> tuple[int, float]:
    """The skill that answers a text, and its score in [0, 1]; -1 and 0 for a miss. A `factor` of 0 takes any score."""
    from gptcache.adapter.api import get

    scores: list[float] = []
    answer = get(
        str(text), cache_obj=cache, cache_factor=factor, hit_callback=lambda hits: scores.extend(s for _, s in hits)
    )
    return (-1, 0.0) if answer is None else (int(answer), max(scores))


@dataclass(frozen=True, eq=False)
class SemanticRouter:
    """semantic-router over each user's own skillbook: up to `top_k` skills with a score above 0.

    Its objects are kept by row, so a run has one cohort. On whole numbers in float64
    (the embedding grid) its cosines are the same bits anywhere.
    """

    vectors: Vectors  # [N, D] of all messages, by text id
    top_k: int
    aggregation: Literal["mean", "max"]
    sees_truth: ClassVar[bool] = False
    _made: dict[int, tuple[bytes, Any]] = field(
        default_factory=dict, init=False
    )  # of a row: the book's content, and their router

    @cached_property
    def _encoder(self) -> Encoder:
        return Encoder(self.vectors)

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """As their router ranks; one is made anew when a book's examples have changed."""
        b, width = books.active.shape
        score = np.zeros((b, width))
        for row, text in enumerate(query.text.tolist()):
            n = int(books.examples.count[row])
            example, skill = books.examples.text[row, :n], books.examples.skill[row, :n]
            mask = books.active[row, skill]
            example, skill = example[mask], skill[mask]
            if not len(example):
                continue
            content = example.tobytes() + skill.tobytes()
            if self._made.get(row, (b"", None))[0] != content:
                self._made[row] = content, semantic_router(self._encoder, example, skill, self.aggregation)
            for choice in self._made[row][1](str(text), limit=None):
                score[row, int(choice.name)] = choice.confidence
        score = snap(np.clip(score, 0.0, 1.0))
        return ranked(score, score > 0, self.top_k)


@dataclass(frozen=True, eq=False)
class GPTCache:
    """GPTCache with each user's own answers: a hit is a shortlist of one skill, a miss an empty one.

    Caches are kept by row, so a run has one cohort. Skills are put into the cache when they are new, so
    a book must not archive any (curator=everything).
    """

    vectors: Vectors  # [N, D] unit rows, of all messages
    folder: Path  # of the users' databases
    top_k: int
    sees_truth: ClassVar[bool] = False
    _made: dict[int, tuple[Any, list[int]]] = field(
        default_factory=dict, init=False
    )  # of a row: their cache, the skills in it

    @cached_property
    def _encoder(self) -> Encoder:
        return Encoder(self.vectors)

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """Answer of their cache at its own threshold, if any."""
        from gptcache.adapter.api import put

        score = np.zeros(books.active.shape)
        for row, text in enumerate(query.text.tolist()):
            if row not in self._made:
                self._made[row] = gptcache(self._encoder, self.folder / str(row)), []
            cache, known = self._made[row]
            n = int(books.examples.count[row])
            for example, skill in zip(
                books.examples.text[row, len(known) : n].tolist(),
                books.examples.skill[row, len(known) : n].tolist(),
                strict=True,
            ):
                put(str(example), str(skill), cache_obj=cache)
                known.append(skill)
            skill, best = cached(cache, text)
            if skill >= 0:
                score[row, skill] = best
        score = snap(np.clip(score, 0.0, 1.0))
        return ranked(score, score > 0, self.top_k)
