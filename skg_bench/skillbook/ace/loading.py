"""Books read as the published packages read them: what they drop, what they make up, and the errors they raise."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from skg_bench.skillbook.ace.book import (
    BOOK_SCHEMA,
    WRITTEN,
    AceBook,
    AceSkill,
    CompatMode,
    CounterSkill,
    Era,
    InsightSkill,
    Json,
    KeepDecision,
    PlainSkill,
    Sections,
    era_of,
)
from skg_bench.skillbook.ace.provenance import Provenance, merged_provenance, provenance_of, text_or_none
from skg_bench.skillbook.ace.words import keywords_of, required, section_of


def published_loads(text: str, mode: CompatMode, now: str) -> AceBook:
    """A book from a file's text. `now` stands where the file has no time."""
    payload = json.loads(text)
    if not isinstance(payload, dict):
        raise ValueError(f"a skillbook is a JSON object, not {type(payload).__name__}")  # noqa: TRY004 (the class is theirs)
    return published_from_dict(payload, mode, now)


def published_from_dict(payload: Mapping[str, Any], mode: CompatMode, now: str) -> AceBook:
    """A book from parsed JSON."""
    era = era_of(mode)
    if era == "v2" and str(payload.get("schema_version", "")) != BOOK_SCHEMA:
        raise ValueError(f"schema_version is not {BOOK_SCHEMA}")
    raw, read = payload.get("skills", {}), _READ[era]
    skills: dict[str, AceSkill] = {}
    for key, value in raw.items() if isinstance(raw, dict) else ():
        if isinstance(value, dict):
            skills[key] = read(value, now)
    sections = _sections(payload.get("sections", {}), era)
    number = payload.get("next_id", 0)
    next_id = 0 if number is None else int(number)
    kept = payload.get("similarity_decisions", {})
    decisions = {
        frozenset(key.split(",")): KeepDecision(**value)
        for key, value in (kept.items() if isinstance(kept, dict) else ())
        if isinstance(value, dict)
    }
    if era == "v2" and not sections:
        sections = _rebuilt(skills)
    return AceBook(era, skills, sections, next_id, decisions)


def _sections(raw: Any, era: Era) -> Sections:
    if not isinstance(raw, dict):
        return {}
    if era == "v2":
        return {
            section: tuple(str(key) for key in ids)
            for section, ids in raw.items()
            if isinstance(ids, Iterable) and not isinstance(ids, str)
        }
    return {section: tuple(ids) if isinstance(ids, Iterable) else () for section, ids in raw.items()}


def _rebuilt(skills: Mapping[str, AceSkill]) -> Sections:
    sections: dict[str, tuple[str, ...]] = {}
    for skill in skills.values():
        sections[skill.section] = (*sections.get(skill.section, ()), skill.id)
    return sections


def _counted(value: Json, now: str) -> CounterSkill:
    unknown = [name for name in value if name not in WRITTEN["v1"]]
    if unknown:
        raise TypeError(f"a skill of v1 has no field {unknown[0]!r}")
    times: Json = {"created_at": now, "updated_at": now}
    return CounterSkill(**(times | value))


def _plain(value: Json, now: str) -> PlainSkill:
    fields = {name: entry for name, entry in value.items() if name in WRITTEN["v09"]}
    sources = _read_sources(fields.get("sources"))
    return PlainSkill(**({"created_at": now, "updated_at": now} | fields | {"sources": sources}))


def _insightful(value: Json, now: str) -> InsightSkill:
    words = value.get("keywords")
    keywords = keywords_of(words if isinstance(words, list) else [])
    keywords = keywords or keywords_of([value.get("section", "context")])
    section = required(str(value.get("section", "context")), "section").lower()
    section, keywords = section_of(section, keywords)
    issue, insight = required(value.get("issue"), "issue"), text_or_none(value.get("insight"))
    fields = {name: entry for name, entry in value.items() if name in WRITTEN["v2"]}
    cleaned = {
        "section": section, "keywords": keywords, "issue": issue, "insight": insight,
        "occurrences": _read_sources(value.get("occurrences")), "active": bool(value.get("active", True)),
    }  # fmt: skip
    return InsightSkill(**({"created_at": now, "updated_at": now} | fields | cleaned))


def _read_sources(raw: Any) -> tuple[Provenance, ...]:
    if not isinstance(raw, list):
        return ()
    return merged_provenance((), [provenance_of(item) for item in raw if isinstance(item, dict)])


_READ: dict[Era, Callable[[Json, str], AceSkill]] = {"v1": _counted, "v09": _plain, "v2": _insightful}
