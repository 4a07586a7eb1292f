"""Near-duplicates by cosine, and retrieval by words and vectors, as the packages do both."""

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from skg_bench.skillbook.ace.book import AceBook, AceSkill, InsightSkill

THRESHOLD = 0.85  # cosine of a near-duplicate
RANK_SHIFT = 60  # of reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)
KEYWORD_BONUS = 0.25
K1, B, FLOOR = 1.5, 0.75, 0.25  # Okapi BM25; idf below zero becomes this share of the mean idf


def cosine_as_published(first: Sequence[float], second: Sequence[float]) -> float:
    """0 where either is zero."""
    a, b = np.array(first), np.array(second)
    dot, norms = np.dot(a, b), (np.linalg.norm(a), np.linalg.norm(b))
    return 0.0 if 0 in norms else float(dot / (norms[0] * norms[1]))


def similar_pairs(
    book: AceBook, threshold: float | None = None, *, usual: float = THRESHOLD, within_section: bool = True
) -> list[tuple[AceSkill, AceSkill, float]]:
    """Pairs of active skills with embeddings that are at least so similar, most similar first; pairs with a KEEP
    decision are left out. Without a threshold, and for a threshold of zero, the usual one counts.
    """
    groups: dict[Any, list[AceSkill]] = {}
    for skill in book.active:
        groups.setdefault(skill.section if within_section else None, []).append(skill)
    pairs = []
    for group in groups.values():
        embedded = [skill for skill in group if skill.embedding is not None]
        for i, first in enumerate(embedded):
            others = (second for second in embedded[i + 1 :] if not _kept_apart(book, first, second))
            pairs += [(first, second, cosine_as_published(first.embedding, second.embedding)) for second in others]
    pairs = [pair for pair in pairs if pair[2] >= (threshold or usual)]
    return sorted(pairs, key=lambda pair: pair[2], reverse=True)


def _kept_apart(book: AceBook, first: AceSkill, second: AceSkill) -> bool:
    decision = book.decisions.get(frozenset((first.id, second.id)))
    return decision is not None and decision.decision == "KEEP"


def retrieve(
    book: AceBook,
    query: str,
    embedding: Sequence[float] | None,
    top_k: int = 5,
    *,
    section: str | None = None,
    keywords: Sequence[str] | None = None,
) -> list[AceSkill]:
    """The best active skills of a `v2` book: reciprocal rank fusion of BM25 and cosine, and a bonus for each keyword.

    Raises RuntimeError without the query's embedding, as the package does.
    """
    skills = [skill for skill in book.active if isinstance(skill, InsightSkill)]
    if section:
        skills = [skill for skill in skills if skill.section == str(section).strip().lower()]
    if top_k <= 0 or not skills:
        return []
    by_words = _by_words(skills, query)
    if embedding is None:
        raise RuntimeError("the query has no embedding")
    scored = [
        (cosine_as_published(embedding, skill.embedding), skill) for skill in skills if skill.embedding is not None
    ]
    by_vector = [skill for _, skill in sorted(scored, key=lambda pair: pair[0], reverse=True)]
    score: dict[str, float] = {}
    for ranking in (by_words, by_vector):
        for rank, skill in enumerate(ranking, 1):
            score[skill.id] = score.get(skill.id, 0.0) + 1 / (RANK_SHIFT + rank)
    words = dict.fromkeys(str(word).strip().lower().replace(" ", "_") for word in keywords or ())
    for skill in skills:
        bonus = sum(1 for word in words if word and word in skill.keywords)
        if bonus:
            score[skill.id] += KEYWORD_BONUS * bonus
    best = sorted(score, key=lambda key: score[key], reverse=True)
    by_id = {skill.id: skill for skill in skills}
    return [by_id[key] for key in best[:top_k]]


def _tokens(text: str) -> list[str]:
    return re.findall(r"[a-z0-9_]+", text.lower())


def _by_words(skills: list[InsightSkill], query: str) -> list[InsightSkill]:
    tokens = _tokens(query)
    texts = [_tokens(skill.embedding_text) for skill in skills]
    scores = _bm25(texts, tokens) if tokens and any(texts) else [0.0] * len(skills)
    order = sorted(range(len(skills)), key=lambda i: scores[i], reverse=True)
    return [skills[i] for i in order]


def _bm25(texts: list[list[str]], query: list[str]) -> list[float]:
    """Okapi BM25 of each text; where no text has a word, so that it has no mean length, all are equal."""
    n, mean = len(texts), sum(map(len, texts)) / len(texts)
    holders: dict[str, int] = {}
    for text in texts:
        for word in dict.fromkeys(text):
            holders[word] = holders.get(word, 0) + 1
    idf = {word: math.log(n - count + 0.5) - math.log(count + 0.5) for word, count in holders.items()}
    floor = FLOOR * (sum(idf.values()) / len(idf))
    idf = {word: floor if value < 0 else value for word, value in idf.items()}
    length = np.array([len(text) for text in texts])
    scores = np.zeros(n)
    for word in query:
        count = np.array([text.count(word) for text in texts])
        scores += idf.get(word, 0) * (count * (K1 + 1) / (count + K1 * (1 - B + B * length / mean)))
    return [float(score) for score in scores]
