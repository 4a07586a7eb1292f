"""Learning into a store: a batch is applied to the version that it was made from, and what happens if that is gone.

Conflict rules: `rebase` applies the batch to the new version, with the changes of `skillbook/rebase.py`; `replay` is
the article's: the same batch on the new version, three tries in all (P26); `blind` stores the old version plus the
batch, whatever another writer stored meanwhile.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from skg_bench.core.errors import UsageError
from skg_bench.core.store import KEYS, Store, StoreError
from skg_bench.skillbook.ace.book import AceBook, Era, to_dict
from skg_bench.skillbook.ace.changes import commit
from skg_bench.skillbook.ace.checks import AceLimits, a_text
from skg_bench.skillbook.ace.codec import format_of, from_dict, loads
from skg_bench.skillbook.ace.strict import changes_of
from skg_bench.skillbook.rebase import ALIKE, RebasedOperation, as_it_is, rebase, replayed

Rule = Literal["rebase", "replay", "blind"]
TRIES: Mapping[Rule, int] = MappingProxyType(
    {"rebase": 100, "replay": 3, "blind": 100}
)  # P26: up to 3; else our choice


class VersionedBook(NamedTuple):
    """A skillbook and the version that it is; 0: not stored yet."""

    book: AceBook
    version: int
    user: str | None = None  # whose it is; None: of nobody yet


@dataclass(frozen=True, slots=True)
class UpdateEnd:
    """How an update ended. `stored`; `stored before`: its key was in the document already; `given up`: another writer
    was first each time, and nothing of the batch is stored.
    """

    end: Literal["stored", "stored before", "given up"]
    version: int  # of the document that contains the batch, or of the last one that was seen
    tries: int  # swaps
    report: tuple[RebasedOperation, ...] = ()  # what became of each operation, if it was stored


def load(store: Store, user: str, now: str) -> VersionedBook | None:
    """A user's skillbook with its version, for learning (P16); None for a user without one.

    Raises StoreError, and UsageError for a name that is no text, and for a document that is no skillbook.
    """
    _check_name(user)
    stored = store.load(user)
    if stored is None:
        return None
    document, version = stored
    try:
        return VersionedBook(loads(document, format_of(document), now), version, user)
    except UsageError as error:
        raise UsageError(
            f"the document of user {user!r} is no skillbook of ACE that this version reads: {error}"
        ) from error


def book_text(book: AceBook) -> str:
    """The document of a skillbook, as a store keeps it."""
    return json.dumps(to_dict(book), ensure_ascii=False, separators=(",", ":"))


def with_key(book: AceBook, key: str) -> AceBook:
    """The book as one that contains batch `key`; of older keys it keeps the newest."""
    return replace(book, batches=(*book.batches, key)[-KEYS:])


def update(
    store: Store,
    user: str,
    batch: Any,
    rule: Rule = "rebase",
    *,
    key: str,
    now: str,
    read: VersionedBook | None = None,
    era: Era = "v2",
    alike: float = ALIKE,
) -> UpdateEnd:
    """Store a strict batch, as text or parsed JSON, that was made from `read` (None: from what is stored now).

    `key` names the batch: however often an update is repeated, the batch counts once, unless KEYS others came in
    between. `now`: the time that changed skills get. `era`: the format of a skillbook that begins here.

    Raises UsageError for a name that is no text, an unknown rule, a `read` that is none or another user's, a batch that
    does not fit `read` or makes a skillbook too large, and a document that is no skillbook; StoreError where the store
    fails: repeat the update then with the same key.
    """
    if rule not in get_args(Rule):
        raise UsageError(f"rule={rule!r}; valid: {', '.join(get_args(Rule))}")
    _check_name(user)
    a_text(key, "the key of the batch", AceLimits())
    if read is not None:
        _check_read(read, user)
    try:
        read = read or load(store, user, now) or VersionedBook(AceBook(era), 0)
        if key in read.book.batches:
            return UpdateEnd("stored before", read.version, 0)
        changes = changes_of(batch, read.book)
        after, todo, base = commit(read.book, changes, now), as_it_is(changes), read
        for tries in range(1, TRIES[rule] + 1):
            if store.swap(user, base.version, _readable(with_key(after, key), now), key):
                return UpdateEnd("stored", base.version + 1, tries, todo.report)
            base = load(store, user, now) or VersionedBook(AceBook(read.book.era), 0)
            if key in base.book.batches:
                return UpdateEnd("stored before", base.version, tries)
            if rule != "blind":
                again = rule == "replay"
                todo = replayed(changes, base.book) if again else rebase(changes, read.book, base.book, alike)
                after = commit(base.book, todo.batch, now)
    except StoreError as error:
        hint = "keep the batch and repeat it with this key"
        raise StoreError(f"batch {key!r} of user {user!r}: {error}; {hint}") from error
    return UpdateEnd("given up", base.version, TRIES[rule])


def _check_name(user: object) -> None:
    """Raises UsageError where a store could not keep a skillbook under such a name, or not find it again."""
    if not isinstance(user, str):
        raise UsageError(f"user={user!r} is no text; a store knows users by texts: str({user!r}), if that is the name")
    if "\0" in user or any("\ud800" <= sign <= "\udfff" for sign in user):
        raise UsageError(f"user={user!r} has a character that no store keeps: U+0000, or half of a surrogate pair")


def _check_read(read: object, user: str) -> None:
    """Raises UsageError for what `load` has not given for this user: their skillbook would be written over."""
    if not isinstance(read, VersionedBook):
        raise UsageError(f"read={read!r:.40} is no skillbook with its version; hand over what load({user!r}) gave")
    if read.user not in (None, user):
        raise UsageError(f"read is the skillbook of user {read.user!r}, and not of {user!r}; hand over load({user!r})")


def _readable(book: AceBook, now: str) -> str:
    """The document of a skillbook that can be read again: sums may pass limits that each batch keeps."""
    try:
        from_dict(to_dict(book), book.era, now)
    except UsageError as error:
        raise UsageError(
            f"this batch would make a skillbook that breaks its format, so nothing is stored: {error}"
        ) from error
    return book_text(book)
