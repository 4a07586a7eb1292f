"""A SKILL.md of Agent Skills: front matter in YAML, and a body; how it is read and written.

The checks are those of the open specification (agentskills.io) and of its reference library, skills-ref 0.1.1: names,
lengths, and YAML without anchors, tags and repeated fields. A refusal names file and line.
"""

import re
import reprlib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import FAULTS, bytes_of, plain

SKILL_FILE = "SKILL.md"
LONGEST_NAME, LONGEST_DESCRIPTION = 64, 1024  # characters
_LARGEST = 1_000_000  # bytes
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN = re.compile(r"[^\W\d_](?:[^\W_]|[ ,.'()/%_]|-(?!-))*", re.ASCII)
_FRONT = re.compile(r"---[ \t]*\r?\n(.*?)^---[ \t]*\r?(?:\n|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SkillFile:
    """Fields and body of a file that breaks no rule."""

    path: Path
    name: str
    description: str
    metadata: Mapping[str, Any]
    others: tuple[str, ...]  # fields beside these three
    body: str  # without line ends around it
    line: Mapping[str, int]  # line of each field, and of the body, which is ""

    def where(self, field: str) -> str:
        """File and line of a field; of the front matter's last line, where it is unknown."""
        return f"{self.path}:{self.line.get(field, 1)}"


def read_skill_file(path: Path) -> SkillFile:
    """Read a file. A byte order mark and line ends of Windows are taken.

    Raises UsageError for a link, a file that is too large or no text, and for what breaks the specification.
    """
    if path.is_symlink() or path.parent.is_symlink():
        raise UsageError(f"{path}:1: it is a link, and links are not followed; put a copy in its place")
    try:
        text = bytes_of(path, _LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no text in UTF-8: {error}; save it as UTF-8") from error
    match = _FRONT.match(text)
    if match is None:
        raise UsageError(
            f"{path}:1: it has no front matter: it must begin with --- and have a second --- after its fields"
        )
    front, line = _fields(path, match[1])
    name, description = (_text(path, front, line, field) for field in ("name", "description"))
    _check_name(path, name, line["name"])
    metadata = front.get("metadata")
    if not isinstance(metadata, dict | None):
        raise UsageError(
            f"{path}:{line['metadata']}: metadata is {reprlib.repr(metadata)}; fields with texts are needed"
        )
    others = tuple(field for field in front if field not in ("name", "description", "metadata"))
    line[""] = match[0].count("\n") + 1
    return SkillFile(path, name, description, metadata or {}, others, text[match.end() :].strip("\r\n"), line)


def skill_text(name: str, description: str, metadata: Mapping[str, str], body: str) -> str:
    """Text of a file."""
    fields = "".join(f"  {field}: {_scalar(value)}\n" for field, value in metadata.items())
    front = f"name: {_scalar(name)}\ndescription: {_scalar(description)}\nmetadata:\n{fields}"
    return f"---\n{front}---\n\n{body}\n"


def _scalar(text: str) -> str:
    """A text on one line of YAML, without quotes where it is read as this text by all; without three hyphens, at which
    the reference library ends the front matter.
    """
    if len(text) <= LONGEST_DESCRIPTION and _PLAIN.fullmatch(text) and yaml.load(text, _LOADER) == text:  # noqa: S506
        return text
    return f'"{"".join(_escaped(text))}"'


def _escaped(text: str) -> Iterator[str]:
    hyphens = 0
    for character in text:
        hyphens = hyphens + 1 if character == "-" else 0
        if character in '"\\':
            yield f"\\{character}"
        elif character.isprintable() and hyphens < 3:
            yield character
        else:
            yield f"\\U{ord(character):08X}"
            hyphens = 0


def _fields(path: Path, front: str) -> tuple[dict[str, Any], dict[str, int]]:
    """Values and lines of the fields."""
    try:
        _check_tokens(path, front)
        node = yaml.compose(front, _LOADER)
        line = {} if node is None else _lines(path, node)
        value = plain(yaml.load(front, _LOADER), "it")  # noqa: S506  a safe loader
    except (yaml.YAMLError, UsageError, *FAULTS) as error:
        if isinstance(error, UsageError) and str(error).startswith(f"{path}:"):
            raise
        reason = "nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        raise UsageError(
            f"{path}:{2 if mark is None else mark.line + 2}: its front matter is no YAML of a skill: {reason}"
        ) from error
    if not isinstance(value, dict) or not all(isinstance(field, str) for field in value):
        raise UsageError(f"{path}:2: its front matter has no fields; name and description are needed")
    return value, line


def _check_tokens(path: Path, front: str) -> None:
    for token in yaml.scan(front, _LOADER):
        if isinstance(token, yaml.AnchorToken | yaml.AliasToken | yaml.TagToken):
            raise UsageError(
                f"{path}:{token.start_mark.line + 2}: YAML with anchors, aliases or tags is not read; write values out"
            )


def _lines(path: Path, node: yaml.Node) -> dict[str, int]:
    """Lines of the fields; those of a field within another one stand under both names, with a point between."""
    lines: dict[str, int] = {}
    left = [("", node)]
    while left:
        above, inner = left.pop()
        if not isinstance(inner, yaml.MappingNode):
            continue
        for key, value in inner.value:
            field, line = f"{above}{key.value}", key.start_mark.line + 2
            if key.value == "<<":
                raise UsageError(f"{path}:{line}: YAML that merges fields (<<) is not read; write them out")
            if field in lines:
                raise UsageError(f"{path}:{line}: the field {field!r} stands twice; leave one of them out")
            lines[field] = line
            left.append((f"{field}.", value))
    return lines


def _text(path: Path, front: Mapping[str, Any], line: Mapping[str, int], field: str) -> str:
    most = LONGEST_NAME if field == "name" else LONGEST_DESCRIPTION
    value = front.get(field)
    if isinstance(value, str) and value.strip() and len(value) <= most:
        return value
    given = f"has {len(value):,} characters" if isinstance(value, str) else f"is {reprlib.repr(value)}"
    raise UsageError(f"{path}:{line.get(field, 1)}: its {field} {given}; a text of 1 to {most:,} characters is needed")


def _check_name(path: Path, name: str, line: int) -> None:
    if (
        not all(character.isalnum() or character == "-" for character in name)
        or name != name.lower()
        or name != name.strip("-")
        or "--" in name
    ):
        raise UsageError(f"{path}:{line}: name={name!r}; valid are small letters, digits and single hyphens")
    folder = path.parent.absolute().name
    if unicodedata.normalize("NFKC", name) != unicodedata.normalize("NFKC", folder):
        raise UsageError(f"{path}:{line}: name={name!r}, but its folder is {folder!r}; a skill is named as its folder")
