"""Strict batches: an atomic update of a document, refused where it holds what the format has no place for."""

from typing import Any, cast

from skg_bench.core.errors import UsageError
from skg_bench.skillbook.ace.book import COUNTERS, AceBook, Era, Json
from skg_bench.skillbook.ace.changes import SETTABLE, Change, ChangeType, commit
from skg_bench.skillbook.ace.checks import (
    LARGEST_COUNTER,
    AceLimits,
    a_list,
    a_number,
    a_text,
    abridged,
    an_object,
    parsed_json,
    the_keywords,
    the_sources,
)
from skg_bench.skillbook.ace.operations import TYPES
from skg_bench.skillbook.ace.words import SECTIONS

_ALWAYS = ("type", "section", "reason")
_ORIGIN = ("insight_source", "learning_index", "reflection_index", "reflection_indices")
_DEFAULT = AceLimits()


def strict(book: AceBook, batch: Any, now: str, *, key: str | None = None, limits: AceLimits = _DEFAULT) -> AceBook:
    """The book after one atomic batch, as text or parsed JSON (U08). A batch whose `key` it contains changes nothing.

    Raises UsageError for what `changes_of` and `commit` refuse; the book is whole.
    """
    if key is not None and key in book.batches:
        return book
    changes = changes_of(batch, book, limits)
    after = commit(book, changes, now)
    if len(after.skills) > limits.skills:
        raise UsageError(f"the skillbook would have {len(after.skills):,} skills; at most {limits.skills:,} are taken")
    batches = book.batches if key is None else (*book.batches, key)
    return AceBook(after.era, after.skills, after.sections, after.next_id, after.decisions, batches)


def changes_of(batch: Any, book: AceBook, limits: AceLimits = _DEFAULT) -> tuple[Change, ...]:
    """The changes that a batch asks for.

    Raises UsageError for torn JSON, an unknown type or field, a field that is missing or of another kind, a section
    that is not the skill's, and whatever is beyond the limits.
    """
    payload = parsed_json(batch, "the batch") if isinstance(batch, str) else batch
    top = an_object(payload, "the batch", ("reasoning", "operations"), ("operations",))
    a_text(top.get("reasoning", ""), "reasoning", limits, blank=True)
    items = a_list(top["operations"], "operations", limits.operations)
    return tuple(change_of(item, f"operation {i + 1}", book, limits) for i, item in enumerate(items))


def change_of(item: Any, where: str, book: AceBook, limits: AceLimits) -> Change:
    """The change that one operation asks for; `where` names it in errors, of which `changes_of` tells."""
    era, kind = book.era, item.get("type") if isinstance(item, dict) else "ADD"
    if kind not in TYPES:
        raise UsageError(f"{where} has the type {abridged(kind)}; valid: {', '.join(TYPES)}")
    if kind == "TAG" and not COUNTERS[era]:
        raise UsageError(f"{where} is a TAG, but a {era} book has no counters")
    origin = _ORIGIN if era != "v1" else ()
    entry = an_object(item, where, (*_ALWAYS, *_own(kind, era), *origin), _needed(kind, era))
    values = {name: _value(name, entry[name], where, limits) for name in SETTABLE[era] if entry.get(name) is not None}
    key = None if kind == "ADD" else a_text(entry["skill_id"], f"{where}.skill_id", limits)
    if kind == "ADD":
        values["section"] = _section(entry["section"], where, era, limits)
        values |= _counters(entry.get("metadata", {}), f"{where}.metadata", era, 0)
        if values["section"] == "context" and era == "v2" and "insight" not in values:
            raise UsageError(f"{where} adds to the section context, but lacks an insight")
    elif kind == "TAG":
        values = _tag(entry["metadata"], f"{where}.metadata", era)
    elif kind == "UPDATE" and not values:
        raise UsageError(f"{where} is an UPDATE that sets nothing; it needs one of {', '.join(SETTABLE[era])}")
    skill = book.skills.get(key or "")
    if kind == "UPDATE" and skill is not None and entry.get("section", "") not in ("", skill.section):
        raise UsageError(
            f"{where} names the section {abridged(entry['section'])}, but {key} is of {abridged(skill.section)}"
        )
    reason = None if entry.get("reason") is None else a_text(entry["reason"], f"{where}.reason", limits)
    source = entry.get("insight_source")
    sources = () if source is None else the_sources(source, f"{where}.insight_source", limits)
    return Change(cast("ChangeType", kind), key, values, sources, reason, _reflections(entry, where, limits))


def _own(kind: str, era: Era) -> tuple[str, ...]:
    """Fields of an operation of this type alone."""
    if kind == "ADD":
        return (*SETTABLE[era], "metadata") if era == "v1" else SETTABLE[era]
    return {"UPDATE": ("skill_id", *SETTABLE[era]), "TAG": ("skill_id", "metadata"), "REMOVE": ("skill_id",)}[kind]


def _needed(kind: str, era: Era) -> tuple[str, ...]:
    if kind == "ADD":
        return ("section", "issue", "keywords") if era == "v2" else ("section", "content")
    return ("skill_id", "metadata") if kind == "TAG" else ("skill_id",)


def _value(name: str, value: Any, where: str, limits: AceLimits) -> Any:
    if name == "keywords":
        return the_keywords(value, f"{where}.keywords", limits)
    return a_text(value, f"{where}.{name}", limits).strip()


def _section(value: Any, where: str, era: Era, limits: AceLimits) -> str:
    section = a_text(value, f"{where}.section", limits)
    if era == "v2" and section not in SECTIONS:
        raise UsageError(f"{where}.section is {abridged(section)}; valid: {', '.join(SECTIONS)}")
    return section


def _counters(value: Any, where: str, era: Era, least: int) -> dict[str, int]:
    counters = an_object(value, where, COUNTERS[era])
    return {name: a_number(count, f"{where}.{name}", least, LARGEST_COUNTER) for name, count in counters.items()}


def _tag(value: Any, where: str, era: Era) -> dict[str, int]:
    """Gain of counters (U04, U12)."""
    if era == "v2":
        delta = a_number(an_object(value, where, ("delta",), ("delta",))["delta"], f"{where}.delta", -1, 1)
        return {("neutral_count", "helpful_count", "harmful_count")[delta]: 1}
    gains = _counters(value, where, era, 1)
    if not gains:
        raise UsageError(f"{where} is empty; it needs one of {', '.join(COUNTERS[era])}")
    return gains


def _reflections(entry: Json, where: str, limits: AceLimits) -> tuple[int, ...]:
    listed = a_list(entry.get("reflection_indices", []), f"{where}.reflection_indices", limits.sources)
    first = [entry["reflection_index"]] if entry.get("reflection_index") is not None else []
    if entry.get("learning_index") is not None:
        a_number(entry["learning_index"], f"{where}.learning_index", 0)
    return tuple(dict.fromkeys(a_number(index, f"{where}.reflection_index", 0) for index in [*first, *listed]))
