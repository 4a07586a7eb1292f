"""Skillbooks as Agent Skills: a folder for each skill with a SKILL.md, which today's agents load.

The front matter has `name` (the id), `description` (the issue) and, under `metadata`, section and keywords; the body is
the insight, or the issue where a skill has none. The limits are those of the open specification (agentskills.io).
"""

import re
import reprlib
from collections import Counter
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

import yaml

from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import FAULTS, bytes_of, plain
from skg_bench.core.temporary import write_private
from skg_bench.skillbook.ace.words import keywords_of
from skg_bench.skillbook.conversion import ConvertedBook
from skg_bench.skillbook.skillbook import Skill, Skillbook

SKILL_FILE = "SKILL.md"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NAME, _DESCRIPTION, _LARGEST = 64, 1024, 1_000_000  # characters, characters, bytes


def write_agent_skills(book: Skillbook, folder: Path, *, by_name: bool = False) -> Mapping[str, int]:
    """Write active skills that say something, each into a folder of its own, whose name is section and number, or with
    `by_name` the skill's name. Returns what is lost, by kinds.
    """
    lost: Counter[str] = Counter()
    folder.mkdir(mode=0o700, parents=True)
    for skill in book.skills:
        if skill.content is None or not skill.active:
            lost["removed skills" if skill.content is not None else "skills that say nothing"] += 1
            continue
        name = _name(skill.name if by_name else skill.shown_id, skill.id, {path.name for path in folder.iterdir()})
        lost.update(_lost(skill, skill.content, name))
        (folder / name).mkdir(mode=0o700)
        write_private(folder / name / SKILL_FILE, _text(name, skill.content))
    return dict(lost)


def read_agent_skills(folder: Path) -> ConvertedBook:
    """Read the skills of a folder, in order of their names. A body beyond the description is the insight.

    Raises UsageError for a folder without skills, front matter that is missing or breaks the specification, and texts
    that no skill can say.
    """
    files = [
        file for file in sorted(folder.glob(f"*/{SKILL_FILE}")) or sorted(folder.glob(SKILL_FILE)) if file.is_file()
    ]
    if not files:
        raise UsageError(f"{folder} holds no skills: valid are folders with a {SKILL_FILE} each")
    lost: Counter[str] = Counter()
    skills = []
    for number, file in enumerate(files):
        front, body = _parts(file)
        lost.update(field for field in front if field not in ("name", "description", "metadata"))
        lost.update(["other files"] if sum(1 for _ in file.parent.iterdir()) > 1 and file.parent != folder else [])
        content = _content(file, front, body)
        skills.append(
            Skill(number, front["name"], -1, (), True, 0, 0, 0, 0, 0, 0, 0, (0,) * 8, 0, -1, content)
        )  # fmt: skip
    return ConvertedBook(Skillbook(tuple(skills), 0), dict(lost))


def _lost(skill: Skill, content: Content, name: str) -> list[str]:
    kinds = {
        "names": skill.name != name, "counters": skill.uses or skill.ok or skill.partial or skill.miss,
        "examples": skill.examples, "stored answers": skill.source_turn >= 0, "times": True,
        "provenance": skill.sources,
        f"descriptions over {_DESCRIPTION:,} characters": len(content.issue) > _DESCRIPTION,
    }  # fmt: skip
    return [kind for kind, holds in kinds.items() if holds]


def _name(wanted: str, number: int, taken: Container[str]) -> str:
    """A valid name: small letters, digits and single hyphens; with the skill's number where it would be another's."""
    safe = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")
    if safe and len(safe) <= _NAME and safe not in taken:
        return safe
    return f"{safe[: _NAME - 11].strip('-')}-{number + 1:05d}".strip("-")


def _text(name: str, content: Content) -> str:
    metadata = {"section": content.section, "keywords": " ".join(content.keywords)}
    front = {"name": name, "description": content.issue[:_DESCRIPTION], "metadata": metadata}
    body = content.issue if content.insight is None else content.insight
    return f"---\n{yaml.safe_dump(front, allow_unicode=True, sort_keys=False, width=10**6)}---\n\n{body}\n"


def _parts(file: Path) -> tuple[dict[str, Any], str]:
    """Front matter and body."""
    try:
        text = bytes_of(file, _LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is no text in UTF-8: {error}") from error
    match = re.match(r"---\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|$)(.*)", text, re.DOTALL)
    if match is None:
        raise UsageError(f"{file} has no front matter: it must begin with --- and have a second --- after its fields")
    try:
        front = plain(yaml.load(match[1], _LOADER), "it")  # noqa: S506  a safe loader
    except (yaml.YAMLError, UsageError, *FAULTS) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise UsageError(f"{file}: its front matter is no YAML of a skill: {reason}") from error
    if not isinstance(front, dict) or not all(isinstance(field, str) for field in front):
        raise UsageError(f"{file}: its front matter has no fields; name and description are needed")
    for field, most in (("name", _NAME), ("description", _DESCRIPTION)):
        value = front.get(field)
        if not isinstance(value, str) or not 0 < len(value.strip()) <= most:
            given = f"has {len(value):,} characters" if isinstance(value, str) else f"is {reprlib.repr(value)}"
            raise UsageError(f"{file}: its {field} {given}; a text of 1 to {most:,} characters is needed")
    name, folder = front["name"], file.parent.resolve().name
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise UsageError(f"{file}: name={name!r}; valid are small letters, digits and single hyphens")
    if name != folder:
        raise UsageError(f"{file}: name={name!r}, but its folder is {folder!r}; a skill is named as its folder is")
    return front, match[2].strip("\r\n")


def _content(file: Path, front: Mapping[str, Any], body: str) -> Content:
    metadata = front.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise UsageError(f"{file}: metadata is {reprlib.repr(metadata)}; fields with texts are needed")
    section: Any = metadata.get("section", "context")
    keywords: Any = metadata.get("keywords", "")
    if not isinstance(section, str):
        raise UsageError(f"{file}: metadata.section is {reprlib.repr(section)}; a text is needed")
    words = re.split(r"[,\s]+", keywords) if isinstance(keywords, str) else keywords
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise UsageError(f"{file}: metadata.keywords is {reprlib.repr(keywords)}; words are needed")
    issue = front["description"]
    whole = body if len(issue) == _DESCRIPTION and body.startswith(issue) else issue
    insight = None if body.strip() == "" or body == whole else body
    try:
        return Content(section, whole, insight, keywords_of(words))
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from error
