"""`skg_bench.open_store`: skillbooks of an application, in a store.

The function is not named `store`: the package `skg_bench.store` would take its place once something imports it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX, Thread
from types import TracebackType
from typing import Any, Self

from skg_bench.app.building import build
from skg_bench.app.hydra_trees import hydra_trees
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.core.calendar import FIRST_MONDAY
from skg_bench.core.errors import UsageError
from skg_bench.core.store import Store, StoreError
from skg_bench.skillbook.ace.book import ERAS, AceBook, Era
from skg_bench.skillbook.conversion import from_ace
from skg_bench.skillbook.prompt_layout import LARGEST_PROMPT
from skg_bench.skillbook.rendering import render
from skg_bench.skillbook.storing import Rule, UpdateEnd, VersionedBook, load, update

_SECONDS = 1.0  # that a prompt waits for its skillbook: our choice, the article names no number


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class StoredBooks:
    """Skillbooks of users in a store, as texts for prompts and as objects for learning (P16)."""

    store: Store
    era: Era = "v2"  # the format of skillbooks that begin here
    clock: Callable[[], str] = field(default=_now, repr=False)  # ISO 8601

    def prompt(self, user: str, seconds: float = _SECONDS, limit: int = LARGEST_PROMPT) -> str:
        """Prompt of a user's skillbook, at most `limit` characters; empty for a user without one.

        Raises StoreError where it is not read within `seconds`, UsageError for seconds that are none, and whatever
        `load` raises.
        """
        if not 0 <= seconds <= TIMEOUT_MAX:
            raise UsageError(f"seconds={seconds!r} must be a number from 0 on, such as 1.0")
        results = SimpleQueue[str | Exception]()

        def read() -> None:
            try:
                stored = self.load(user)
                results.put("" if stored is None else _text(stored.book, limit))
            except Exception as error:  # noqa: BLE001  raised below, in the caller's thread
                results.put(error)

        Thread(target=read, daemon=True).start()  # ends by itself, as every store waits with a bound
        try:
            result = results.get(timeout=seconds)
        except Empty:
            raise StoreError(f"the skillbook of user {user!r} was not read within {seconds:g} s; ask again") from None
        if isinstance(result, Exception):
            raise result
        return result

    def load(self, user: str) -> VersionedBook | None:
        """A user's skillbook and its version, to learn from and to hand to `update`; None for a user without one.

        Raises StoreError, and UsageError for a name that is no text and a document that is no skillbook.
        """
        return load(self.store, user, self.clock())

    def update(
        self, user: str, batch: Any, *, key: str, read: VersionedBook | None = None, rule: Rule = "rebase"
    ) -> UpdateEnd:
        """Store a batch that was made from `read` (None: from what is stored now), as text or parsed JSON.

        >>> books = skg_bench.open_store(path="skillbooks.db")
        >>> read = books.load("anna")
        >>> books.update("anna", batch, key="anna-2026-01-05-17", read=read).end
        'stored'

        Raises what skillbook/storing.py says; an update that raised StoreError is repeated with the same key.
        """
        return update(self.store, user, batch, rule, key=key, now=self.clock(), read=read, era=self.era)

    def users(self) -> list[str]:
        """Users who have a skillbook."""
        return list(self.store.users())

    def close(self) -> None:
        """Let go of files and connections."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def open_store(name: str = "sqlite", *, era: Era = "v2", **parameters: Any) -> StoredBooks:
    """Skillbooks in a store: `sqlite`, `postgres` or `memory`. Parameters are those of its yaml: `skg-bench list
    store.sqlite` shows them.

    >>> skg_bench.open_store(path="skillbooks.db").prompt("anna")
    ''

    Raises UsageError for an unknown store, format or parameter.
    """
    if era not in ERAS:
        raise UsageError(f"era={era!r}; valid: {', '.join(ERAS)}")
    (node,) = hydra_trees().options("store", [name])
    return StoredBooks(build("store", {**node, **parameters}, COMMAND_LINE), era)


def at_address(address: str) -> StoredBooks:
    """The store of a command line: an address of PostgreSQL, or else a file of SQLite.

    Raises UsageError for an address of anything else.
    """
    scheme, mark, _ = address.partition("://")
    if mark and scheme in ("postgresql", "postgres"):
        return open_store("postgres", address=address)
    if mark:  # the rest is not shown, as a password may stand there
        raise UsageError(f"{scheme}://... is no store; valid are the path of a file of SQLite, and postgresql://...")
    return open_store("sqlite", path=address)


def _text(book: AceBook, limit: int) -> str:
    return render(from_ace(book, FIRST_MONDAY).book, limit, label=lambda skill: skill.name).text
