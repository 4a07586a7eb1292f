"""The strict algebra of documents: plain changes, all of them or none.

ADD, UPDATE, TAG and REMOVE are what a batch may ask for (`strict.changes_of`). Two more exist because a published
engine can do what no strict batch asks for, and `effective` has to say so: SKIP uses up a number that no skill gets,
OVERWRITE puts values into any field.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from skg_bench.core.errors import UsageError
from skg_bench.skillbook.ace.book import COUNTERS, SKILL_OF, AceBook, Era
from skg_bench.skillbook.ace.draft import Draft
from skg_bench.skillbook.ace.provenance import Provenance, merged_provenance

ChangeType = Literal["ADD", "UPDATE", "TAG", "REMOVE", "SKIP", "OVERWRITE"]
SETTABLE: dict[Era, tuple[str, ...]] = {  # what an UPDATE may set
    "v1": ("content",),
    "v09": ("content", "justification", "evidence"),
    "v2": ("issue", "insight", "keywords"),
}
SOURCES: dict[Era, str | None] = {"v1": None, "v09": "sources", "v2": "occurrences"}


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one skill."""

    type: ChangeType
    skill_id: str | None = None  # None: an ADD gets the next number
    values: Mapping[str, Any] = field(default_factory=dict)  # fields to set; of a TAG what its counters gain
    sources: tuple[Provenance, ...] = ()
    reason: str | None = None
    reflections: tuple[int, ...] = ()  # U10, U11: the reflections that it comes from, the first one first
    replaces: bool = False  # an ADD takes the place of a skill of the same id
    touches: bool = True  # sets the time of the last change


def commit(book: AceBook, changes: Sequence[Change], now: str) -> AceBook:
    """The book after all changes.

    Raises UsageError for an unknown id, type or field, an ADD whose id is taken, and TAGs of a book without counters;
    the book is whole, as nothing of it was changed.
    """
    draft = Draft(book, now)
    for i, change in enumerate(changes):
        _commit(draft, change, f"operation {i + 1} ({change.type})")
    return draft.book


def _commit(draft: Draft, change: Change, where: str) -> None:
    if change.type == "SKIP":
        draft.next_id += 1
        return
    if change.type == "ADD":
        _add(draft, change, where)
        return
    key = change.skill_id
    if key is None or draft.held(key) is None:
        raise UsageError(
            f"{where} names skill {key!r}, which the book does not have (it has {len(draft.skills)} skills)"
        )
    if change.type == "REMOVE":
        if draft.era != "v2":
            draft.purge(key)
            return
        values: dict[str, Any] = {"active": False}
    elif change.type == "TAG":
        _check_fields(change, COUNTERS[draft.era], where)
        values = {name: getattr(draft.skills[key], name) + gain for name, gain in change.values.items()}
    elif change.type in ("UPDATE", "OVERWRITE"):
        if change.type == "UPDATE":
            _check_fields(change, SETTABLE[draft.era], where)
        values = dict(change.values)
    else:
        raise UsageError(f"{where} is of no known type; valid: ADD, UPDATE, TAG, REMOVE")
    name = SOURCES[draft.era]
    if change.sources and name is not None:
        values[name] = merged_provenance(getattr(draft.skills[key], name), change.sources)
    if change.touches:
        values["updated_at"] = draft.now
        if change.type == "UPDATE" and draft.era == "v2":
            values["embedding"] = None  # of another text
    draft.change(key, **values)


def _add(draft: Draft, change: Change, where: str) -> None:
    values = dict(change.values)
    _check_fields(change, ("section", *SETTABLE[draft.era], *COUNTERS[draft.era]), where)
    key = change.skill_id or draft.number(values["section"])
    if draft.held(key) is not None and not change.replaces:
        raise UsageError(f"{where} would take the id {key!r}, which a skill of this book has; next_id={draft.next_id}")
    name = SOURCES[draft.era]
    if name is not None:
        values[name] = merged_provenance((), change.sources)
    draft.skills[key] = SKILL_OF[draft.era](id=key, created_at=draft.now, updated_at=draft.now, **values)
    draft.show(values["section"], key)


def _check_fields(change: Change, valid: Sequence[str], where: str) -> None:
    unknown = [name for name in change.values if name not in valid]
    if unknown:
        raise UsageError(
            f"{where} sets {unknown[0]!r}; valid: {', '.join(valid) or 'nothing, as the book has no counters'}"
        )
