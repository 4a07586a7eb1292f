"""The event loop on which a process asks: in a thread of its own, as the caller may stand in a notebook's loop."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import TypeVar

from skg_bench.core.errors import UsageError

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")
_LOCK = threading.Lock()
_LOOPS: dict[int, asyncio.AbstractEventLoop] = {}  # by process id: a forked child has none of its parent's threads


def each_answer(
    questions: Sequence[Q],
    answer: Callable[[Q], Awaitable[A]],
    done: Callable[[Mapping[int, A]], None],
    *,
    width: int,
    first_alone: bool,
) -> None:
    """Answers questions, at most `width` at once, and calls `done` in this thread with the answers that came since the
    last call, by the places of their questions. With `first_alone` the others wait until the first one has its answer.

    If an answer raises an error, or `done` a UsageError, no further answer begins. Those under way end and go to
    `done`; then the error is raised. An answer is under way until `done` has returned. So if `done` counts what is
    spent, at most `width` answers are not counted yet.
    """
    arrivals: SimpleQueue[tuple[int, A, Future[None]] | None] = SimpleQueue()
    waiting = iter(enumerate(questions))
    stopped = False
    refusals = []

    async def work(most: int) -> None:
        nonlocal stopped
        for _ in range(most):
            if stopped or (entry := next(waiting, None)) is None:
                return
            taken: Future[None] = Future()
            try:
                arrivals.put((entry[0], await answer(entry[1]), taken))
            except BaseException:
                stopped = True
                raise
            await asyncio.wrap_future(taken)

    async def workers() -> None:
        try:
            if first_alone:
                await work(1)
            every = (work(len(questions)) for _ in range(min(width, len(questions))))
            outcomes = await asyncio.gather(*every, return_exceptions=True)
            if error := next((outcome for outcome in outcomes if outcome is not None), None):
                raise error
        finally:
            arrivals.put(None)

    future = asyncio.run_coroutine_threadsafe(workers(), asking_loop())
    try:
        for group in _groups(arrivals):
            try:
                done({place: result for place, result, _ in group})
            except UsageError as error:
                stopped = True
                refusals.append(error)
            for _, _, taken in group:
                taken.set_result(None)
        if refusals:
            raise refusals[0]
        future.result()
    finally:
        future.cancel()  # an interrupt: what is still under way is given up


def _groups(queue: SimpleQueue[T | None]) -> Iterator[list[T]]:
    """Items in groups: each has what came since the last one. None ends them."""
    item = queue.get()
    while item is not None:
        group = []
        while item is not None:
            group.append(item)
            try:
                item = queue.get_nowait()
            except Empty:
                break
        yield group
        if item is not None:
            item = queue.get()


def asking_loop() -> asyncio.AbstractEventLoop:
    """Event loop of this process, in a thread of its own."""
    with _LOCK:
        if (loop := _LOOPS.get(os.getpid())) is None:
            loop = _LOOPS[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="asking", daemon=True).start()
        return loop
