"""Changes of a book beside update batches: uses, removals, embeddings, and the work of a child agent."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from skg_bench.skillbook.ace.book import AceBook, Vector
from skg_bench.skillbook.ace.draft import Draft
from skg_bench.skillbook.ace.engine import add_insight, perform
from skg_bench.skillbook.ace.engine_failures import ERRORS, AceFailure, holds_garbage
from skg_bench.skillbook.ace.operations import AceOperation, printed_batch

Upkept = tuple[AceBook, AceFailure | None]  # after a failure, the book as far as the work came


def mark_used(book: AceBook, ids: Iterable[str], now: str) -> Upkept:
    """One more use of each active skill of a `v2` book; unknown and removed ones do not count."""

    def count(draft: Draft) -> None:
        for key in ids:
            if draft.held(key) is not None and draft.skills[key].active:
                draft.change(key, used_count=draft.skills[key].used_count + 1, updated_at=now)

    return _done(book, now, "mark_used", count)


def soft_remove(book: AceBook, key: str, now: str) -> Upkept:
    """Hide a skill from prompts, retrieval and the search for near-duplicates."""
    return _done(book, now, "soft_remove", lambda draft: draft.soft_remove(key))


def purge(book: AceBook, key: str) -> Upkept:
    """Delete a skill for good."""
    return _done(book, "", "purge", lambda draft: draft.purge(key))


def _done(book: AceBook, now: str, name: str, work: Callable[[Draft], None]) -> Upkept:
    draft = Draft(book, now)
    try:
        work(draft)
    except ERRORS as error:
        if not holds_garbage(book):
            raise
        return draft.book, AceFailure(name, type(error).__name__)
    return draft.book, None


def embed(book: AceBook, vectors: Mapping[str, Sequence[float]]) -> AceBook:
    """Give skills their embeddings; unknown ids are passed over."""
    draft = Draft(book, "")
    for key, vector in vectors.items():
        values: Vector = tuple(vector)
        if draft.held(key) is not None:
            draft.change(key, embedding=values)
    return draft.book


def commit_child(
    book: AceBook, operations: Sequence[AceOperation], now: str
) -> tuple[AceBook, dict[str, str], AceFailure | None]:
    """Take over what a child agent did on a copy of a `v2` book: its new skills get ids of this book.

    Returns the book, the new id for each of the child's, and why nothing was taken over: this is all or nothing.
    """
    draft, ids = Draft(book, now), dict[str, str]()
    try:
        for operation in operations:
            if operation.type == "ADD":
                key = add_insight(draft, replace(operation, skill_id=None), operation.issue)
                if operation.skill_id is not None:
                    ids[operation.skill_id] = key
            else:
                named = operation.skill_id
                perform(draft, replace(operation, skill_id=None if named is None else ids.get(named, named)))
    except ERRORS as error:
        if not holds_garbage(book, printed_batch(operations, book.era)):
            raise
        return book, {}, AceFailure("commit_child", type(error).__name__)
    return draft.book, ids, None
