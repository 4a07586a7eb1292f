"""Traces that taught a skill: ACE's provenance records (U10, U11), equal in 0.9.7 and 0.13.0."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any

ID_KEYS = ("sample_id", "item_id", "task_id", "id")  # older names of a trace's id, in order of preference
PROVENANCE_TEXTS = ("relation", "sample_question", "operation_type", "error_identification", "learning_text")


@dataclass(frozen=True, slots=True)
class TraceName:
    """Names a trace across systems."""

    trace_uid: str
    source_system: str
    trace_id: str
    display_name: str | None


@dataclass(frozen=True, slots=True)
class Provenance:
    """How one trace informed a skill."""

    trace_uid: str
    source_system: str
    trace_id: str
    display_name: str | None = None
    relation: str | None = None  # seed or supporting
    sample_question: str | None = None
    epoch: int | None = None
    operation_type: str | None = None
    error_identification: str | None = None
    learning_text: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As files have it: what is None is left out."""
        values = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {name: value for name, value in values if value is not None}

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal records; unlike Python, files tell `true` from 1."""
        return (*(getattr(self, f.name) for f in fields(self)), type(self.epoch))


def text_or_none(value: Any) -> str | None:
    """Text without outer blanks; None where nothing is left."""
    return None if value is None else str(value).strip() or None


def named_trace(source_system: str, trace_id: str, shown: str | None = None, trace_uid: str | None = None) -> TraceName:
    """A trace's name, with the defaults of the packages."""
    system, identity = source_system.strip() or "local", trace_id.strip()
    return TraceName(trace_uid or f"{system}:{identity}", system, identity, text_or_none(shown))


def old_id(payload: Mapping[str, Any]) -> str | None:
    """The first of the older names of an id that says something."""
    ids = (text_or_none(payload.get(key)) for key in ID_KEYS)
    return next((identity for identity in ids if identity is not None), None)


def fingerprint(value: Any) -> str:
    """Names a trace by its content."""
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    except TypeError:
        text = repr(value)
    return sha256(text.encode("utf-8")).hexdigest()


def name_of(payload: Mapping[str, Any]) -> TraceName:
    """A trace's name from a record: from its uid, from an older id, at last from the record's content."""
    uid, system, identity = (text_or_none(payload.get(key)) for key in ("trace_uid", "source_system", "trace_id"))
    if uid and ":" in uid and None in (system, identity):
        first, rest = uid.split(":", 1)
        system, identity = system or first, identity or rest
    older = old_id(payload)
    if identity is None:
        identity = older if older is not None else fingerprint(dict(payload))
    system = "legacy" if system is None else system
    return named_trace(system, identity, text_or_none(payload.get("display_name")) or older or identity, uid)


def provenance_of(payload: Mapping[str, Any]) -> Provenance:
    """A record from what a model or a file wrote."""
    name = name_of(payload)
    texts = {key: text_or_none(payload.get(key)) for key in PROVENANCE_TEXTS}
    names = (name.trace_uid, name.source_system, name.trace_id, name.display_name)
    return Provenance(*names, **texts, epoch=_epoch(payload.get("epoch")))  # type: ignore[arg-type]


def _epoch(value: Any) -> int | None:
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.strip().lstrip("-").isdigit():
        return int(value)
    return None


def sources_of(value: Any) -> tuple[Provenance, ...]:
    """Records from one, several, or none; what is neither a record nor an object counts for nothing."""
    if isinstance(value, Provenance):
        return (value,)
    if isinstance(value, Mapping):
        return (provenance_of(value),)
    if not isinstance(value, Iterable) or isinstance(value, str | bytes):
        return ()
    return tuple(
        item if isinstance(item, Provenance) else provenance_of(item)
        for item in value
        if isinstance(item, Provenance | Mapping)
    )


def merged_provenance(known: tuple[Provenance, ...], more: Iterable[Provenance]) -> tuple[Provenance, ...]:
    """`known`, then those of `more` that are new."""
    records = list(known)
    keys = {record.key for record in records}
    for record in more:
        if record.key not in keys:
            keys.add(record.key)
            records.append(record)
    return tuple(records)
