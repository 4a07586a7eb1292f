"""Strict books as files (P11): what is read is whole, of the format that was named, and free of collisions."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from skg_bench.core.errors import UsageError
from skg_bench.skillbook.ace.book import (
    BOOK_SCHEMA,
    COUNTERS,
    ERAS,
    SKILL_OF,
    WRITTEN,
    AceBook,
    AceSkill,
    Era,
    Json,
    KeepDecision,
    dumps,
    to_dict,
)
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
from skg_bench.skillbook.ace.words import SECTIONS

_TOP = ("skills", "sections", "next_id", "similarity_decisions", "batches")
_DECISION = ("decision", "reasoning", "decided_at", "similarity_at_decision")
_NEEDED: dict[Era, tuple[str, ...]] = {
    "v1": ("id", "section", "content"),
    "v09": ("id", "section", "content"),
    "v2": ("id", "section", "keywords", "issue"),
}
_DEFAULT = AceLimits()
_MOST_IDS = 10**15
_Kind = Callable[[Any, str, AceLimits], Any]


def loads(text: str, era: Era, now: str, limits: AceLimits = _DEFAULT) -> AceBook:
    """A book from a file's text. `now` stands where the file has no time.

    Raises UsageError for torn JSON, a book of another format, fields and values that the format does not have, texts
    beyond the limits, and ids that collide.
    """
    return from_dict(parsed_json(text, "the skillbook"), era, now, limits)


def format_of(content: str) -> Era:
    """The format of a file's text, by what only one has: a version, or counters of skills."""
    try:
        value: Any = json.loads(content)
    except (ValueError, RecursionError):
        return "v2"  # whose reader says what is wrong
    if not isinstance(value, dict) or "schema_version" in value:
        return "v2"
    skills = value.get("skills")
    entries = [entry for entry in skills.values() if isinstance(entry, dict)] if isinstance(skills, dict) else []
    return "v1" if not entries or any("helpful" in entry for entry in entries) else "v09"


def from_dict(payload: Any, era: Era, now: str, limits: AceLimits = _DEFAULT) -> AceBook:
    """A book from parsed JSON; raises as `loads` does."""
    if era not in ERAS:
        raise UsageError(f"format={era}; valid: {', '.join(ERAS)}")
    _check_format(payload, era)
    top = an_object(payload, "the skillbook", ("schema_version", *_TOP) if era == "v2" else _TOP)
    raw = top.get("skills", {})
    if not isinstance(raw, dict):
        raise UsageError(f"skills is {abridged(raw)}; an object of skills by id is needed")
    if len(raw) > limits.skills:
        raise UsageError(f"the skillbook has {len(raw):,} skills; at most {limits.skills:,} are taken")
    skills = {key: _skill(key, value, era, now, limits) for key, value in raw.items()}
    sections = _sections(top.get("sections"), skills, limits)
    next_id = a_number(top.get("next_id", 0), "next_id", 0, _MOST_IDS)
    _check_ids(skills, next_id)
    batches = tuple(a_text(key, "batches", limits) for key in a_list(top.get("batches", []), "batches", 10**9))
    return AceBook(era, skills, sections, next_id, _decisions(top.get("similarity_decisions", {}), limits), batches)


def _check_format(payload: Any, era: Era) -> None:
    version = payload.get("schema_version") if isinstance(payload, dict) else None
    if era == "v2" and isinstance(payload, dict) and version != BOOK_SCHEMA:
        given = "no schema_version" if version is None else f"schema_version {abridged(version)}"
        raise UsageError(
            f"the skillbook has {given}; a v2 book has {BOOK_SCHEMA!r}: read a book without one as v1 or v09"
        )
    if era != "v2" and version is not None:
        raise UsageError(f"the skillbook has schema_version {abridged(version)}; {era} has none: read this book as v2")


def _skill(key: str, value: Any, era: Era, now: str, limits: AceLimits) -> AceSkill:
    where = f"skill {abridged(key)}"
    a_text(key, "an id", limits)
    entry = an_object(value, where, WRITTEN[era], _NEEDED[era])
    if entry["id"] != key:
        raise UsageError(f"{where} has the id {abridged(entry['id'])}; a skill stands under its own id")
    values: Json = {"created_at": now, "updated_at": now}
    for name, content in entry.items():
        values[name] = checked_field(name, content, f"{where}.{name}", limits)
    if era == "v2":
        if values["section"] not in SECTIONS:
            raise UsageError(f"{where}.section is {abridged(values['section'])}; valid: {', '.join(SECTIONS)}")
        if values["section"] == "context" and not (values.get("insight") or "").strip():
            raise UsageError(f"{where} of the section context lacks an insight")
    return SKILL_OF[era](**values)


def checked_field(name: str, value: Any, where: str, limits: AceLimits) -> Any:
    """The value of a skill's field, as skills have it.

    Raises UsageError, which names `where`, for what the field cannot hold.
    """
    check: _Kind = _KINDS.get(name, _text)
    return check(value, where, limits)


def highest_number(ids: Iterable[str]) -> int:
    """The largest number at the end of an id; 0 without any."""
    return max((int(match[1]) for key in ids if (match := re.search(r"-(\d{1,18})$", key))), default=0)


def _text(value: Any, where: str, limits: AceLimits) -> str:
    return a_text(value, where, limits)


def _optional(value: Any, where: str, limits: AceLimits) -> str | None:
    return None if value is None else a_text(value, where, limits)


def _count(value: Any, where: str, _: AceLimits) -> int:
    return a_number(value, where, 0, LARGEST_COUNTER)


def _flag(value: Any, where: str, _: AceLimits) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{where} is {abridged(value)}; true or false is needed")
    return value


def _status(value: Any, where: str, _: AceLimits) -> str:
    if value not in ("active", "invalid"):
        raise UsageError(f"{where} is {abridged(value)}; valid: active, invalid")
    return str(value)


def _vector(value: Any, where: str, _: AceLimits) -> tuple[float, ...] | None:
    if value is None:
        return None
    numbers = a_list(value, where, 100_000)
    if any(isinstance(number, bool) or not isinstance(number, int | float) for number in numbers):
        raise UsageError(f"{where} is {abridged(value)}; a list of numbers is needed")
    return tuple(numbers)


_COUNTS = (*COUNTERS["v1"], *COUNTERS["v2"], "used_count")
_KINDS: Mapping[str, _Kind] = {
    **dict.fromkeys(_COUNTS, _count), **dict.fromkeys(("justification", "evidence", "insight"), _optional),
    **dict.fromkeys(("sources", "occurrences"), the_sources), "keywords": the_keywords, "active": _flag,
    "status": _status, "embedding": _vector,
}  # fmt: skip


def _sections(raw: Any, skills: Mapping[str, AceSkill], limits: AceLimits) -> dict[str, tuple[str, ...]]:
    """Each skill stands once, in its own section; without any lists, in the order of the file."""
    listed: dict[str, list[str]] = {}
    if raw is None or raw == {}:
        for key, skill in skills.items():
            listed.setdefault(skill.section, []).append(key)
        return {section: tuple(ids) for section, ids in listed.items()}
    if not isinstance(raw, dict):
        raise UsageError(f"sections is {abridged(raw)}; an object of lists of ids is needed")
    seen: set[str] = set()
    for section, ids in raw.items():
        for key in a_list(ids, f"sections[{abridged(section)}]", limits.skills):
            if not isinstance(key, str) or key not in skills:
                raise UsageError(f"section {abridged(section)} lists {abridged(key)}, which is no skill of this book")
            if key in seen or skills[key].section != section:
                known = "twice" if key in seen else f"of section {abridged(skills[key].section)}"
                raise UsageError(f"section {abridged(section)} lists {abridged(key)}, which stands {known}")
            seen.add(key)
    if len(seen) < len(skills):
        key = next(key for key in skills if key not in seen)
        raise UsageError(f"no section lists skill {abridged(key)}")
    return {section: tuple(ids) for section, ids in raw.items()}


def _check_ids(skills: Mapping[str, AceSkill], next_id: int) -> None:
    """A book whose counter is behind its ids would give one of them again."""
    most = highest_number(skills)
    if most > next_id:
        key = next(key for key in skills if highest_number([key]) == most)
        raise UsageError(f"next_id={next_id}, but the book has skill {abridged(key)}: set next_id to {most} or more")


def _decisions(raw: Any, limits: AceLimits) -> dict[frozenset[str], KeepDecision]:
    if not isinstance(raw, dict):
        raise UsageError(f"similarity_decisions is {abridged(raw)}; an object by pairs of ids is needed")
    decisions = {}
    for key, value in raw.items():
        where = f"similarity_decisions[{abridged(key)}]"
        entry, pair = an_object(value, where, _DECISION, _DECISION), frozenset(key.split(","))
        if len(pair) != 2:
            raise UsageError(f"{where} names {len(pair)} skills; two ids with a comma between are needed")
        texts = [a_text(entry[name], f"{where}.{name}", limits, blank=name == "reasoning") for name in _DECISION[:3]]
        number = entry["similarity_at_decision"]
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise UsageError(f"{where}.similarity_at_decision is {abridged(number)}; a number is needed")
        decisions[pair] = KeepDecision(texts[0], texts[1], texts[2], number)
    return decisions


__all__ = ["dumps", "format_of", "from_dict", "loads", "to_dict"]
