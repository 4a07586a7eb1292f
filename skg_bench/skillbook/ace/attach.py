"""Provenance for the operations of a `v09` batch: which reflections, and so which traces, an operation comes from.

`reflection_index` (U10) names the reflection, `reflection_indices` (U11) all of them; without either there is one
candidate, or `learning_index` picks it. Out-of-range and repeated indices are dropped.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skg_bench.skillbook.ace.operations import AceOperation
from skg_bench.skillbook.ace.provenance import (
    ID_KEYS,
    Provenance,
    TraceName,
    fingerprint,
    merged_provenance,
    name_of,
    named_trace,
    old_id,
    text_or_none,
)

IDENTITY_KEYS = ("ace.trace_identity", "trace_identity")


@dataclass(frozen=True, slots=True)
class Reflection:
    """The parts of a reflector's answer that provenance reads."""

    error_identification: str = ""
    learnings: tuple[str, ...] = ()
    raw: Mapping[str, Any] | None = None

    @property
    def item(self) -> str | None:
        """Id of the trace that it is about."""
        return _item_id(self.raw or {})


def reflection_of(payload: Mapping[str, Any]) -> Reflection:
    """A reflection from parsed JSON."""
    learnings = tuple(entry["learning"] for entry in payload.get("extracted_learnings", ()))
    return Reflection(payload.get("error_identification", ""), learnings, payload.get("raw", {}))


def attach(
    operations: Sequence[AceOperation],
    reflections: Sequence[Reflection],
    trace: Any,
    epoch: int | None = None,
    sample_question: str = "",
) -> tuple[AceOperation, ...]:
    """The operations with their provenance; those that have some keep it. `trace`: parsed JSON of what was reflected
    on, an object, or a list of traces (also under `items` or `tasks`).
    """
    whole = _name(trace, "local")
    errors = (text_or_none(reflection.error_identification) for reflection in reflections)
    error = next((text for text in errors if text), None)
    question = _first(sample_question, _question(trace))
    attached = []
    for operation in operations:
        if operation.insight_source is not None:
            attached.append(operation)
            continue
        index = _reflection_index(operation, reflections)
        reflection = reflections[index] if index is not None else None
        learning = _learning(operation, reflection)
        records: tuple[Provenance, ...] = ()
        for name, asked_there, relation in _traces(operation, reflections, index, trace, whole):
            records = merged_provenance(records, [Provenance(
                name.trace_uid, name.source_system, name.trace_id, name.display_name, relation,
                _first(asked_there, sample_question, question), epoch, operation.type,
                _first(reflection.error_identification if reflection else None, error), learning,
            )])  # fmt: skip
        attached.append(replace(operation, insight_source=records))
    return tuple(attached)


def _traces(
    operation: AceOperation,
    reflections: Sequence[Reflection],
    index: int | None,
    trace: Any,
    whole: TraceName,
) -> Iterator[tuple[TraceName, str | None, str]]:
    """Name, question and relation of each trace that an operation comes from."""
    items = _items(trace)
    chosen = _chosen(operation, reflections, index, items) if items is not None else []
    if items is None or not chosen:
        yield whole, _question(trace), "seed"
        return
    for i in chosen:
        item = items[i]
        name = whole if item is trace else _name(item, whole.source_system)
        yield name, _question(item), "seed" if i == chosen[0] else "supporting"


def _valid(operation: AceOperation, reflections: Sequence[Reflection]) -> list[int]:
    return list(dict.fromkeys(i for i in operation.reflection_indices if 0 <= i < len(reflections)))


def _reflection_index(operation: AceOperation, reflections: Sequence[Reflection]) -> int | None:
    index, indices = operation.reflection_index, _valid(operation, reflections)
    if index is not None and 0 <= index < len(reflections):
        return index
    if indices:
        return indices[0]
    if len(reflections) == 1:
        return 0
    holders = [i for i, reflection in enumerate(reflections) if _learning(operation, reflection) is not None]
    return holders[0] if len(holders) == 1 else None


def _learning(operation: AceOperation, reflection: Reflection | None) -> str | None:
    index = operation.learning_index
    if reflection is None or index is None or not 0 <= index < len(reflection.learnings):
        return None
    return reflection.learnings[index]


def _chosen(
    operation: AceOperation, reflections: Sequence[Reflection], index: int | None, items: list[Any]
) -> list[int]:
    """Items of a batch: by the operation's indices, then by the id of its reflection, at last by position."""
    chosen = [i for i in _valid(operation, reflections) if i < len(items)]
    identity = reflections[index].item if index is not None else None
    if identity is not None:
        chosen += [i for i, item in enumerate(items) if _batch_id(item, i) == identity and i not in chosen]
    if not chosen and index is not None and index < len(items):
        return [index]
    return chosen


def _items(trace: Any) -> list[Any] | None:
    """Traces of a batch; None where there is one trace."""
    if isinstance(trace, list):
        return trace
    if not isinstance(trace, Mapping):
        return None
    for key in ("items", "tasks"):
        if isinstance(trace.get(key), list):
            return list(trace[key])
    steps = trace.get("steps")
    return steps if isinstance(steps, list) and steps and all(map(_is_conversation, steps)) else None


def _is_conversation(step: Any) -> bool:
    return isinstance(step, Mapping) and step.get("role") == "conversation" and isinstance(step.get("content"), Mapping)


def _batch_id(item: Any, index: int) -> str:
    for holder in (item, item.get("content") if isinstance(item, Mapping) else None):
        identity = _item_id(holder) if isinstance(holder, Mapping) else None
        if identity is not None:
            return identity
    return f"item_{index}"


def _item_id(holder: Mapping[str, Any]) -> str | None:
    return next((str(holder[key]) for key in ("trace_id", *ID_KEYS) if holder.get(key) is not None), None)


def _name(trace: Any, system: str) -> TraceName:
    """The best stable name of a trace; its fingerprint where it has none."""
    if isinstance(trace, Mapping):
        given = next((trace[key] for key in IDENTITY_KEYS if trace.get(key)), None)
        if isinstance(given, Mapping):
            return name_of(given)
        if any(key in trace for key in ("trace_uid", "trace_id", "source_system")):
            return name_of(trace)
        question, identity = text_or_none(trace.get("question")), old_id(trace)
        if identity is not None:
            return named_trace(system, identity, text_or_none(trace.get("display_name")) or question or identity)
        print_of = fingerprint(trace)
        return named_trace(system, print_of, question or print_of)
    print_of = fingerprint(trace)
    return named_trace(system, print_of, print_of)


def _question(trace: Any) -> str | None:
    if not isinstance(trace, Mapping):
        return None
    inner = trace.get("trace")
    return _first(trace.get("question"), inner.get("question") if isinstance(inner, Mapping) else None)


def _first(*values: Any) -> str | None:
    """The first that says something."""
    return next((text for text in map(text_or_none, values) if text), None)
