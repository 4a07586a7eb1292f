"""Processes that learn into the same skillbooks at the same moment, each by its own connection to a database."""

import multiprocessing
import time
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from typing import Any

import numpy as np

from experiments.bench.locking.bursts import Learner, LoggedJob, batch_of
from experiments.bench.server import killing
from skg_bench.core.draws import Purpose, key, normal
from skg_bench.core.store import Store
from skg_bench.skillbook.ace.book import AceBook
from skg_bench.skillbook.skillbook import Operation
from skg_bench.skillbook.storing import Rule, VersionedBook, book_text, load, update, with_key

NOW = "2026-01-05T09:00:00+00:00"
MEDIAN, SPREAD = 0.008, 0.5  # s, and of its log: of a learning job; a thousandth of the two model calls in life
_SEED = 0  # of durations
_SPAWN = multiprocessing.get_context("spawn")
_WAIT = 120.0  # s for the slowest writer: a server that recovers takes some
_ONLY_EQUAL = 1.0  # near-duplicates stay apart, so that each ADD can be counted


@dataclass(frozen=True)
class JobEnd:
    """Report to a writer on a job."""

    user: str
    burst: int
    applied: tuple[Operation, ...]  # operations that are said to be stored
    aside: int  # operations that were put aside, as somebody else rewrote the skill
    misdirected: int  # operations on a skill that somebody else had removed; `replay` stores them all the same
    absent: int  # operations on a skill that was not in the document
    given_up: int  # operations that were not stored after the last try
    retries: int


@dataclass(frozen=True)
class Replayed:
    """Reports to all writers, and what it took."""

    ends: Sequence[JobEnd]
    kills: int
    seconds: float


def writers(number: int) -> ProcessPoolExecutor:
    """Processes that wait for one another."""
    return ProcessPoolExecutor(number, _SPAWN, initializer=_meet, initargs=(_SPAWN.Barrier(number),))


def replay(
    pool: ProcessPoolExecutor, number: int, store: Any, people: Mapping[str, Learner], rule: Rule,
    kill: tuple[str, float] | None = None,
) -> Replayed:  # fmt: skip
    """Have a `pool` of `number` writers learn what the run learned, into an empty store. The nth job of a burst is the
    nth writer's.

    `kill`: address of a server, and seconds from its recovery to the next kill of one of its backends.
    """
    for user, learner in people.items():
        store.swap(user, 0, book_text(with_key(learner.book, "first")), "first")
    place = (getattr(store, "path", None) or store.address, store.seconds)
    killer: AbstractContextManager[list[int]] = killing(*kill) if kill else nullcontext([])
    with killer as kills:
        tasks = [pool.submit(_write, type(store), place, people, rule, writer) for writer in range(number)]
        results = [each.result() for each in tasks]
    ends = [end for each, _ in results for end in each]
    return Replayed(ends, len(kills), max(seconds for _, seconds in results))


class _Meeting:
    """Meeting at which the writers of a process pool wait for one another."""

    barrier: Barrier


def _meet(barrier: Barrier) -> None:
    _Meeting.barrier = barrier


def _write(
    kind: Any, place: tuple[Any, ...], people: Mapping[str, Learner], rule: Rule, writer: int
) -> tuple[list[JobEnd], float]:
    """Ends of this writer's jobs, and seconds."""
    store: Store = kind(*place)
    ends = list[JobEnd]()
    _Meeting.barrier.wait(_WAIT)
    began = time.perf_counter()
    for number in range(max(len(learner.bursts) for learner in people.values())):
        _Meeting.barrier.wait(_WAIT)
        for user, learner in people.items():
            if number < len(learner.bursts) and writer < len(learner.bursts[number]):
                ends.append(_learn(store, user, number, learner.bursts[number][writer], rule))
    seconds = time.perf_counter() - began
    store.close()
    return ends, seconds


def _learn(store: Store, user: str, burst: int, job: LoggedJob, rule: Rule) -> JobEnd:
    read = load(store, user, NOW) or VersionedBook(AceBook("v2"), 0)
    batch, possible = batch_of(job, read.book)
    absent = len(job.operations) - len(possible)
    drawn = normal(key(_SEED, 0), zlib.crc32(job.key.encode()), Purpose.CALL_SECONDS)
    time.sleep(MEDIAN * float(np.exp(SPREAD * drawn)))
    if not possible:
        return JobEnd(user, burst, (), 0, 0, absent, 0, 0)
    end = update(store, user, batch, rule, key=job.key, now=NOW, read=read, alike=_ONLY_EQUAL)
    if end.end == "given up":
        return JobEnd(user, burst, (), 0, 0, absent, len(possible), end.tries - 1)
    fates = [each.fate for each in end.report] or ["applied"] * len(possible)
    stored = {"applied", "misdirected"} if rule == "replay" else {"applied"}  # the package changes what is hidden
    applied = tuple(entry for entry, fate in zip(possible, fates, strict=True) if fate in stored)
    return JobEnd(
        user, burst, applied, fates.count("aside"), fates.count("misdirected"), absent, 0, max(end.tries - 1, 0)
    )
