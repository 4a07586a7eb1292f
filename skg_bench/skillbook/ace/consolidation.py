"""Near-duplicates merged, deleted, kept apart or reworded, as the packages' deduplication does."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skg_bench.skillbook.ace.book import AceBook, KeepDecision
from skg_bench.skillbook.ace.draft import Draft
from skg_bench.skillbook.ace.engine_failures import ERRORS, AceFailure, holds_garbage

DEFAULTS: dict[str, dict[str, Any]] = {
    "MERGE": {"source_ids": [], "merged_content": "", "keep_id": "", "reasoning": ""},
    "DELETE": {"skill_id": "", "reasoning": ""},
    "KEEP": {"skill_ids": [], "differentiation": "", "reasoning": ""},
    "UPDATE": {"skill_id": "", "new_content": "", "reasoning": ""},
}
_KINDS = {"type": str} | {name: type(value) for values in DEFAULTS.values() for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Consolidation:
    """The book after a list of operations: after a failure, as far as it came."""

    book: AceBook
    parsed: int  # operations that were understood
    failure: AceFailure | None = None


def consolidate(book: AceBook, payload: Any, now: str) -> Consolidation:
    """Apply MERGE, DELETE, KEEP and UPDATE operations of parsed JSON; what is no list or of another type is dropped."""
    draft = Draft(book, now)
    operations: list[dict[str, Any]] = []
    try:
        operations = _parsed(payload)
        for operation in operations:
            _STEPS[operation["type"]](draft, operation)
    except ERRORS as error:
        if _is_whole(payload) and not holds_garbage(book):
            raise
        return Consolidation(draft.book, len(operations), AceFailure("consolidate", type(error).__name__))
    return Consolidation(draft.book, len(operations))


def _is_whole(payload: Any) -> bool:
    """Is it a list of operations whose fields are texts, and lists of texts where lists belong?"""
    items = [item for item in payload if isinstance(item, dict)] if isinstance(payload, list) else []
    pairs = [(item[name], kind) for item in items for name, kind in _KINDS.items() if name in item]
    return all(isinstance(value, kind) for value, kind in pairs) and all(
        isinstance(key, str) for value, _ in pairs if isinstance(value, list) for key in value
    )


def _parsed(payload: Any) -> list[dict[str, Any]]:
    operations = []
    for item in payload if isinstance(payload, list) else []:
        if isinstance(item, dict):
            kind = item.get("type", "").upper()
            if kind in DEFAULTS:
                values = {name: item.get(name, default) for name, default in DEFAULTS[kind].items()}
                operations.append({"type": kind, **values})
    return operations


def _merge(draft: Draft, operation: dict[str, Any]) -> None:
    """The counters of `v1` are summed, those of `v2` are not."""
    kept = operation["keep_id"]
    if draft.held(kept) is None:
        return
    for source in operation["source_ids"]:
        if source == kept or draft.held(source) is None:
            continue
        if draft.era == "v1":
            for counter in ("helpful", "harmful", "neutral"):
                total = getattr(draft.skills[kept], counter) + getattr(draft.skills[source], counter)
                draft.change(kept, **{counter: total})
        draft.soft_remove(source)
    if operation["merged_content"]:
        _reword(draft, kept, operation["merged_content"])
    draft.change(kept, embedding=None, updated_at=draft.now)


def _delete(draft: Draft, operation: dict[str, Any]) -> None:
    draft.soft_remove(operation["skill_id"])


def _keep(draft: Draft, operation: dict[str, Any]) -> None:
    ids = operation["skill_ids"]
    for i, first in enumerate(ids) if len(ids) >= 2 else ():
        for second in ids[i + 1 :]:
            reasoning = operation["reasoning"] or operation["differentiation"]
            draft.decisions[frozenset([first, second])] = KeepDecision("KEEP", reasoning, draft.now, 0.0)


def _update(draft: Draft, operation: dict[str, Any]) -> None:
    key = draft.held(operation["skill_id"])
    if key is not None:
        _reword(draft, key, operation["new_content"])
        draft.change(key, embedding=None, updated_at=draft.now)


def _reword(draft: Draft, key: str, text: Any) -> None:
    """Replaces the text, which in `v2` is the insight of a skill of context, and the issue of any other."""
    if draft.era != "v2":
        draft.change(key, content=text)
    else:
        draft.change(key, **{"insight" if draft.skills[key].section == "context" else "issue": text})


_STEPS: dict[str, Callable[[Draft, dict[str, Any]], None]] = {
    "MERGE": _merge, "DELETE": _delete, "KEEP": _keep, "UPDATE": _update,
}  # fmt: skip
