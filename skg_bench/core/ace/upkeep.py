"""What changes a book beside update batches: uses, removals, embeddings, and the work of a child agent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from skg_bench.core.ace.book import AceBook, Vector
from skg_bench.core.ace.draft import Draft
from skg_bench.core.ace.engine import ERRORS, AceFailure, add_insight, perform
from skg_bench.core.ace.operations import AceOperation


def mark_used(book: AceBook, ids: Iterable[str], now: str) -> AceBook:
    """One more use of each active skill of a `v2` book; unknown and removed ones do not count."""
    draft = Draft(book, now)
    for key in ids:
        if draft.held(key) is not None and draft.skills[key].active:
            draft.change(key, used_count=draft.skills[key].used_count + 1, updated_at=now)
    return draft.book


def soft_remove(book: AceBook, key: str, now: str) -> AceBook:
    """Hide a skill from prompts, retrieval and the search for near-duplicates."""
    draft = Draft(book, now)
    draft.soft_remove(key)
    return draft.book


def purge(book: AceBook, key: str) -> AceBook:
    """Delete a skill for good."""
    draft = Draft(book, "")
    draft.purge(key)
    return draft.book


def embed(book: AceBook, vectors: Mapping[str, Sequence[float]]) -> AceBook:
    """Give skills their embeddings."""
    draft = Draft(book, "")
    for key, vector in vectors.items():
        values: Vector = tuple(vector)
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
        return book, {}, AceFailure("commit_child", type(error).__name__)
    return draft.book, ids, None
