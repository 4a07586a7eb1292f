"""Skillbooks as Agent Skills: a folder for each skill with a SKILL.md, which today's agents load.

The front matter has `name` (the id), `description` (the issue) and, under `metadata`, section and keywords; the body is
the insight, or the issue where a skill has none. The limits are those of the open specification (agentskills.io).
"""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from skg_bench.core.content import Content
from skg_bench.core.conversion import ConvertedBook
from skg_bench.core.errors import UsageError
from skg_bench.core.skillbook import Skill, Skillbook

FILE = "SKILL.md"
_NAME, _DESCRIPTION, _LARGEST = 64, 1024, 1_000_000  # characters, characters, bytes
_KNOWN = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")


def write(book: Skillbook, folder: Path) -> Mapping[str, int]:
    """Write active skills that say something, each into a folder of its own. Returns what is lost, by kinds.

    Raises UsageError where the folder is there already.
    """
    if folder.exists():
        raise UsageError(f"{folder} is there already; name another folder with --out")
    lost: Counter[str] = Counter()
    folder.mkdir(mode=0o700, parents=True)
    for skill in book.skills:
        if skill.content is None or not skill.active:
            lost["removed skills" if skill.content is not None else "skills that say nothing"] += 1
            continue
        lost.update(_lost(skill, skill.content))
        name = _name(skill.shown_id)
        (folder / name).mkdir()
        (folder / name / FILE).write_text(_text(name, skill.content), "utf-8")
    return dict(lost)


def read(folder: Path) -> ConvertedBook:
    """Read the skills of a folder, in order of their names. A body beyond the description is the insight.

    Raises UsageError for a folder without skills, front matter that is missing or breaks the specification, and texts
    that no skill can say.
    """
    files = sorted(folder.glob(f"*/{FILE}")) or sorted(folder.glob(FILE))
    if not files:
        raise UsageError(f"{folder} holds no skills: valid are folders with a {FILE} each")
    lost: Counter[str] = Counter()
    skills = []
    for number, file in enumerate(files):
        front, body = _parts(file)
        lost.update(field for field in ("license", "compatibility", "allowed-tools") if field in front)
        lost.update(["other files"] if sum(1 for _ in file.parent.iterdir()) > 1 and file.parent != folder else [])
        content = _content(file, front, body)
        skills.append(
            Skill(number, front["name"], -1, (), True, 0, 0, 0, 0, 0, 0, 0, (0,) * 8, 0, -1, content)
        )  # fmt: skip
    return ConvertedBook(Skillbook(tuple(skills), 0), dict(lost))


def _lost(skill: Skill, content: Content) -> list[str]:
    kinds = {
        "names": True, "counters": skill.uses or skill.ok or skill.partial or skill.miss, "examples": skill.examples,
        "stored answers": skill.source_turn >= 0, "times": True,
        f"descriptions over {_DESCRIPTION:,} characters": len(content.issue) > _DESCRIPTION,
    }  # fmt: skip
    return [kind for kind, holds in kinds.items() if holds]


def _name(shown: str) -> str:
    """A valid name: small letters, digits and single hyphens, with the number of the skill at its end."""
    words, _, number = shown.rpartition("-")
    safe = re.sub(r"[^a-z0-9]+", "-", words).strip("-")[: _NAME - len(number) - 1].strip("-")
    return f"{safe}-{number}" if safe else number


def _text(name: str, content: Content) -> str:
    metadata = {"section": content.section, "keywords": " ".join(content.keywords)}
    front = {"name": name, "description": content.issue[:_DESCRIPTION], "metadata": metadata}
    body = content.issue if content.insight is None else content.insight
    return f"---\n{yaml.safe_dump(front, allow_unicode=True, sort_keys=False, width=10**6)}---\n\n{body}\n"


def _parts(file: Path) -> tuple[dict[str, Any], str]:
    """Front matter and body."""
    if file.stat().st_size > _LARGEST:
        raise UsageError(f"{file} has {file.stat().st_size:,} bytes; at most {_LARGEST:,} are read")
    try:
        text = file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is no text in UTF-8: {error}") from error
    match = re.match(r"\ufeff?---\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|$)(.*)", text, re.DOTALL)
    if match is None:
        raise UsageError(f"{file} has no front matter: it must begin with --- and have a second --- after its fields")
    try:
        front = yaml.safe_load(match[1])
    except yaml.YAMLError as error:
        raise UsageError(f"{file}: its front matter is no YAML: {error}") from error
    if not isinstance(front, dict):
        raise UsageError(f"{file}: its front matter has no fields; name and description are needed")
    if unknown := [str(key) for key in front if key not in _KNOWN]:
        raise UsageError(f"{file}: unknown field {unknown[0]!r}; valid are {', '.join(_KNOWN)}")
    for field, most in (("name", _NAME), ("description", _DESCRIPTION)):
        value = front.get(field)
        if not isinstance(value, str) or not 0 < len(value.strip()) <= most:
            raise UsageError(f"{file}: {field}={str(value)[:80]!r}; a text of 1 to {most:,} characters is needed")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", front["name"]):
        raise UsageError(f"{file}: name={front['name']!r}; valid are small letters, digits and single hyphens")
    if not isinstance(front.get("metadata", {}), dict):
        raise UsageError(f"{file}: metadata={str(front['metadata'])[:80]!r}; fields with texts are needed")
    return front, match[2].strip()


def _content(file: Path, front: Mapping[str, Any], body: str) -> Content:
    metadata = front.get("metadata", {})
    issue = front["description"].strip()
    whole = body if len(issue) == _DESCRIPTION and body.startswith(issue) else issue
    keywords = tuple(str(metadata.get("keywords", "")).split())
    insight = None if body in ("", whole) else body
    try:
        return Content(str(metadata.get("section", "context")), whole, insight, keywords)
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from error
