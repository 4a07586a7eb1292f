"""Group commit: what arrives while one group is written to the disk is the next group."""

import threading
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Committer(Generic[T, R]):
    """Hands items to `commit`, in a thread: so who waits for a model's answers does not wait for the disk."""

    def __init__(self, commit: Callable[[Sequence[T]], Sequence[R]]) -> None:
        self._commit = commit
        self._items: SimpleQueue[T | None] = SimpleQueue()  # None: the end
        self._results: SimpleQueue[R] = SimpleQueue()
        self._errors: SimpleQueue[Exception] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="committer", daemon=True)
        self._thread.start()

    def put(self, item: T) -> None:
        """Have an item committed."""
        self._items.put(item)

    def results(self) -> list[R]:
        """Results of what was committed since the last call.

        Raises what `commit` raised.
        """
        if not self._errors.empty():
            raise self._errors.get()
        return list(_taken(self._results))

    def close(self) -> list[R]:
        """Wait for the rest, and give its results.

        Raises what `commit` raised.
        """
        self._items.put(None)
        self._thread.join()
        return self.results()

    def _work(self) -> None:
        ended = False
        while not ended:
            group = [self._items.get(), *_taken(self._items)]
            ended = None in group
            items = [item for item in group if item is not None]
            if items:
                try:
                    for result in self._commit(items):
                        self._results.put(result)
                except Exception as error:  # noqa: BLE001  raised in the caller's thread
                    self._errors.put(error)


def _taken(queue: "SimpleQueue[R]") -> Iterator[R]:
    while True:
        try:
            yield queue.get_nowait()
        except Empty:
            return
