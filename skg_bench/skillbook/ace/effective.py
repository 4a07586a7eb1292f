"""Strict changes that do what a published engine does with a batch.

Garbage and silent no-ops are dropped, what stands before a failing operation is kept, and so is what that operation has
done before it failed. So the cost of an apply that is not atomic is a comparison of two lists of changes.
"""

from dataclasses import fields
from typing import Any

from skg_bench.skillbook.ace.book import COUNTERS, SKILL_OF, AceBook, AceSkill, CompatMode, Era, Json
from skg_bench.skillbook.ace.changes import SETTABLE, SOURCES, Change, ChangeType
from skg_bench.skillbook.ace.draft import Draft
from skg_bench.skillbook.ace.engine import check_era, perform
from skg_bench.skillbook.ace.engine_failures import ERRORS, holds_garbage
from skg_bench.skillbook.ace.operations import AceOperation, batch_of, printed_batch
from skg_bench.skillbook.ace.provenance import Provenance

_NO_TIME = "\x00"  # begins times that no book holds; one for each operation tells which of them touched a skill


def effective(book: AceBook, batch: Any, mode: CompatMode) -> tuple[Change, ...]:
    """The changes with the outcome that the published engine of `mode` has for a batch of parsed JSON: `commit` of them
    gives the book that `apply_as_published` gives.

    Raises UsageError for a book of another format than the mode's, and any mistake of ours.
    """
    era = check_era(book, mode)
    try:
        operations = batch_of(batch, era).operations
    except ERRORS:
        if not holds_garbage(book, batch):
            raise
        return ()  # nothing of a batch that cannot be parsed is applied
    draft, changes = Draft(book, ""), list[Change]()
    for i, operation in enumerate(operations):
        draft.now = f"{_NO_TIME}{i}"
        count, number, before = len(draft.skills), draft.next_id, draft.skills.get(operation.skill_id or "")
        whole = True
        try:
            perform(draft, operation)
        except ERRORS:
            if not holds_garbage(book, printed_batch(operations, era)):
                raise
            whole = False
        if operation.type == "ADD":
            changes += _added(draft, operation, count) if whole else [Change("SKIP")] * (draft.next_id - number)
        elif before is not None:
            changes += _changed(draft, operation, before)
        if not whole:
            break
    return tuple(changes)


def _added(draft: Draft, operation: AceOperation, count: int) -> list[Change]:
    """An ADD; what metadata has put into fields that no ADD sets comes behind it."""
    era, section, name = draft.era, operation.section, SOURCES[draft.era]
    if era == "v2":
        section = "harness" if section.strip().lower() == "harness" else "context"
    key = draft.sections[section][-1]
    skill = draft.skills[key]
    values: Json = {field: getattr(skill, field) for field in (*SETTABLE[era], *COUNTERS[era])} | {"section": section}
    if era == "v1":
        values["content"] = operation.content or ""
    sources = getattr(skill, name) if name is not None else ()
    replaced = len(draft.skills) == count
    add = Change("ADD", operation.skill_id or None, values, sources, *_why(operation), replaces=replaced)
    named: Json = {"id": key, "created_at": draft.now, "updated_at": draft.now, **({name: sources} if name else {})}
    rest = _difference(SKILL_OF[era](**values, **named), skill)
    return [add, Change("OVERWRITE", key, rest, touches=False)] if rest else [add]


def _changed(draft: Draft, operation: AceOperation, before: Any) -> list[Change]:
    """Change that an operation made to a skill that was there; empty if it made none."""
    era, key, name = draft.era, draft.held(operation.skill_id), SOURCES[draft.era]
    if key is None:
        return [Change("REMOVE", operation.skill_id, {}, (), *_why(operation))]
    after: Any = draft.skills[key]
    values, touched, sources = _difference(before, after), after.updated_at == draft.now, tuple[Provenance, ...]()
    if name is not None and values.pop(name, None) is not None:
        sources = getattr(after, name)[len(getattr(before, name)) :]
    if touched:
        del values["updated_at"]
        if operation.type == "UPDATE" and era == "v2":
            values.pop("embedding", None)  # `commit` drops it, too
    if not values and not sources and not touched:
        return []
    kind = _kind(operation.type, values, before, era)
    if kind == "TAG":
        values = {counter: value - getattr(before, counter) for counter, value in values.items()}
    elif kind == "REMOVE":
        values = {}
    return [Change(kind, key, values, sources, *_why(operation), touches=touched)]


def _kind(asked_type: str, values: Json, before: Any, era: Era) -> ChangeType:
    """The type of the operation where it has only done what its type may do."""
    numbers = [number for name in values for number in (values[name], getattr(before, name))]
    if asked_type == "TAG" and values.keys() <= set(COUNTERS[era]) and all(type(number) is int for number in numbers):
        return "TAG"
    if asked_type == "REMOVE" and values.keys() <= {"active"}:
        return "REMOVE"
    texts = all(value is None or isinstance(value, str | tuple) for value in values.values())
    if asked_type == "UPDATE" and values.keys() <= set(SETTABLE[era]) and texts:
        return "UPDATE"
    return "OVERWRITE"


def _difference(before: AceSkill, after: AceSkill) -> Json:
    """Fields that differ, with their new values; `true` differs from 1."""
    pairs = ((f.name, getattr(before, f.name), getattr(after, f.name)) for f in fields(after))
    return {name: new for name, old, new in pairs if old is not new and (type(old) is not type(new) or old != new)}


def _why(operation: AceOperation) -> tuple[str | None, tuple[int, ...]]:
    first = () if operation.reflection_index is None else (operation.reflection_index,)
    return operation.reason, tuple(dict.fromkeys([*first, *operation.reflection_indices]))
