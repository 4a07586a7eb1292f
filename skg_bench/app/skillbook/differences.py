"""Differences of two skillbooks: rows of skill, field and change."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from skg_bench.core.content import NAMES
from skg_bench.skillbook.ace.book import AceBook, to_dict
from skg_bench.skillbook.skillbook import Skill, Skillbook

SKILL_COUNTERS = ("uses", "ok", "partial", "miss")
_SHOWN = 400  # characters of a value
ChangeRow = Sequence[str]


def of_documents(before: AceBook, after: AceBook) -> Iterator[ChangeRow]:
    """Differences of two documents of one format, field by field; skills are the same if they have the same id."""
    old, new = (to_dict(book)["skills"] for book in (before, after))
    for key in old | new:
        yield from _changes((key,), _entry(old.get(key)), _entry(new.get(key)))


def of_books(before: Skillbook, after: Skillbook, *, by_name: bool) -> Iterator[ChangeRow]:
    """Differences of two skillbooks; skills are the same if their name (in files) or their id (in a run) is."""
    key: Callable[[Skill], tuple[str, ...]] = _by_name if by_name else _by_id
    old, new = ({key(skill): skill for skill in book.skills} for book in (before, after))
    for label in old | new:
        yield from _changes(label, _fields(old.get(label)), _fields(new.get(label)))


def status(skill: Skill) -> str:
    """As tables have it."""
    return "active" if skill.active else "archived"


def _by_name(skill: Skill) -> tuple[str, ...]:
    return (skill.name,)


def _by_id(skill: Skill) -> tuple[str, ...]:
    return (str(skill.id), skill.name)


def _changes(label: ChangeRow, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[ChangeRow]:
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if old != new:
            yield (*label, name, _change(old, new))


def _change(before: str | None, after: str | None) -> str:
    if before is None:
        return f"+ {_cut(after or '')}"
    return f"- {_cut(before)}" if after is None else f"{_cut(before)} -> {_cut(after)}"


def _cut(value: str) -> str:
    return value if len(value) <= _SHOWN else f"{value[:_SHOWN]}... ({len(value):,} characters)"


def _entry(skill: Mapping[str, Any] | None) -> dict[str, str]:
    """Fields of a document's skill that say something; times and the id apart."""
    values = (
        {} if skill is None else {name: v for name, v in skill.items() if not name.endswith("_at") and name != "id"}
    )
    return {
        name: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)
        for name, v in values.items() if v not in (None, "", [], {}) and not (type(v) is int and v == 0)
    }  # fmt: skip


def _fields(skill: Skill | None) -> dict[str, str]:
    if skill is None:
        return {}
    values = {"status": status(skill)}
    if skill.content is not None:
        texts = {name: getattr(skill.content, name) for name in NAMES}
        values |= {name: " ".join(v) if isinstance(v, tuple) else v for name, v in texts.items() if v}
    values |= {name: str(getattr(skill, name)) for name in SKILL_COUNTERS if getattr(skill, name)}
    return values | {f"example {i + 1}": example for i, example in enumerate(skill.examples)}
