"""Update batches applied as the published packages apply them: operation by operation, without a way back.

An error ends the batch and leaves what it has done so far, also within an operation. The order in which fields are
checked and changed is theirs, as it decides what an error leaves behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from skg_bench.core.errors import UsageError
from skg_bench.skillbook.ace.book import AceBook, CompatMode, CounterSkill, Era, InsightSkill, PlainSkill, era_of
from skg_bench.skillbook.ace.draft import Draft
from skg_bench.skillbook.ace.engine_failures import ERRORS, AceFailure, holds_garbage
from skg_bench.skillbook.ace.operations import TAGS, AceBatch, AceOperation, batch_of, printed_batch
from skg_bench.skillbook.ace.provenance import merged_provenance, sources_of, text_or_none
from skg_bench.skillbook.ace.words import SECTIONS, keywords_of, required, section_of


@dataclass(frozen=True, slots=True)
class AceOutcome:
    """The book after a batch: after a failure, as far as the batch came."""

    book: AceBook
    batch: AceBatch | None  # as parsed; None where parsing failed
    failure: AceFailure | None = None


def apply_as_published(book: AceBook, payload: Any, mode: CompatMode, now: str) -> AceOutcome:
    """Parse and apply a batch of parsed JSON. `now` is the time that touched skills get.

    Raises UsageError for a book of another format than the mode's; an error over what is whole is a mistake of ours.
    """
    era = check_era(book, mode)
    try:
        batch = batch_of(payload, era)
    except ERRORS as error:
        if not holds_garbage(book, payload):
            raise
        return AceOutcome(book, None, AceFailure("parse", type(error).__name__))
    after, failure = apply_operations(book, batch.operations, mode, now)
    return AceOutcome(after, batch, failure)


def apply_operations(
    book: AceBook, operations: Sequence[AceOperation], mode: CompatMode, now: str
) -> tuple[AceBook, AceFailure | None]:
    """Apply operations that are built already; the book as far as they came."""
    check_era(book, mode)
    draft = Draft(book, now)
    try:
        for operation in operations:
            perform(draft, operation)
    except ERRORS as error:
        if not holds_garbage(book, printed_batch(operations, book.era)):
            raise
        return draft.book, AceFailure("apply", type(error).__name__)
    return draft.book, None


def check_era(book: AceBook, mode: CompatMode) -> Era:
    """The format of the mode.

    Raises UsageError where the book has another.
    """
    era = era_of(mode)
    if book.era != era:
        raise UsageError(f"mode={mode} applies batches to books of {era}; this book is of {book.era}")
    return era


def perform(draft: Draft, operation: AceOperation) -> None:
    """One operation; an unknown type or id does nothing."""
    steps = _STEPS[draft.era]
    step = steps.get(operation.type.upper())
    if step is not None and (operation.skill_id is not None or step in _ADDS):
        step(draft, operation)


# --------------------------------------------------------------------------------------------------- counters: v1


def _add_counted(draft: Draft, operation: AceOperation) -> None:
    key = operation.skill_id or draft.number(operation.section)
    fresh = CounterSkill(key, operation.section, operation.content or "", draft.now, draft.now)
    draft.skills[key] = _written_over(fresh, operation.metadata or {})
    draft.show(operation.section, key)


def _update_counted(draft: Draft, operation: AceOperation) -> None:
    key = draft.held(operation.skill_id)
    if key is None:
        return
    if operation.content is not None:
        draft.change(key, content=operation.content)
    if operation.metadata:
        if "apply_metadata" in draft.skills[key].overwritten:
            raise TypeError("metadata has put a number over apply_metadata")
        skill = draft.skills[key]
        try:
            for name, value in operation.metadata.items():
                skill = _written_over(skill, {name: value})
        finally:
            draft.skills[key] = skill
    draft.change(key, updated_at=draft.now)


def _written_over(skill: CounterSkill, metadata: Any) -> CounterSkill:
    """Metadata puts its numbers over whatever attribute has the name, methods included."""
    for name, value in metadata.items():
        if name in _FIELDS:
            skill = replace(skill, **{name: int(value)})  # type: ignore[arg-type]
        elif name in _METHODS:
            int(value)
            skill = replace(skill, overwritten=skill.overwritten | {name})
        elif name in _FIXED:
            int(value)
            raise _FIXED[name](f"{name} takes no number")
    return skill


_FIELDS = frozenset(CounterSkill.__dataclass_fields__) - {"overwritten"}
_METHODS = frozenset({"apply_metadata", "tag", "to_llm_dict"})
_FIXED = {"__class__": TypeError, "__dict__": TypeError, "__weakref__": AttributeError}


def _tag_counted(draft: Draft, operation: AceOperation) -> None:
    for tag, increment in operation.metadata.items():
        key = draft.held(operation.skill_id) if tag in TAGS else None
        if key is None:
            continue
        skill = draft.skills[key]
        if "tag" in skill.overwritten:
            raise TypeError("metadata has put a number over tag")
        draft.change(key, **{tag: getattr(skill, tag) + increment, "updated_at": draft.now})


def _remove_hard(draft: Draft, operation: AceOperation) -> None:
    draft.purge(operation.skill_id)


# ------------------------------------------------------------------------------------------------ plain texts: v09


def _add_plain(draft: Draft, operation: AceOperation) -> None:
    key = operation.skill_id or draft.number(operation.section)
    sources = merged_provenance((), sources_of(operation.insight_source))
    draft.skills[key] = PlainSkill(
        key, operation.section, operation.content or "", draft.now, draft.now, operation.justification,
        operation.evidence, sources=sources,
    )  # fmt: skip
    draft.show(operation.section, key)


def _update_plain(draft: Draft, operation: AceOperation) -> None:
    key = draft.held(operation.skill_id)
    if key is None:
        return
    values = {name: getattr(operation, name) for name in ("content", "justification", "evidence")}
    draft.change(key, **{name: value for name, value in values.items() if value is not None})
    skill = draft.skills[key]
    draft.change(
        key, sources=merged_provenance(skill.sources, sources_of(operation.insight_source)), updated_at=draft.now
    )


def _tag_plain(draft: Draft, operation: AceOperation) -> None:
    """0.9.7 keeps no counters."""


# ------------------------------------------------------------------------------------------- issue and insight: v2


def _add_insight(draft: Draft, operation: AceOperation) -> None:
    add_insight(draft, operation, operation.issue or "")


def add_insight(draft: Draft, operation: AceOperation, issue: Any) -> str:
    """Add a skill of `v2` and return its id."""
    given = required(operation.section, "section").lower()
    section, keywords = section_of(given, keywords_of(operation.keywords))
    issue, insight = required(issue, "issue"), text_or_none(operation.insight)
    keywords = keywords or (given,)
    if section == "context" and insight is None:
        if given in SECTIONS:
            raise ValueError("a skill of context needs an insight")
        insight = issue
    key = operation.skill_id or draft.number(section)
    sources = merged_provenance((), sources_of(operation.insight_source))
    draft.skills[key] = InsightSkill(key, section, keywords, issue, draft.now, draft.now, insight, sources)
    draft.show(section, key)
    return key


def _update_insight(draft: Draft, operation: AceOperation) -> None:
    key = draft.held(operation.skill_id)
    if key is None:
        return
    if operation.issue is not None:
        draft.change(key, issue=required(operation.issue, "issue"))
    if operation.keywords:
        keywords = keywords_of(operation.keywords)
        if not keywords:
            raise ValueError("keywords say nothing")
        draft.change(key, keywords=keywords)
    if operation.insight is not None:
        draft.change(key, insight=text_or_none(operation.insight))
    skill = draft.skills[key]
    if skill.section == "context" and not skill.insight:
        raise ValueError("a skill of context needs an insight")
    sources = merged_provenance(skill.occurrences, sources_of(operation.insight_source))
    draft.change(key, occurrences=sources, embedding=None, updated_at=draft.now)


def _tag_insight(draft: Draft, operation: AceOperation) -> None:
    delta = int(operation.metadata.get("delta", 0))
    key = draft.held(operation.skill_id)
    if key is None:
        return
    counter = "helpful_count" if delta > 0 else "harmful_count" if delta < 0 else "neutral_count"
    draft.change(key, **{counter: getattr(draft.skills[key], counter) + 1})
    _witnessed(draft, key, operation.insight_source)


def _remove_softly(draft: Draft, operation: AceOperation) -> None:
    key = draft.held(operation.skill_id)
    if key is not None:
        draft.change(key, active=False)
        _witnessed(draft, key, operation.insight_source)


def _witnessed(draft: Draft, key: str, source: Any) -> None:
    skill = draft.skills[key]
    draft.change(key, occurrences=merged_provenance(skill.occurrences, sources_of(source)), updated_at=draft.now)


_ADDS = (_add_counted, _add_plain, _add_insight)
_STEPS = {
    "v1": {"ADD": _add_counted, "UPDATE": _update_counted, "TAG": _tag_counted, "REMOVE": _remove_hard},
    "v09": {"ADD": _add_plain, "UPDATE": _update_plain, "TAG": _tag_plain, "REMOVE": _remove_hard},
    "v2": {"ADD": _add_insight, "UPDATE": _update_insight, "TAG": _tag_insight, "REMOVE": _remove_softly},
}
