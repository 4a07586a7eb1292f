"""Skillbook documents: operations a second that a compatibility mode and the strict algebra apply, one a batch.

One operation a batch is the dearest way, as each batch copies the book's dictionaries once.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from skg_bench.skillbook.ace.book import AceBook, CompatMode
from skg_bench.skillbook.ace.engine import apply_as_published
from skg_bench.skillbook.ace.strict import strict

MARK = 10_000  # operations a second
SIZES = (10, 100)  # skills
_ADD = {
    "type": "ADD",
    "section": "context",
    "issue": "long sums go wrong",
    "insight": "split them",
    "keywords": ["sum"],
}
Apply = Callable[[AceBook, Any], AceBook]


def batches(skills: int, count: int) -> list[dict[str, Any]]:
    """TAGs and UPDATEs of a `v2` book, one a batch."""
    ids = [f"context-{i * 7 % skills + 1:05d}" for i in range(count)]
    tag = {"type": "TAG", "metadata": {"delta": 1}}
    work = [{**tag, "skill_id": key} if i % 2 else _update(key, i) for i, key in enumerate(ids)]
    return [{"reasoning": "", "operations": [operation]} for operation in work]


def _update(key: str, i: int) -> dict[str, Any]:
    return {"type": "UPDATE", "skill_id": key, "issue": f"long sums go wrong for the {i}th time"}


def rate(step: Apply, skills: int, count: int) -> float:
    """Operations a second of core time on a book of so many skills; the best of three."""
    book = strict(AceBook("v2"), {"operations": [_ADD] * skills}, "")
    work, seconds = batches(skills, count), []
    for _ in range(3):
        after, begun = book, time.process_time()
        for batch in work:
            after = step(after, batch)
        seconds.append(time.process_time() - begun)
    return count / min(seconds)


def _compatible(book: AceBook, batch: Any, mode: CompatMode) -> AceBook:
    return apply_as_published(book, batch, mode, "").book


WAYS: dict[str, Apply] = {
    "compat-v2": partial(_compatible, mode="compat-v2"), "strict": lambda book, batch: strict(book, batch, ""),
}  # fmt: skip


def rows(count: int = 10_000) -> Iterator[tuple[str, str, str, str]]:
    """Figure, measured, mark, ratio to the mark: for the table of all that is timed."""
    for skills in SIZES:
        for name, step in WAYS.items():
            measured = rate(step, skills, count)
            figure = f"documents of {skills} skills, {name}"
            yield figure, f"{measured:,.0f} operations/s", f"{MARK:,}", f"{measured / MARK:.2f}x"
