"""The store seam: skillbooks kept outside of a run, one JSON document a user, changed as a whole (P10, P25).

A run keeps its skillbooks itself, and needs no store. A store is for what goes on after a run: an application that
loads a user's skillbook for a prompt, and writers that learn at the same time.
"""

from collections.abc import Iterator
from typing import Protocol

from skg_bench.core.errors import UsageError

KEYS = 64  # of the batches that a document contains, the newest ones: our choice; a key takes some 40 bytes


class StoreError(UsageError):
    """A store does not answer, or refuses: says what is not stored, and where it is kept."""


class Store(Protocol):
    """Documents of users, each with a version that counts its changes from 1."""

    def load(self, user: str) -> tuple[str, int] | None:
        """Document (JSON, as it was stored) and version; None for a user without one.

        Raises StoreError.
        """
        ...

    def swap(self, user: str, expected: int, document: str, key: str) -> bool:
        """Store `document` if the version still is `expected`, 0 for a user without one; was it stored?

        The document contains `key`, that of the batch that was applied last. A store whose connection broke looks for
        it there, as the write may have arrived and only its acknowledgement been lost (P26).

        Raises StoreError where nothing is stored, or where nothing tells whether it is.
        """
        ...

    def users(self) -> Iterator[str]:
        """Users who have a document, in order of their names.

        Raises StoreError.
        """
        ...

    def close(self) -> None:
        """Let go of files and connections; the next call opens them again."""
        ...
