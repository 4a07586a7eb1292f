"""Skillbooks as Agent Skills: a folder for each skill with a SKILL.md, which today's agents load.

The front matter has `name` (the id), `description` (the issue) and, under `metadata`, what a skill of ACE has beyond
that: section, keywords, counters, times, provenance, and texts that description and body do not show exactly. The body
is the insight, or the issue where a skill has none. Removed skills stand in `.removed`, where no agent looks. What
concerns the whole book is in `skillbook.json` beside the folders. So books come back equal.

Folders of other people are read too: nothing in them is run, and what a skill of ACE has no place for is counted.
"""

import json
import os
import re
import reprlib
import shutil
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import text_of
from skg_bench.core.temporary import write_private
from skg_bench.skillbook.ace.book import (
    BOOK_SCHEMA,
    ERAS,
    SKILL_OF,
    WRITTEN,
    AceBook,
    AceSkill,
    CounterSkill,
    Era,
    InsightSkill,
    Json,
    PlainSkill,
    to_dict,
)
from skg_bench.skillbook.ace.checks import AceLimits, a_list, a_text, an_object, parsed_json
from skg_bench.skillbook.ace.codec import checked_field, from_dict, highest_number
from skg_bench.skillbook.ace.words import keywords_of
from skg_bench.skillbook.conversion import ConvertedAce, richest
from skg_bench.skillbook.skill_files import (
    LONGEST_DESCRIPTION,
    LONGEST_NAME,
    SKILL_FILE,
    SkillFile,
    read_skill_file,
    skill_text,
)

REMOVED, BOOK = ".removed", "skillbook.json"
_MARK = "skg-bench"  # field of `metadata` that says: the others are ours, of this format of ACE
_SHOWN = ("id", "section", "keywords", "issue", "insight", "content", "active", "status")  # fields with other places
_TEXTS = ("created_at", "updated_at", "justification", "evidence")  # fields that are texts; others are JSON
_BOOK = ("format", "order", "sections", "next_id", "similarity_decisions", "batches")
_LIMITS = AceLimits(text=1_000_000)  # as a file may have
_LARGEST = 200_000_000  # bytes of `skillbook.json`
_REFUSALS = 30  # lines of an error


@dataclass(frozen=True, slots=True)
class FolderSkill:
    """A file and the skill that it is."""

    file: SkillFile
    skill: AceSkill


@dataclass(frozen=True, slots=True)
class SkillFolders:
    """Content of a folder of skills, all of which are whole."""

    folder: Path
    skills: tuple[FolderSkill, ...]  # in order of their names, removed ones last
    left_out: tuple[str, ...]  # names of folders that hold no skill
    beside: tuple[str, ...] = ()  # names of files beside the folders

    @property
    def losses(self) -> Mapping[str, int]:
        """Kinds of what a skill of ACE has no place for, and how many skills each concerns."""
        lost: Counter[str] = Counter()
        for file in (skill.file for skill in self.skills):
            known = (
                "section",
                "keywords",
                *((_MARK, "id", "issue", "insight", *_kept(file)) if _is_ours(file) else ()),
            )
            lost.update([*file.others, *(f"metadata.{field}" for field in file.metadata if field not in known)])
            beside = sum(1 for _ in file.path.parent.iterdir()) > 1 and file.path.parent != self.folder
            lost.update(["other files"] if beside else [])
        return lost + Counter(self.without)

    @property
    def without(self) -> Mapping[str, int]:
        """Kinds of loss for folders that hold no skill, and for files that stand in none."""
        kinds = {f"folders without a {SKILL_FILE}": self.left_out, "files in no folder": self.beside}
        return {f"{kind}: {', '.join(names)}": len(names) for kind, names in kinds.items() if names}


def write_agent_skills(book: AceBook, folder: Path) -> None:
    """Write a new folder with all skills, each in a folder of its own, whose name is the skill's id where it is valid.

    Raises OSError.
    """
    folder.mkdir(mode=0o700, parents=True)
    names: set[str] = set()
    for number, skill in enumerate(book.skills.values()):
        name = _name(skill.id, number, names)
        names.add(name)
        place = folder / name if skill.active else folder / REMOVED / name
        place.mkdir(mode=0o700, parents=True)
        write_private(place / SKILL_FILE, _text(name, skill))
    whole = {name: value for name, value in to_dict(replace(book, skills={})).items() if name in _BOOK}
    content = {"format": book.era, "order": list(book.skills), **whole}
    write_private(folder / BOOK, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def read_folders(folder: Path, now: str) -> SkillFolders:
    """Read the folders of a folder, or the one skill that it is; `now` stands where a skill has no time.

    Raises UsageError for a folder without skills, with a line for each skill that breaks the specification or has
    fields under `metadata` that are not what they should be, and for two skills of one id.
    """
    if os.path.lexists(folder / SKILL_FILE):
        file = read_skill_file(folder / SKILL_FILE)
        return SkillFolders(folder, (FolderSkill(file, _skill(file, now, active=True)),), ())
    for beside in (folder / REMOVED, folder / BOOK):
        if beside.is_symlink():
            raise UsageError(f"{beside} is a link, and links are not followed; put a copy in its place")
    refusals: list[str] = []
    skills, without = _read(folder, now, refusals, active=True)
    if (folder / REMOVED).is_dir():
        skills += _read(folder / REMOVED, now, refusals, active=False)[0]
    count = len(skills) + len(refusals)
    if not count and not (folder / BOOK).is_file():
        raise UsageError(f"{folder} holds no skills: valid are folders with a {SKILL_FILE} each")
    if refusals:
        more = [f"and {len(refusals) - _REFUSALS:,} more"] if len(refusals) > _REFUSALS else []
        lines = "\n".join([*refusals[:_REFUSALS], *more])
        raise UsageError(
            f"{folder}: refused are {len(refusals):,} of {count:,} skills, and none is read; mend them or take them "
            f"out:\n{lines}"
        )
    times = Counter(read.skill.id for read in skills)
    for read in skills:
        if (many := times[read.skill.id]) > 1:
            raise UsageError(
                f"{read.file.where('metadata.id')}: {many} skills have the id {read.skill.id!r}; rename all but one"
            )
    return SkillFolders(folder, tuple(skills), tuple(without), tuple(_files_beside(folder)))


def read_agent_skills(folder: Path, now: str) -> ConvertedAce:
    """The skills of a folder as a document of ACE. Skills of other people may have sections that no format of ACE has,
    and no keywords.

    Raises UsageError as `read_folders` does, and for a `skillbook.json` that is none.
    """
    folders = read_folders(folder, now)
    return ConvertedAce(_book(folders, now), folders.losses)


def copy_folders(folders: SkillFolders, out: Path) -> None:
    """Copy skills, with all files beside them, byte for byte into a new folder. Nothing is run.

    Raises UsageError for a link inside, which would lead elsewhere, and for a pipe or a device.
    """
    places = [(read.file.path.parent, ("." if read.skill.active else REMOVED)) for read in folders.skills]
    for source, _ in places:
        for folder, inner, names in os.walk(source):
            for path in (Path(folder) / name for name in (*inner, *names)):
                if path.is_symlink():
                    raise UsageError(f"{path} is a link, and links are not followed; put a copy in its place")
                if not (path.is_file() or path.is_dir()):
                    raise UsageError(f"{path} is no file; take it out of the folder")
    out.mkdir(mode=0o700, parents=True)
    for source, above in places:
        shutil.copytree(source, out / above / source.absolute().name)
    if (folders.folder / BOOK).is_file():
        shutil.copy(folders.folder / BOOK, out / BOOK)


def _files_beside(folder: Path) -> Iterator[str]:
    """Names of files that belong to no skill, such as a licence of all; hidden ones are nobody's."""
    for place in sorted(folder.iterdir()):
        if place.is_file() and place.name != BOOK and not place.name.startswith("."):
            yield place.name


def _read(folder: Path, now: str, refusals: list[str], *, active: bool) -> tuple[list[FolderSkill], list[str]]:
    """Skills of a folder, and names of the folders that hold none; adds to the refusals."""
    skills, without = [], []
    for place in sorted(folder.iterdir()):
        if place.name.startswith(".") or not (place.is_dir() or place.is_symlink()):
            continue
        if not place.is_symlink() and not os.path.lexists(place / SKILL_FILE):
            without.append(place.name)
            continue
        try:
            file = read_skill_file(place / SKILL_FILE)
            skills.append(FolderSkill(file, _skill(file, now, active=active)))
        except UsageError as error:
            refusals.append(str(error))
    return skills, without


# -------------------------------------------------------------------------------------------------------- writing


def _name(wanted: str, number: int, taken: Container[str]) -> str:
    """A valid name: small letters, digits and single hyphens; with the skill's number where it would be another's."""
    safe = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")
    name, tail = safe, number + 1
    while not name or len(name) > LONGEST_NAME or name in taken:
        name = f"{safe[: LONGEST_NAME - 11].strip('-')}-{tail:05d}".strip("-")
        tail += 1
    return name


def _text(name: str, skill: AceSkill) -> str:
    era = next(era for era in ERAS if type(skill) is SKILL_OF[era])
    values: Json = to_dict(AceBook(era, {skill.id: skill}))["skills"][skill.id]
    usual = {f.name: f.default for f in fields(skill)}
    issue, insight = (skill.issue, skill.insight) if isinstance(skill, InsightSkill) else (skill.content, None)
    description, body = _description(issue), (issue if insight is None else insight).strip("\r\n")
    metadata = {_MARK: era, "section": skill.section}
    if keywords := " ".join(values.get("keywords", ())):
        metadata["keywords"] = keywords
    if skill.id != name:
        metadata["id"] = skill.id
    for field in WRITTEN[era]:
        if field not in _SHOWN and getattr(skill, field) != usual[field]:
            metadata[field] = values[field] if field in _TEXTS else json.dumps(values[field], ensure_ascii=False)
    if description != issue:
        metadata["issue"] = issue
    if _insight(body, issue) != insight:
        metadata["insight"] = json.dumps(insight, ensure_ascii=False)
    return skill_text(name, description, metadata, body)


def _description(issue: str) -> str:
    return issue.strip()[:LONGEST_DESCRIPTION].strip()


# -------------------------------------------------------------------------------------------------------- reading


def _insight(body: str, issue: str) -> str | None:
    """The insight that a body shows: none where it is empty or the issue once more."""
    return None if not body.strip() or body == issue.strip("\r\n") else body


def _is_ours(file: SkillFile) -> bool:
    return file.metadata.get(_MARK) in ERAS


def _kept(file: SkillFile) -> Iterator[str]:
    """Fields of the skill's format that stand under `metadata`."""
    era: Era = file.metadata[_MARK]
    return (field for field in WRITTEN[era] if field not in _SHOWN)


def _skill(file: SkillFile, now: str, *, active: bool) -> AceSkill:
    ours = _is_ours(file)
    era: Era = file.metadata[_MARK] if ours else "v2"
    values: Json = {"id": file.name, "created_at": now, "updated_at": now}
    values["section"] = _checked(file, "section", file.metadata.get("section", "context"))
    issue, body = file.description, file.body
    if ours:
        for field in ("id", *_kept(file)):
            if field in file.metadata:
                values[field] = _parsed(file, field)
        if "issue" in file.metadata and _description(whole := _checked(file, "issue", file.metadata["issue"])) == issue:
            issue = whole
    insight = _insight(body, issue)
    if ours and "insight" in file.metadata:
        exact = _parsed(file, "insight")
        insight = exact if (issue if exact is None else exact).strip("\r\n") == body else insight
    _check_texts(file, issue, insight)
    if era == "v2":
        return InsightSkill(**values, keywords=_keywords(file), issue=issue, insight=insight, active=active)
    content = issue if insight is None else f"{issue}\n\n{insight}"
    single: type[CounterSkill | PlainSkill] = CounterSkill if era == "v1" else PlainSkill
    return single(**values, content=content, status="active" if active else "invalid")


def _checked(file: SkillFile, field: str, value: Any) -> Any:
    try:
        return checked_field(field, value, f"metadata.{field}", _LIMITS)
    except UsageError as error:
        raise UsageError(f"{file.where(f'metadata.{field}')}: {error}") from error


def _parsed(file: SkillFile, field: str) -> Any:
    text = file.metadata[field]
    try:
        value = a_text(text, f"metadata.{field}", _LIMITS)
        if field not in (*_TEXTS, "id"):
            value = parsed_json(text, f"metadata.{field}")
    except UsageError as error:
        raise UsageError(f"{file.where(f'metadata.{field}')}: {error}") from error
    return _checked(file, field, value)


def _check_texts(file: SkillFile, issue: str, insight: str | None) -> None:
    for field, text in (("description", issue), ("", insight)):
        try:
            a_text(issue if text is None else text, field or "its body", _LIMITS)
        except UsageError as error:
            raise UsageError(f"{file.where(field)}: {error}") from error


def _keywords(file: SkillFile) -> tuple[str, ...]:
    keywords: Any = file.metadata.get("keywords", "")
    words = re.split(r"\s+" if _is_ours(file) else r"[,\s]+", keywords) if isinstance(keywords, str) else keywords
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise UsageError(
            f"{file.where('metadata.keywords')}: metadata.keywords is {reprlib.repr(keywords)}; words are needed"
        )
    return keywords_of(words)


def _book(folders: SkillFolders, now: str) -> AceBook:
    """The book, with what `skillbook.json` says of skills that are still there."""
    path, skills = folders.folder / BOOK, {read.skill.id: read.skill for read in folders.skills}
    eras = {era for skill in skills.values() for era in ERAS if type(skill) is SKILL_OF[era]}
    try:
        content: Json = an_object(parsed_json(text_of(path, _LARGEST), "it"), "it", _BOOK) if path.is_file() else {}
        era: Era = next(iter(eras)) if len(eras) == 1 else "v2" if eras else content.get("format", "v2")
        order, sections = (
            {key: _ids(ids, key, skills) for key, ids in an_object(value, name, value).items()}
            for name, value in (
                ("order", {"order": content.get("order", [])}),
                ("sections", content.get("sections", {})),
            )
        )
        rest = {field: value for field, value in content.items() if field not in ("format", "order", "sections")}
        whole = from_dict(rest | ({"schema_version": BOOK_SCHEMA} if era == "v2" else {}), era, now, _LIMITS)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    every = {key: skills[key] for key in dict.fromkeys([*order["order"], *skills])}
    if len(eras) > 1:
        every = {key: richest(skill)[0] for key, skill in every.items()}
    listed: dict[str, list[str]] = {}
    for section, key in [*((name, key) for name, ids in sections.items() for key in ids), *_by_section(every)]:
        if every[key].section == section and key not in listed.setdefault(section, []):
            listed[section].append(key)
    shown = {section: tuple(ids) for section, ids in listed.items() if ids}
    return replace(whole, skills=every, sections=shown, next_id=max(whole.next_id, highest_number(every)))


def _by_section(skills: Mapping[str, AceSkill]) -> Iterator[tuple[str, str]]:
    return ((skill.section, key) for key, skill in skills.items())


def _ids(value: Any, where: str, skills: Container[str]) -> list[str]:
    """Ids of a list that are still there."""
    return [key for key in dict.fromkeys(a_text(key, where, _LIMITS) for key in a_list(value, where, 10**6))
            if key in skills]  # fmt: skip
