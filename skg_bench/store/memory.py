"""The store `memory`, for tests and for applications that keep nothing."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import ClassVar

from skg_bench.core.reach import REACHES_NOTHING, Reaches


@dataclass(eq=False)
class InMemory:
    """Documents in the memory of one process, which are gone when it ends."""

    _stored: dict[str, tuple[str, int]] = field(default_factory=dict, init=False, repr=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def load(self, user: str) -> tuple[str, int] | None:
        return self._stored.get(user)

    def swap(self, user: str, expected: int, document: str, key: str) -> bool:
        with self._lock:
            if self._stored.get(user, ("", 0))[1] != expected:
                return False
            self._stored[user] = (document, expected + 1)
            return True

    def users(self) -> Iterator[str]:
        with self._lock:
            names = sorted(self._stored)
        return iter(names)

    def close(self) -> None:
        """Closes nothing; documents stay."""
