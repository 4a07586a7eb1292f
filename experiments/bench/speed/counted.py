"""A number of updates by several processes: is each counted once, also when backends are killed?

An update is a TAG with a key of its own, stored as an application stores it (`skillbook/storing.py`). Skillbooks have a
skill for each writer, so that what a writer was told is held against what the documents count.
"""

import multiprocessing
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from experiments.bench.server import killing
from skg_bench.core.store import Store, StoreError
from skg_bench.skillbook.ace.book import AceBook, InsightSkill
from skg_bench.skillbook.storing import book_text, load, update, with_key

_SPAWN = multiprocessing.get_context("spawn")
_NOW = "2026-01-05T09:00:00+00:00"
_TEXT = "Buys at night what has been in the basket since the morning, and regrets it. " * 3


@dataclass(frozen=True)
class CountedUpdates:
    """Outcome of the updates of all writers."""

    updates: int  # of which a writer was told that they are stored
    lost: int  # of them, counted in no document
    doubled: int  # counted in a document beyond them
    unstored: int  # of which a writer was told that they are not stored, or that nothing tells
    retries: int  # swaps before which another writer stored
    kills: int  # of backends
    seconds: float


@dataclass(frozen=True)
class Told:
    """Reports to one writer."""

    stored: Mapping[str, int]  # by user
    unstored: int
    retries: int
    began: float
    ended: float


def counted(
    store: Any, updates: int, users: int, writers: int, kill: tuple[str, float] | None = None
) -> CountedUpdates:
    """Have `writers` processes store `updates` in all into an empty store. `kill`: address of a server, and seconds
    from one kill of its backends to the next.
    """
    names = [f"user-{user}" for user in range(users)]
    begin(store, names, writers)
    place = (getattr(store, "path", None) or store.address, store.seconds)
    killer: AbstractContextManager[list[int]] = killing(*kill) if kill else nullcontext([])
    with killer as kills, ProcessPoolExecutor(writers, _SPAWN) as pool:
        shares = [len(range(writer, updates, writers)) for writer in range(writers)]
        ends = [pool.submit(_write, type(store), place, names, share, writer) for writer, share in enumerate(shares)]
        reports = [end.result() for end in ends]
    return held(store, names, reports, len(kills))


def begin(store: Store, names: Sequence[str], writers: int) -> None:
    """Give each user a skillbook with a skill for each writer."""
    skills = [_skill(writer) for writer in range(writers)]
    sections = {"context": tuple(skill.id for skill in skills)}
    book = AceBook("v2", {skill.id: skill for skill in skills}, sections, writers)
    for name in names:
        store.swap(name, 0, book_text(with_key(book, "first")), "first")


def batch(writer: int) -> dict[str, Any]:
    """Batch that a writer stores."""
    operation = {"type": "TAG", "section": "context", "skill_id": _skill(writer).id, "metadata": {"delta": 1}}
    return {"reasoning": "", "operations": [operation]}


def _skill(writer: int) -> InsightSkill:
    key = f"context-{writer + 1:05}"
    return InsightSkill(key, "context", ("impulse",), f"{writer}: {_TEXT}", _NOW, _NOW, _TEXT)


def held(store: Store, names: Sequence[str], reports: Sequence[Told], kills: int) -> CountedUpdates:
    """Reports to writers, held against the documents."""
    lost = doubled = 0
    for name in names:
        kept = load(store, name, _NOW)
        for writer, report in enumerate(reports):
            count = getattr(kept.book.skills[_skill(writer).id], "helpful_count") if kept else 0  # noqa: B009
            missing = report.stored.get(name, 0) - count
            lost, doubled = lost + max(missing, 0), doubled + max(-missing, 0)
    return CountedUpdates(
        sum(sum(each.stored.values()) for each in reports), lost, doubled, sum(each.unstored for each in reports),
        sum(each.retries for each in reports), kills,
        max(each.ended for each in reports) - min(each.began for each in reports),
    )  # fmt: skip


def _write(kind: Any, place: tuple[Any, ...], names: Sequence[str], updates: int, writer: int) -> Told:
    store: Store = kind(*place)
    stored, unstored, retries, began = Counter[str](), 0, 0, time.perf_counter()
    for number in range(updates):
        name = names[(7 * writer + number) % len(names)]
        try:
            end = update(store, name, batch(writer), key=f"{writer}-{number}", now=_NOW)
        except StoreError:
            unstored += 1
            continue
        retries += max(end.tries - 1, 0)
        if end.end == "given up":
            unstored += 1
        else:
            stored[name] += 1
    store.close()
    return Told(stored, unstored, retries, began, time.perf_counter())
