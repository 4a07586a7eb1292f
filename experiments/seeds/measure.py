"""Figures of a draw: what each of four books is worth on the same triggers, and whether it changed."""

from collections.abc import Mapping

import numpy as np

from skg_bench.core.grid import F64
from skg_bench.study.guardian.lives import Draw, Life, Lives, life_means, mean, over_users, paired_lives
from skg_bench.study.guardian.mass_verdicts import figures

BOOKS = {
    "rookie": "the beginner's book, by hand",
    "pro": "the expert's book, by hand",
    "pro_permuted": "the expert's, with counters exchanged",
    "learned": "the beginner's after 40 interactions",
}


def measure(_draw: Draw, lives: Lives) -> Mapping[str, float]:
    """Figures of all arms of `experiment=seeds`."""
    books = {name: lives[name] for name in BOOKS}
    known: dict[str, float] = {}
    for name, life in books.items():
        known |= {f"{name}_accepted": mean(_accepted(life)), f"{name}_utility": mean(life_means(life, life.utility))}
        known[f"{name}_changed"] = float((np.diff(life.book_size, axis=1)[life.there[:, 1:]] != 0).sum())
    pairs = {"pro_rookie": ("pro", "rookie"), "permuted_rookie": ("pro_permuted", "rookie"),
             "pro_counters": ("pro", "pro_permuted"), "learned_rookie": ("learned", "rookie"),
             "pro_learned": ("pro", "learned")}  # fmt: skip
    for name, (book, other) in pairs.items():
        known |= figures(name, paired_lives(books[book], books[other], _utility))
        known |= figures(f"{name}_accepted", over_users(_accepted(books[book]) - _accepted(books[other])))
    return known


def _accepted(life: Life) -> F64:
    return life_means(life, life.listened, life.spoken)


def _utility(life: Life) -> F64:
    return life.utility
