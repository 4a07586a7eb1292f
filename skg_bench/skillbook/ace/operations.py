"""Update batches as the published packages parse and print them.

Errors are Python's own, of the classes that the packages raise: an unknown type fails the whole batch, garbage
elsewhere becomes a default, an item that is no object is skipped.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from skg_bench.skillbook.ace.book import Era, Json
from skg_bench.skillbook.ace.provenance import provenance_of, sources_of, text_or_none
from skg_bench.skillbook.ace.words import keywords_of

TYPES = ("ADD", "UPDATE", "TAG", "REMOVE")
TAGS = ("helpful", "harmful", "neutral")
_INDICES = ("insight_source", "learning_index", "reflection_index", "reflection_indices")
PRINTED: dict[Era, tuple[str, ...]] = {  # fields of an operation, in the order in which each package prints them
    "v1": ("type", "section", "content", "skill_id", "metadata"),
    "v09": ("type", "section", "content", "skill_id", "metadata", "justification", "evidence", *_INDICES),
    "v2": ("type", "section", "issue", "keywords", "insight", "skill_id", "metadata", "reason", *_INDICES),
}
_LEFT_OUT_IF_EMPTY = ("keywords", "metadata", "reflection_indices")


@dataclass(frozen=True, slots=True)
class AceOperation:
    """One update of any format; fields that a format does not have keep their defaults. What is built without parsing
    may hold anything.
    """

    type: str
    section: str
    content: str | None = None
    issue: str | None = None
    keywords: Iterable[Any] = ()
    insight: str | None = None
    skill_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    justification: str | None = None
    evidence: str | None = None
    reason: str | None = None
    insight_source: Any = None
    learning_index: int | None = None
    reflection_index: int | None = None  # U10: the reflection that it comes from
    reflection_indices: tuple[int, ...] = ()  # U11: all that it comes from


@dataclass(frozen=True, slots=True)
class AceBatch:
    """Operations of one answer of a skill manager, and why."""

    reasoning: str
    operations: tuple[AceOperation, ...]


def batch_of(payload: Any, era: Era) -> AceBatch:
    """A batch from parsed JSON, as the package of that format reads it."""
    items = payload.get("operations")
    if not isinstance(items, Iterable):
        items = ()
    operations = tuple(operation_of(item, era) for item in items if isinstance(item, dict))
    return AceBatch(str(payload.get("reasoning", "")), operations)


def operation_of(payload: Mapping[str, Any], era: Era) -> AceOperation:
    """An operation from parsed JSON."""
    raw = payload.get("metadata") or {}
    metadata = raw if isinstance(raw, dict) else {}
    kind = str(payload["type"]).upper()
    if kind == "TAG" and era != "v2":
        metadata = {key: value for key, value in metadata.items() if str(key) in TAGS}
    if kind not in TYPES:
        raise ValueError(f"type {kind} of an operation is none of {', '.join(TYPES)}")
    values: Json = {"type": kind}
    if era != "v1":
        values |= _origin(payload)
    if era == "v2":
        words = payload.get("keywords")
        values["keywords"] = keywords_of(words) if _is_list(words) else ()
        values |= {name: text_or_none(payload.get(name)) for name in ("issue", "insight", "reason")}
    else:
        names = ("content",) if era == "v1" else ("content", "justification", "evidence")
        values |= {name: None if payload.get(name) is None else str(payload[name]) for name in names}
    values["section"] = str(payload.get("section", ""))
    values["skill_id"] = None if payload.get("skill_id") is None else str(payload["skill_id"])
    values["metadata"] = {str(key): int(value) for key, value in metadata.items()}
    return AceOperation(**values)


def built(fields: Mapping[str, Any], era: Era) -> AceOperation:
    """An operation from its fields, unread: TypeError for a field that the format does not have, or without type or
    section.
    """
    unknown = [name for name in fields if name not in PRINTED[era]]
    if unknown:
        raise TypeError(f"an operation of {era} has no field {unknown[0]!r}")
    return AceOperation(**fields)


def to_json(operation: AceOperation, era: Era) -> Json:
    """The operation as the package of that format prints it."""
    printed: Json = {}
    for name in PRINTED[era]:
        value = getattr(operation, name)
        if name == "insight_source":
            sources = [source.to_dict() for source in sources_of(value)]
            if sources:
                printed[name] = sources[0] if len(sources) == 1 else sources
        elif name in _LEFT_OUT_IF_EMPTY:
            if value:
                printed[name] = dict(value) if name == "metadata" else list(value)
        elif value is not None or name in ("type", "section"):
            printed[name] = value
    return printed


def batch_json(batch: AceBatch, era: Era) -> Json:
    """The batch as the package of that format prints it."""
    return {"reasoning": batch.reasoning, "operations": [to_json(operation, era) for operation in batch.operations]}


def printed_batch(operations: Iterable[AceOperation], era: Era) -> Json:
    """The operations alone as a batch; None in place of one that cannot be printed, as it was built of anything."""
    items: list[Json | None] = []
    for operation in operations:
        try:
            items.append(to_json(operation, era))
        except (AttributeError, TypeError, ValueError):
            items.append(None)
    return {"operations": items}


def _origin(payload: Mapping[str, Any]) -> Json:
    """Origin of an operation; numbers are read where they can be, the rest counts for nothing."""
    source = payload.get("insight_source")
    values: Json = {"insight_source": None}
    if isinstance(source, dict):
        values["insight_source"] = provenance_of(source)
    elif _is_list(source):
        values["insight_source"] = tuple(provenance_of(item) for item in source if isinstance(item, dict))
    values |= {name: _whole(payload.get(name)) for name in ("learning_index", "reflection_index")}
    indices = payload.get("reflection_indices")
    read = (_whole(value) for value in (indices if _is_list(indices) else ()))
    return values | {"reflection_indices": tuple(index for index in read if index is not None)}


def _is_list(value: Any) -> TypeGuard[Iterable[Any]]:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def _whole(value: Any) -> int | None:
    """None for what is no number; infinity is an OverflowError there, too."""
    if value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        return None
